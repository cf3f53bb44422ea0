"""Greedy and beam search over f_t: for each source the best hypotheses, and by which route each of their words came.

The beam is the K best hypotheses, open or ended, by one normalised score; an ended one stays as long as it is among
them. Two routes to the same word (the shortlist, and every position that holds it) lead to the same next state, so they
are one candidate, and no two hypotheses of a beam ever have the same words.

B sources still at work, K hypotheses of each, J source positions, V shortlist words, C of them that compete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pointing.config import Search
from pointing.corpus.examples import Batch
from pointing.kernels import exact
from pointing.model.fast_output import NONE, Candidates, Places, Routes, top
from pointing.model.fast_step import Stepper
from pointing.model.seq2seq import Seq2Seq, Source
from pointing.text.vocabulary import EOS

LEAVE = 0.75  # of the sources: when no more are at work, the others are taken out of the tensors
SPARE = 10  # words that an output may have beyond max_ratio


@dataclass
class Hypothesis:
    """One output, T choices long; the last one is the end of sentence, from the shortlist or by its position."""

    choices: npt.NDArray[np.int64]  # (T,) word id, or V + the position that is copied
    log_p: npt.NDArray[np.float32]  # (T,) of each choice under f_t; with `marginal` of the word, by all its routes
    d: npt.NDArray[np.float32]  # (T,) the switch's probability of the shortlist
    location: npt.NDArray[np.float32] | None  # (T, J) l_t, if asked for
    score: float  # the sum of log_p, normalised


def greedy(model: Seq2Seq, batch: Batch, max_length: int = 200) -> list[Hypothesis]:
    """The best choice at every step, for each source of the batch."""
    return [found[0] for found in search(model, batch, Search(beam=1, max_length=max_length))]


def search(
    model: Seq2Seq,
    batch: Batch,
    settings: Search,
    *,
    candidates: Tensor | None = None,
    placeholders: int = 0,
    locations: bool = False,
) -> list[list[Hypothesis]]:
    """For each source of the batch up to `nbest` hypotheses, best first, all different; at least one.

    `candidates` (C,) are the only shortlist words that compete (the large-vocabulary trick); of the target vocabulary's
    entity `placeholders` only those that the source has can be chosen. With `locations` hypotheses keep their l_t.
    """
    device = next(model.parameters()).device
    x, x_mask, source_words = (part.to(device) for part in (batch.x, batch.x_mask, batch.source_words))
    with torch.inference_mode(), not_training(model):
        routes = Routes(
            model.output,
            None if candidates is None else candidates.to(device),
            ranking=settings.ranking,
            best=settings.beam,
            unk=settings.allow_unk or settings.unk_replace,
            placeholders=placeholders,
        )
        places = routes.places(source_words, x_mask)
        step, (source, s) = Stepper(model), model.read(x, x_mask)
        beam = _Beam(settings, x_mask, source_words, exact(s), locations or settings.unk_replace)
        s = s.unsqueeze(1)  # (B, 1, S): at first there is one hypothesis, with nothing in it
        y_prev = s.new_zeros(*s.shape[:2], model.embedding.embedding_dim)
        while True:
            s, readout, evidence, log_l = step(y_prev, s, source)
            parent = beam.advance(*routes(readout, evidence, log_l, places, beam.repeated()), log_l)
            live = beam.leave()
            if live is not None:
                if not len(live):
                    return beam.hypotheses()
                source, places = Source(*(part[live] for part in source)), Places(*(part[live] for part in places))
                s, parent = s[live], parent[live]
            s = _of_parents(s, parent)
            y_prev = model.feed(beam.names, source)


@contextmanager
def not_training(model: Seq2Seq) -> Iterator[None]:
    """Without dropout and noise, and afterwards as before."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


class _Step(NamedTuple):
    """What one step added, for all sources of the batch, also those that had left; (B, K) each, K the whole beam."""

    parent: Tensor  # the hypothesis of the step before
    choice: Tensor  # NONE where it had ended
    log_p: Tensor
    d: Tensor
    location: Tensor | None  # (B, K, J)


