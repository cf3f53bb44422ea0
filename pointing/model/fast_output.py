"""f_t as a search needs it: every word once, by its best route, whichever way it can come.

A word of the shortlist comes from there, and from every position of the source that holds it. All those routes lead to
the same next state, so they are one candidate: in the paper's rule the best of them stands for it, in the marginal
one their sum. Only the words that the source holds have several routes; of the others the best few are enough.

B sources, K hypotheses of each, J source positions, V shortlist words, C of them that compete, R readout's width.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pointing.kernels import exact
from pointing.pointer_softmax import PointerSoftmax
from pointing.text.vocabulary import EOS, FIRST, UNK

NONE = -1  # no word, no position
BLOCK = 32  # numbers of which `top` looks at the largest first
IN_CACHE = 2**17  # numbers of the logits worked on at a time
Ranking = Literal["joint", "marginal"]


class Places(NamedTuple):
    """What is known of a source's positions before the first step."""

    name: Tensor  # (B, J) what copying it writes: a word's id, or V + first position; EOS at the end, NONE at padding
    first: Tensor  # (B, J) the first position of the same word
    twice: Tensor  # (B,) whether any word stands twice
    column: Tensor  # (B, J) of its word among the C that compete; 0, which is EOS, if it has none
    known: Tensor  # (B, J) whether it has one
    closed: Tensor  # (B, P) the entities' placeholders that the source does not have


class Candidates(NamedTuple):
    """How each hypothesis can go on, (B, K, M) each: the best words, then J positions; -inf where there is nothing."""

    log_p: Tensor
    choice: Tensor  # the best route: word id, or V + position
    name: Tensor


