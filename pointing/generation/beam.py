"""Beam search over f_t: for each source the best hypotheses, and by which route each of their words came.

The beam is the K best hypotheses, open or ended, by one normalised score. An ended hypothesis stays in it as long as it
is among the K best. The best ended ones are also kept aside, since what pushes them out of the beam may end worse. The
search for a source is over when no open hypothesis can become better than those.

Two routes to the same word (the shortlist, and every position that holds it) lead to the same next state, so they are
one candidate, and no two hypotheses of a beam have the same words.

Search knows of the model only what model/decoder.py says.

B sources still at work, K hypotheses of each, J source positions, V shortlist words, C of them that compete.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from pointing.config import Search
from pointing.corpus.examples import Batch
from pointing.generation.spans import Spans
from pointing.model.decoder import SearchForm, of_parents
from pointing.model.fast_output import NO_WORD, Continuations, Routes, top
from pointing.text.vocabulary import EOS

SHARE_AT_WORK = 0.75  # when no more of the sources are at work, the others are taken out of the tensors
WORDS_BEYOND_RATIO = 10  # words that an output may have beyond max_ratio
Length = TypeVar("Length", int, Tensor)


@dataclass
class Hypothesis:
    """One output, T choices long; the last one is the end of sentence, from the shortlist or by its position."""

    choices: npt.NDArray[np.int64]  # (T,) word id, or V + the position that is copied
    log_p: npt.NDArray[np.float32]  # (T,) of each choice under f_t; with `marginal` of the word, by all its routes
    d: npt.NDArray[np.float32]  # (T,) d_t
    location: npt.NDArray[np.float32] | None  # (T, J) l_t, if it was kept
    score: float  # the sum of log_p, normalised
    forms: npt.NDArray[np.int64] | None = None  # (T,) how each word is written; zeros from a model without forms
    others: npt.NDArray[np.int64] | None = None  # (T, N) the best choices of each step, if they were kept
    log_p_others: npt.NDArray[np.float32] | None = None  # (T, N) and their log-probabilities; -inf where there is none


def search(
    model: SearchForm[Any],
    batch: Batch,
    settings: Search,
    *,
    candidates: Tensor | None = None,
    placeholders: int = 0,
    spans: Spans | None = None,
    locations: bool = False,
    choices: int = 0,
    abandoned: Callable[[], npt.NDArray[np.bool_]] | None = None,
) -> list[list[Hypothesis]]:
    """For each source of the batch up to `nbest` hypotheses, best first, all different; at least one.

    `candidates` (B, C) are the only shortlist words that compete, for each source (the large-vocabulary trick); a word
    may stand there twice. Of the target vocabulary's entity `placeholders` only those that the source has can be
    chosen. With `locations` hypotheses keep their l_t, with `choices` so many of the best choices of each step.

    `spans` are what every hypothesis has to copy exactly once; then the model must be able to point.

    `abandoned` is asked at every step: a source (B,) for which it says True is left alone, with what has ended by then,
    which may be no hypothesis.
    """
    batch = batch.to(model.device)
    candidates = None if candidates is None else candidates.to(model.device)
    with torch.inference_mode():
        routes = Routes(model.output, batch.source_words, batch.x_mask, settings, candidates, placeholders, choices)
        beam = _Beam(settings, batch, locations or settings.unk_replace, spans, choices)
        state = model.read(batch.x, batch.x_mask, batch.x_form, batch.place)
        while True:
            predicted, state = model.step(state)
            terms = None if spans is None else spans.terms()
            parent = beam.advance(*routes(*predicted, beam.repeated(), terms), predicted.log_l)
            live = beam.leave(None if abandoned is None else abandoned())
            if live is not None:
                if not len(live):
                    return beam.hypotheses()
                routes.keep_sources(live)
                state, parent = model.keep_sources(state, live), parent[live]
            state, forms = model.follow(state, parent, beam.last)
            beam.record_forms(forms)


class _Step(NamedTuple):
    """What one step added, (B, K) each, for all sources of the batch, also those that are done, and the whole beam."""

    parent: Tensor  # the hypothesis of the step before
    choice: Tensor
    log_p: Tensor
    d: Tensor
    location: Tensor | None  # (B, K, J)
    others: tuple[Tensor, Tensor] | None  # (B, K, N) each: the best choices, and their log-probabilities
    form: Tensor | None = None  # how the words are written; None, like 0, without forms


class _Beam:
    """The K best hypotheses of each source, and how they came about."""

    def __init__(self, settings: Search, batch: Batch, locations: bool, spans: Spans | None, choices: int) -> None:
        self.settings, self.locations, self.spans, self.choices = settings, locations, spans, choices
        (B, J), device = batch.x_mask.shape, batch.x.device
        length = batch.x_mask.sum(1) - 1  # without the end of sentence
        self.limit = torch.full_like(length, settings.max_length)  # (B,) words that an output may have
        if settings.max_ratio is not None:
            allowed = (settings.max_ratio * length).clamp(max=settings.max_length).ceil().long() + WORDS_BEYOND_RATIO
            self.limit = self.limit.minimum(allowed)
        if spans is not None:
            self.limit = self.limit.maximum(spans.required)
        self.rows = torch.arange(B, device=device)  # the sources' rows in the batch
        self.covered = batch.x_mask & (batch.source_words != EOS)  # (B, J), the positions of the coverage penalty
        # Of each hypothesis, one of each source at the first step and K from the second step on:
        self.total = torch.zeros(B, 1, device=device)  # log-probability so far
        self.score = self.total  # the same, normalised
        self.ended = torch.zeros(B, 1, dtype=torch.bool, device=device)
        self.last = torch.empty(B, 1, dtype=torch.long, device=device)  # the last word
        self.words = torch.empty(B, 1, 0, dtype=torch.long, device=device)  # all words, for blocking n-grams
        self.log_attended = torch.full((B, 1, J), -math.inf, device=device)  # log Σ_t l_t, for the coverage penalty
        self.steps: list[_Step] = []
        # What needs no look at tensors; True, or less than it could be, costs time and changes nothing.
        self.any_ended = False  # of the hypotheses in the beam
        self.any_kept = False  # of those that have ended
        self.least_limit = int(self.limit.min())
        # Of all sources of the batch, the best hypotheses that have ended, best first, (B, nbest) each:
        best = B, settings.nbest
        self.best_score = torch.full(best, -math.inf, dtype=torch.float64, device=device)  # rounds no type of scores
        self.best_step = torch.zeros(best, dtype=torch.long, device=device)  # the step at which it ended
        self.best_slot = torch.zeros(best, dtype=torch.long, device=device)  # its place in the beam at that step

    def repeated(self) -> Tensor | None:
        """(B, K, N) the words that would complete an n-gram for the second time, or NO_WORD."""
        n = self.settings.block_ngrams
        if n is None or self.words.shape[-1] < n:
            return None
        gram = self.words.unfold(-1, n, 1)  # (B, K, N, n)
        last = self.words[..., self.words.shape[-1] - n + 1 :].unsqueeze(2)
        return gram[..., -1].masked_fill(~(gram[..., :-1] == last).all(-1), NO_WORD)

    def advance(self, ways: Continuations, d: Tensor, log_l: Tensor) -> Tensor:
        """Takes the K best, and returns which hypothesis each of them continues, (B, K)."""
        length = len(self.steps) + 1
        (K, M), settings = ways.log_p.shape[1:], self.settings
        log_p = self._allowed(ways)
        others = self._others(ways.choice, log_p) if self.choices else None
        total = self.total.unsqueeze(-1) + log_p  # (B, K, M)
        score = total / self._norm(length)
        if settings.coverage:
            self.log_attended = self.log_attended.logaddexp(log_l)
            missed = self.log_attended.clamp(max=0).masked_fill(~self.covered.unsqueeze(1), 0).sum(-1)
            score = score + settings.coverage * missed.unsqueeze(-1)
        stays = None  # (B, K) True for hypotheses that had ended before
        if self.any_ended or settings.beam > K * M:
            ended = self.score.masked_fill(~self.ended, -math.inf)
            pool = torch.cat([ended, score.flatten(1)], 1)  # (B, K + K M): ended hypotheses, then all continuations
            self.score, index = top(pool, min(settings.beam, pool.shape[1]))
            stays, way = index < K, (index - K).clamp(min=0)
            parent = torch.where(stays, index, way // M)  # (B, K)
        else:
            self.score, way = top(score.flatten(1), settings.beam)
            parent = way // M
        parts = log_p, ways.choice, ways.word, total
        log_p, choice, word, total = (part.flatten(1).gather(1, way) for part in parts)
        over = self.score == -math.inf  # ended before, or there are fewer than K hypotheses
        if stays is not None:
            over, total = over | stays, torch.where(stays, self.total.gather(1, parent), total)
        self._record(parent, choice, log_p, d.gather(1, parent), log_l, others)
        if self.spans is not None:
            self.spans.advance(parent, choice.masked_fill(over, EOS))
        self.last, self.total = word.masked_fill(over, EOS), total
        self.ended = self.last == EOS
        self.any_ended = bool(self.ended.any())
        if self.any_ended:
            self._keep_best(self.score.masked_fill(over | (word != EOS), -math.inf))
        if settings.block_ngrams is not None:
            self.words = torch.cat([of_parents(self.words, parent), self.last.unsqueeze(-1)], -1)
        if settings.coverage:
            self.log_attended = of_parents(self.log_attended, parent)
        return parent

    def _allowed(self, ways: Continuations) -> Tensor:
        """log p of the continuations, -inf where the hypothesis has ended, or must end, or must not end yet."""
        length, log_p = len(self.steps), ways.log_p
        if self.any_ended:
            log_p = log_p.masked_fill(self.ended.unsqueeze(-1), -math.inf)
        if self.spans is not None:
            log_p = self.spans.allowed(log_p, ways.word == EOS, self.limit - length)
        if length >= self.least_limit:
            log_p = log_p.masked_fill((self.limit <= length)[:, None, None] & (ways.word != EOS), -math.inf)
        if length < self.settings.min_length:  # a hypothesis that has no other continuation ends nevertheless
            end = ways.word == EOS
            can_go_on = log_p.masked_fill(end, -math.inf).amax(-1, keepdim=True) > -math.inf
            log_p = log_p.masked_fill(end & can_go_on, -math.inf)
        return log_p

    def _norm(self, length: Length) -> Length | float:
        if self.settings.normalize == "none":
            return 1.0
        return length if self.settings.normalize == "dl4mt" else ((5 + length) / 6) ** self.settings.alpha

    def _others(self, choice: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        """(B, K, N) the best choices of each hypothesis, and their log-probabilities."""
        value, way = top(log_p, min(self.choices, log_p.shape[-1]))
        missing = 0, self.choices - value.shape[-1]  # fewer words and positions than asked for
        return F.pad(choice.gather(-1, way), missing), F.pad(value, missing, value=-math.inf)

    def _record(
        self,
        parent: Tensor,
        choice: Tensor,
        log_p: Tensor,
        d: Tensor,
        log_l: Tensor,
        others: tuple[Tensor, Tensor] | None,
    ) -> None:
        B, K, beam = len(self.best_score), parent.shape[1], self.settings.beam
        location = of_parents(log_l, parent).exp() if self.locations else None
        others = None if others is None else (of_parents(others[0], parent), of_parents(others[1], parent))
        step = _Step(parent, choice, log_p, d, location, others)
        self.steps.append(step if parent.shape == (B, beam) else self._whole(step, K))

    def _whole(self, step: _Step, K: int) -> _Step:
        """A step of K hypotheses of the sources at work, as one of the whole beam of all sources.

        What is filled up with zeros is no part of any output.
        """

        def whole(part: Tensor) -> Tensor:
            filled = part.new_zeros(len(self.best_score), self.settings.beam, *part.shape[2:])
            filled[self.rows, :K] = part
            return filled

        location = None if step.location is None else whole(step.location)
        others = None if step.others is None else (whole(step.others[0]), whole(step.others[1]))
        parent, choice, log_p, d = (whole(part) for part in (step.parent, step.choice, step.log_p, step.d))
        return _Step(parent, choice, log_p, d, location, others)

    def record_forms(self, forms: Tensor | None) -> None:
        """How the words of the last step are written."""
        if forms is not None:
            step = self.steps[-1]
            form = torch.zeros_like(step.choice)
            form[self.rows, : forms.shape[1]] = forms
            self.steps[-1] = step._replace(form=form)

    def _keep_best(self, score: Tensor) -> None:
        """Keeps the best of those kept so far and of those that end at this step; `score` (B, K) is -inf for others."""
        if not bool((score > -math.inf).any()):
            return
        self.any_kept = True
        rows, slot = self.rows, torch.arange(score.shape[1], device=score.device).expand_as(score)
        scores = torch.cat([self.best_score[rows], score.double()], 1)
        steps = torch.cat([self.best_step[rows], torch.full_like(slot, len(self.steps) - 1)], 1)
        slots = torch.cat([self.best_slot[rows], slot], 1)
        scores, order = torch.sort(scores, dim=1, descending=True, stable=True)  # of equals the first that ended
        order = order[:, : self.settings.nbest]
        self.best_score[rows] = scores[:, : self.settings.nbest]
        self.best_step[rows], self.best_slot[rows] = steps.gather(1, order), slots.gather(1, order)

    def leave(self, abandoned: npt.NDArray[np.bool_] | None = None) -> Tensor | None:
        """The rows (N,) of the sources still at work, as soon as enough of the others are done to take these out."""
        if abandoned is None and not (self.any_ended or self.any_kept):
            return None
        # An open hypothesis can at best grow to the limit with words of probability 1.
        bound = (self.total / self._norm(self.limit.unsqueeze(1) + 1.0)).masked_fill(self.ended, -math.inf).amax(1)
        done = self.ended.all(1) | (self.best_score[self.rows, -1] >= bound)
        if abandoned is not None:
            done = done | torch.from_numpy(abandoned).to(done.device)[self.rows]
        self.ended = self.ended | done.unsqueeze(1)
        live = (~done).nonzero().squeeze(1)
        self.any_ended = self.any_ended or len(live) < len(done)
        if len(live) > SHARE_AT_WORK * len(done):
            return None
        for name in ("limit", "rows", "covered", "total", "score", "ended", "last", "words", "log_attended"):
            setattr(self, name, getattr(self, name)[live])
        if self.spans is not None:
            self.spans.keep_sources(live)
        return live

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The best ended hypotheses, each traced by its parents from the step at which it ended back to the first."""
        rows = np.arange(len(self.best_slot))[:, None]
        best_step, best_slot = self.best_step.cpu().numpy(), self.best_slot.cpu().numpy()  # (B, nbest)
        parents = torch.stack([step.parent for step in self.steps]).cpu().numpy()  # (T, B, K)
        slots = np.empty((len(parents), *best_slot.shape), np.int64)  # (T, B, nbest) of the hypothesis at each step
        slot = best_slot
        for t in reversed(range(len(parents))):
            slots[t] = np.where(best_step == t, best_slot, slot)
            slot = parents[t][rows, slots[t]]
        no_form = self.steps[0].choice.new_zeros(())
        forms = [no_form.expand_as(step.choice) if step.form is None else step.form for step in self.steps]
        plain = ([getattr(step, name) for step in self.steps] for name in ("choice", "log_p", "d"))
        times = np.arange(len(parents))[:, None, None]
        parts = [torch.stack(steps).cpu().numpy()[times, rows, slots].transpose(1, 2, 0) for steps in (*plain, forms)]
        for kept in zip(*((step.location, *(step.others or ())) for step in self.steps), strict=True):
            if kept[0] is not None:
                found = [of_parents(part, torch.from_numpy(slots[t]).to(part.device)) for t, part in enumerate(kept)]
                parts.append(torch.stack(found, 2).cpu().numpy())  # (B, nbest, T, …), as all of them
        hypotheses: list[list[Hypothesis]] = []
        lengths = (self.best_step + 1).tolist()
        for b, scores in enumerate(self.best_score.tolist()):
            ended = [k for k, score in enumerate(scores) if score > -math.inf]
            own = [[part[b, k, : lengths[b][k]].copy() for part in parts] for k in ended]  # no view of the whole batch
            hypotheses.append([_hypothesis(row, scores[k], self.locations) for k, row in zip(ended, own, strict=True)])
        return hypotheses


def _hypothesis(parts: list[npt.NDArray[Any]], score: float, locations: bool) -> Hypothesis:
    choices, log_p, d, forms, *rest = parts
    location = rest.pop(0) if locations else None
    return Hypothesis(choices, log_p, d, location, score, forms, *rest)