class _Beam:
    """The K best hypotheses of each source, and how they came about."""

    def __init__(self, settings: Search, x_mask: Tensor, source_words: Tensor, zero: Tensor, locations: bool) -> None:
        self.settings, self.locations = settings, locations
        B, device = len(x_mask), x_mask.device
        words = x_mask.sum(1) - 1  # without the end of sentence
        self.limit = torch.full_like(words, settings.max_length)
        if settings.max_ratio is not None:
            self.limit = self.limit.minimum(
                (settings.max_ratio * words).clamp(max=settings.max_length).ceil().long() + SPARE
            )
        self.rows = torch.arange(B, device=device)  # which sources these are
        self.words = x_mask & (source_words != EOS)  # (B, J), for the coverage penalty
        # Of each hypothesis, K of them from the second step on:
        self.total = zero.new_zeros(B, 1)  # log-probability so far
        self.score = zero.new_zeros(B, 1)  # the same, normalised
        self.ended = torch.zeros(B, 1, dtype=torch.bool, device=device)
        self.names = torch.empty(B, 1, dtype=torch.long, device=device)  # its last word
        self.said = torch.empty(B, 1, 0, dtype=torch.long, device=device)  # all its words, for blocking n-grams
        self.log_attended = zero.new_full((B, 1, x_mask.shape[1]), -math.inf)  # Σ_t l_t, for coverage
        self.steps: list[_Step] = []
        self.final = zero.new_full((B, settings.beam), -math.inf)  # scores of those that have ended

    def repeated(self) -> Tensor | None:
        """(B, K, N) the names that once followed what has been said last, or NONE."""
        n = self.settings.block_ngrams
        if n is None or self.said.shape[-1] < n:
            return None
        gram = self.said.unfold(-1, n, 1)  # (B, K, N, n)
        last = self.said[..., self.said.shape[-1] - n + 1 :].unsqueeze(2)
        return gram[..., -1].masked_fill(~(gram[..., :-1] == last).all(-1), NONE)

    def advance(self, at: Candidates, d: Tensor, log_l: Tensor) -> Tensor:
        """Takes the K best, and returns which hypothesis each of them goes on from, (B, K)."""
        length = len(self.steps) + 1
        (K, M), settings = at.log_p.shape[1:], self.settings
        log_p = self._allowed(at)
        total = self.total.unsqueeze(-1) + log_p  # (B, K, M)
        score = total / self._norm(torch.full_like(total, length))
        if settings.coverage:
            self.log_attended = self.log_attended.logaddexp(log_l)
            missed = self.log_attended.clamp(max=0).masked_fill(~self.words.unsqueeze(1), 0).sum(-1)
            score = score + settings.coverage * missed.unsqueeze(-1)
        ended = self.score.masked_fill(~self.ended, -math.inf)
        pool = torch.cat([ended, score.flatten(1)], 1)  # (B, K + K M): those that have ended, and all ways to go on
        self.score, index = top(pool, min(settings.beam, pool.shape[1]))
        stays, way = index < K, (index - K).clamp(min=0)
        parent = torch.where(stays, index, way // M)  # (B, K)
        taken, choice, name, total = (part.flatten(1).gather(1, way) for part in (log_p, at.choice, at.name, total))
        over = stays | (self.score == -math.inf)  # ended before, or nothing that there is
        self._record(parent, choice.masked_fill(over, NONE), taken, d.gather(1, parent), log_l)
        self.names = name.masked_fill(over, EOS)
        self.total = torch.where(stays, self.total.gather(1, parent), total)
        self.ended = self.names == EOS
        if settings.block_ngrams is not None:
            said = _of_parents(self.said, parent)
            self.said = torch.cat([said, self.names.unsqueeze(-1)], -1)
        if settings.coverage:
            self.log_attended = _of_parents(self.log_attended, parent)
        return parent

    def _allowed(self, at: Candidates) -> Tensor:
        """log p of the candidates, -inf where the hypothesis has ended, or must end, or must not end yet."""
        said, end = len(self.steps), at.name == EOS
        log_p = at.log_p.masked_fill(self.ended.unsqueeze(-1), -math.inf)
        log_p = log_p.masked_fill((self.limit <= said)[:, None, None] & ~end, -math.inf)
        if said < self.settings.min_length:
            other = (
                log_p.masked_fill(end, -math.inf).amax(-1, keepdim=True) > -math.inf
            )  # if there is nothing else, it ends
            log_p = log_p.masked_fill(end & other, -math.inf)
        return log_p

    def _norm(self, length: Tensor) -> Tensor:
        if self.settings.normalize == "none":
            return torch.ones_like(length)
        return length if self.settings.normalize == "dl4mt" else ((5 + length) / 6).pow(self.settings.alpha)

    def _record(self, parent: Tensor, choice: Tensor, log_p: Tensor, d: Tensor, log_l: Tensor) -> None:
        (B, beam), K = self.final.shape, parent.shape[1]
        step = _Step(
            torch.arange(beam, device=parent.device).repeat(B, 1),
            parent.new_full((B, beam), NONE),
            log_p.new_zeros(B, beam),
            d.new_zeros(B, beam),
            log_l.new_zeros(B, beam, log_l.shape[-1]) if self.locations else None,
        )
        for whole, part in ((step.parent, parent), (step.choice, choice), (step.log_p, log_p), (step.d, d)):
            whole[self.rows, :K] = part
        if step.location is not None:
            step.location[self.rows, :K] = _of_parents(log_l, parent).exp()
        self.steps.append(step)

    def leave(self) -> Tensor | None:
        """The sources (N,) that are still at work, once so many are done that it pays to go on without the others."""
        K, nbest = self.score.shape[1], self.settings.nbest
        # At best an open hypothesis grows as long as it may, and all its words to come are certain.
        bound = (self.total / self._norm(self.limit.unsqueeze(1) + 1.0)).masked_fill(self.ended, -math.inf).amax(1)
        ended = self.score.masked_fill(~self.ended, -math.inf)
        enough = torch.sort(ended, descending=True)[0][:, nbest - 1] if nbest <= K else ended.new_tensor([-math.inf])
        done = self.ended.all(1) | (enough >= bound)
        self.final[self.rows, :K] = ended
        self.score = torch.where(done.unsqueeze(1), ended, self.score)
        self.ended = self.ended | done.unsqueeze(1)
        live = (~done).nonzero().squeeze(1)
        if len(live) > LEAVE * len(done):
            return None
        for name in ("limit", "rows", "words", "total", "score", "ended", "names", "said", "log_attended"):
            setattr(self, name, getattr(self, name)[live])
        return live

    def hypotheses(self) -> list[list[Hypothesis]]:
        """From the last step back to the first by each hypothesis' parents."""
        score, slot = torch.sort(self.final, dim=1, descending=True, stable=True)
        score, slot = score[:, : self.settings.nbest], slot[:, : self.settings.nbest]  # (B, nbest)
        found: list[list[Tensor]] = []
        for step in reversed(self.steps):
            found.append([part.gather(1, slot) for part in (step.choice, step.log_p, step.d)])
            if step.location is not None:
                found[-1].append(_of_parents(step.location, slot))
            slot = step.parent.gather(1, slot)
        parts = [torch.stack(part, 2).cpu().numpy() for part in zip(*reversed(found), strict=True)]  # (B, nbest, T, …)
        hypotheses: list[list[Hypothesis]] = []
        for b, scores in enumerate(score.tolist()):
            said = [parts[0][b, k] != NONE for k in range(len(scores))]  # (T,) each
            ended = [k for k, value in enumerate(scores) if value > -math.inf]
            hypotheses.append([_hypothesis([part[b, k][said[k]] for part in parts], scores[k]) for k in ended])
        return hypotheses


def _hypothesis(parts: list[npt.NDArray[Any]], score: float) -> Hypothesis:
    return Hypothesis(parts[0], parts[1], parts[2], parts[3] if len(parts) > 3 else None, score)


def _of_parents(x: Tensor, parent: Tensor) -> Tensor:
    """x (B, K, …) of the hypotheses that others go on from: (B, K', …)."""
    return x.gather(1, parent.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