class Routes:
    """The output layer with its weights laid out for many small steps, over all words or over `candidates` (C,)."""

    def __init__(
        self,
        output: PointerSoftmax,
        candidates: Tensor | None = None,
        *,
        ranking: Ranking = "joint",
        best: int = 1,
        unk: bool = False,
        placeholders: int = 0,
    ) -> None:
        """`best` words beside the source's own are found; UNK is one of them only if `unk` says so."""
        self.V, self.best, self.unk, self.marginal = output.words, best, unk, ranking == "marginal"
        self.switch = output.switch
        self.ids: Tensor | None = None
        span = torch.tensor([FIRST, FIRST + placeholders])
        if candidates is not None:
            self.ids = torch.cat([candidates, candidates.new_tensor([EOS, UNK])]).unique()
            span = torch.searchsorted(self.ids, span.to(self.ids.device))
        self.entities = slice(*span.tolist())  # the placeholders' columns, which lie together
        self.weight: Tensor | None = None  # (R + 1, C), the bias below
        if output.shortlist is not None:
            rows = slice(None) if self.ids is None else self.ids
            weight, bias = output.shortlist.weight[rows], output.shortlist.bias[rows]
            self.weight = torch.cat([weight.t(), bias.unsqueeze(0)])  # as `Stepper` lays out the other weights

    def places(self, x_words: Tensor, x_mask: Tensor) -> Places:
        name = x_words.masked_fill(~x_mask, NONE)
        first = (name.unsqueeze(2) == name.unsqueeze(1)).to(torch.uint8).argmax(2)
        column = self._column(name)
        known = x_mask & ((column != 0) | (x_words == EOS))
        entity = torch.arange(self.entities.start, self.entities.stop, device=name.device)
        closed = (column.unsqueeze(2) != entity).all(1)
        twice = ((first != torch.arange(first.shape[1], device=first.device)) & x_mask).any(1)
        return Places(name, first, twice, column, known, closed)

    def __call__(
        self, readout: Tensor, evidence: Tensor, log_l: Tensor, places: Places, barred: Tensor | None = None
    ) -> tuple[Candidates, Tensor]:
        """The candidates, and d_t (B, K). The names `barred` (B, K, N), NONE where there is none, are left out."""
        B, K, J = log_l.shape
        switch = self.switch(evidence)  # (B, K), the logit of d_t
        name = places.name.unsqueeze(1).expand(B, K, J)
        choice = self.V + torch.arange(J, device=name.device).expand(B, K, J)
        by_place = F.logsigmoid(-switch).unsqueeze(-1) + exact(log_l)  # (B, K, J)
        together, out = self._by_place(by_place, places)
        if barred is not None:
            out = out | (name.unsqueeze(3) == barred.unsqueeze(2)).any(3)
        if self.weight is None:
            return Candidates(together.masked_fill(out, -math.inf), choice, name), torch.sigmoid(switch)
        flat = exact(torch.mm(F.pad(readout.flatten(0, 1), (0, 1), value=1.0), self.weight))
        logits = flat.view(B, K, -1)  # (B, K, C)
        shift = (F.logsigmoid(switch) - log_total(flat).view(B, K)).unsqueeze(-1)  # (B, K, 1)
        column = places.column.unsqueeze(1).expand(B, K, J)
        by_word = (shift + logits.gather(-1, column)).masked_fill(~places.known.unsqueeze(1), -math.inf)  # (B, K, J)
        choice = torch.where(by_word >= by_place, name, choice)
        log_p = torch.logaddexp(by_word, together) if self.marginal else torch.maximum(by_word, by_place)
        log_w, word = self._others(logits, column, places, barred)
        found = (
            (shift + log_w, log_p.masked_fill(out, -math.inf)),
            (word, choice),
            (word, name),
        )
        return Candidates(*(torch.cat(pair, -1) for pair in found)), torch.sigmoid(switch)

    def _by_place(self, by_place: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """The log-probability of all positions with the same word, (B, K, J), and which positions are out.

        Padding is, and of several positions with the same word all but the best.
        """
        padding = (places.name == NONE).unsqueeze(1).expand_as(by_place)
        if not bool(places.twice.any()):
            return by_place, padding
        J = by_place.shape[-1]
        first = places.first.unsqueeze(1).expand_as(by_place)
        position = torch.arange(J, device=by_place.device)
        largest = torch.full_like(by_place, -math.inf).scatter_reduce(-1, first, by_place, "amax").gather(-1, first)
        rank = torch.where((by_place == largest) & ~padding, position, J)
        winner = (
            torch.full_like(first, J).scatter_reduce(-1, first, rank, "amin").gather(-1, first)
        )  # of equals the first
        if not self.marginal:
            return by_place, padding | (winner != position)
        finite = largest.masked_fill(largest == -math.inf, 0)
        total = torch.zeros_like(by_place).scatter_add(-1, first, (by_place - finite).exp()).gather(-1, first)
        return finite + total.log(), padding | (winner != position)

    def _others(self, logits: Tensor, column: Tensor, places: Places, barred: Tensor | None) -> tuple[Tensor, Tensor]:
        """The best words (B, K, best) that the source does not hold, by their logits, which are overwritten."""
        logits.scatter_(-1, column, -math.inf)
        if not self.unk:
            logits[..., UNK] = -math.inf
        logits[..., self.entities].masked_fill_(places.closed.unsqueeze(1), -math.inf)
        if barred is not None:
            logits.scatter_(-1, self._column(barred), -math.inf)
        value, word = top(logits, min(self.best, logits.shape[-1]))
        return value, word if self.ids is None else self.ids[word]

    def _column(self, name: Tensor) -> Tensor:
        """Of names that are words that compete; else 0: EOS, which always stands at its position."""
        word = name.masked_fill((name < 0) | (name >= self.V), EOS)
        if self.ids is None:
            return word
        column = torch.searchsorted(self.ids, word).clamp(max=len(self.ids) - 1)
        return column.masked_fill(self.ids[column] != word, 0)


def top(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last axis and where they are, largest first; of equals the first, on every machine."""
    whole = x.shape[-1] // BLOCK * BLOCK
    if whole > 2 * k * BLOCK:  # then only k blocks of it need be looked at: no other can hold one of the k largest
        largest = x[..., :whole].unflatten(-1, (-1, BLOCK)).amax(-1)
        block = top(largest, k)[1].sort(-1).values
        within = (block.unsqueeze(-1) * BLOCK + torch.arange(BLOCK, device=x.device)).flatten(-2)
        rest = torch.arange(whole, x.shape[-1], device=x.device).expand(*x.shape[:-1], -1)
        column = torch.cat([within, rest], -1)
        value, order = top(x.gather(-1, column), k)
        return value, column.gather(-1, order)
    value, order = x.topk(min(k + 1, x.shape[-1]), -1)  # the next one too, to see whether the choice was open
    if bool(((value[..., 1:] == value[..., :-1]) & (value[..., 1:] > -math.inf)).any()):
        value, order = torch.sort(x, dim=-1, descending=True, stable=True)  # ten times as slow, and seldom
    return value[..., :k], order[..., :k]


def log_total(logits: Tensor) -> Tensor:
    """logsumexp over the last axis of (N, C); on a CPU in half the time, some rows at a time."""
    if logits.is_cuda:
        return logits.logsumexp(-1)
    at_a_time = max(1, IN_CACHE // logits.shape[1])
    buffer = torch.empty_like(logits[:at_a_time])
    largest, total = logits.new_empty(len(logits)), logits.new_empty(len(logits))
    for start in range(0, len(logits), at_a_time):
        some = slice(start, min(start + at_a_time, len(logits)))
        torch.amax(logits[some], 1, out=largest[some])
        torch.sub(logits[some], largest[some].unsqueeze(1), out=buffer[: some.stop - start]).exp_()
        torch.sum(buffer[: some.stop - start], 1, out=total[some])
    return total.log_().add_(largest)
