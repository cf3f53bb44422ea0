"""The paper's output layer (§4), alone: a shortlist softmax, a location softmax, and the switch between them.

It sits on top of any decoder. What it asks of one is, for every step t, a readout (what the shortlist softmax
reads), evidence (what the switch reads), and where it looks in the source: either the log of attention weights
that the decoder has anyway, or annotations for the layer's own pointer network to point at.

B batch, T steps, J source positions, V shortlist words, C candidate words; widths R readout, Q query, A annotation.
A choice is one number: a word's id below V, or V + the position whose word is copied.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing.kernels import distinct_rows, exact, log_softmax_at, noisy_tanh, sparse_rows

Activation = Literal["relu", "tanh", "noisy-tanh"]


class Annotations(NamedTuple):
    """What the layer's own pointer network points with and at, where there is no attention to be reused."""

    query: Tensor  # (B, T, Q)
    h: Tensor  # (B, J, A)
    x_mask: Tensor  # (B, J), True where there is a word to copy


class PointerSoftmax(nn.Module):
    """Output layer (paper §4.1): one distribution over shortlist words and source positions.

    f_t = [d_t w_t ; (1 - d_t) l_t], kept in logs; d_t = p(z_t = 1) chooses the *shortlist*.

    With `NeverPoint()` or `AlwaysPoint()` in the switch's place it is the plain softmax or a pointer network.
    Give it a `PointerNetwork` of its own where the decoder has no attention to be reused.
    """

    def __init__(
        self,
        words: int,
        readout: int,
        switch: Switch | NeverPoint | AlwaysPoint,
        network: PointerNetwork | None = None,
    ) -> None:
        super().__init__()
        self.words = words
        self.shortlist = None if isinstance(switch, AlwaysPoint) else nn.Linear(readout, words)
        self.switch = switch
        self.network = network

    # Training: what was chosen is known, so only its probability is computed.

    def log_likelihood(
        self,
        readout: Tensor,
        evidence: Tensor,
        location: Tensor | Annotations,
        target: Tensor,
        mask: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """log p(y_t, z_t | (y, z)_<t, x) with z_t observed (paper §4), (B, T); 0 at padded steps.

        log p(z_t) + (z_t ? log w_t[word] : log l_t[position]), each softmax only at the steps that use it.
        `location` is log l (B, T, J), -inf where nothing may be copied, or Annotations; `mask` (B, T) is True at
        real steps. `candidates` (C,) are the only shortlist words that compete (the large-vocabulary trick); the
        target's own words always do. The shortlist's gradients are then sparse, for an optimiser that takes them
        (SparseAdam, Adagrad, SGD).
        """
        mask = torch.ones_like(target, dtype=torch.bool) if mask is None else mask
        z = target < self.words  # (B, T), True = shortlist
        real, at_word, at_place = _steps(mask), _steps(mask & z), _steps(mask & ~z)
        evidence = evidence if isinstance(self.switch, Switch) else evidence[..., :1]  # not gathered if unread
        switch = self._switch(_rows(evidence, real), _rows(_copyable(location, target), real))  # (N,)
        log_d = F.logsigmoid(torch.where(_rows(z, real), switch, -switch))  # (N,)
        log_w = self._log_w_of(_rows(readout, at_word), _rows(target, at_word), candidates)
        position = _rows(target, at_place) - self.words
        log_l = self._log_l(location, at_place).gather(-1, position.unsqueeze(-1)).squeeze(-1)
        log_p = log_d.new_zeros(target.numel()).index_copy(0, real, log_d)
        log_p = log_p.index_add(0, at_word, log_w).index_add(0, at_place, log_l)
        return log_p.view_as(target)

    def log_marginal(
        self,
        readout: Tensor,
        evidence: Tensor,
        location: Tensor | Annotations,
        x_words: Tensor,
        word: Tensor,
        mask: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """log p(y_t | y_<t, x) with z_t summed out, (B, T): for when no choice was observed. Not the paper's.

        The word's probability by the shortlist plus that of every position that holds it. `x_words` (B, J) names
        the source's words: a shortlist id, or V + the first position of the same word. `word` (B, T) likewise.
        """
        mask = torch.ones_like(word, dtype=torch.bool) if mask is None else mask
        real = _steps(mask)
        said = _rows(word, real)  # (N,)
        switch = self._switch(_rows(evidence, real), _rows(_copyable(location, word), real))  # (N,)
        known = _steps(said < self.words)
        log_w = self._log_w_of(_rows(readout, real[known]), said[known], candidates)
        by_word = F.logsigmoid(switch) + log_w.new_full(said.shape, -math.inf).index_copy(0, known, log_w)
        same = x_words[real // word.shape[1]] == said.unsqueeze(1)  # (N, J)
        log_l = self._log_l(location, real).masked_fill(~same, -math.inf)
        by_place = F.logsigmoid(-switch).unsqueeze(1) + log_l  # (N, J)
        log_p = _logsumexp(torch.cat([by_word.unsqueeze(1), by_place], 1))
        return log_p.new_zeros(word.numel()).index_copy(0, real, log_p).view_as(word)

    # Test: everything that could be chosen.

    def forward(
        self,
        readout: Tensor,
        evidence: Tensor,
        location: Tensor | Annotations,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """The whole log f_t, (B, T, V + J); -inf at words that are no candidates and at masked positions."""
        candidates = None if candidates is None else _different(candidates)
        by_word, by_place = self._log_f(readout, evidence, location, candidates)
        if candidates is not None:
            everything = by_word.new_full((*by_word.shape[:-1], self.words), -math.inf)
            by_word = everything.index_copy(-1, candidates, by_word)
        return torch.cat([by_word, by_place], -1)

    def top(
        self,
        k: int,
        readout: Tensor,
        evidence: Tensor,
        location: Tensor | Annotations,
        candidates: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The k most probable choices, best first: (log f_t, choice), both (B, T, k). k = 1 is the paper's argmax."""
        candidates = None if candidates is None else _different(candidates)
        log_f = torch.cat(self._log_f(readout, evidence, location, candidates), -1)  # (B, T, C + J)
        log_p, choice = log_f.topk(k, -1)
        if candidates is not None:
            column = choice.clamp(max=len(candidates) - 1)
            place = choice - len(candidates) + self.words
            choice = torch.where(choice < len(candidates), candidates[column], place)
        return log_p, choice

    def marginalize(self, log_f: Tensor, x_words: Tensor) -> Tensor:
        """log f_t with the same word's columns summed into one, the others -inf, (B, T, V + J). Not the paper's.

        A word's column is the name that `x_words` (B, J) gives it: its shortlist id, or V + its first position.
        """
        by_word, by_place = log_f.split([self.words, x_words.shape[1]], -1)
        name = x_words.unsqueeze(1).expand_as(by_place)  # (B, T, J)
        log_p = torch.cat([by_word, torch.full_like(by_place, -math.inf)], -1)
        largest = log_p.scatter_reduce(-1, name, by_place, "amax")
        finite = largest.masked_fill(largest == -math.inf, 0)
        total = (log_p - finite).exp().scatter_add(-1, name, (by_place - finite.gather(-1, name)).exp())
        return finite + total.log()

    # The parts.

    def _log_f(
        self, readout: Tensor, evidence: Tensor, location: Tensor | Annotations, candidates: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """log d_t w_t (B, T, C) and log (1 - d_t) l_t (B, T, J)."""
        log_l = self._log_l(location)
        switch = self._switch(evidence, _copyable(location, evidence[..., 0])).unsqueeze(-1)  # (B, T, 1)
        if self.shortlist is None:
            C = self.words if candidates is None else len(candidates)
            log_w = switch.new_full((*switch.shape[:-1], C), -math.inf)
        else:
            log_w = exact(F.linear(readout, *self._weights(candidates))).log_softmax(-1)
        return F.logsigmoid(switch) + log_w, F.logsigmoid(-switch) + log_l

    def _switch(self, evidence: Tensor, copyable: Tensor) -> Tensor:
        """The logit of d_t, without evidence's last axis; where nothing can be copied d_t is 1."""
        logit: Tensor = self.switch(evidence)
        return logit.masked_fill(~copyable, math.inf)

    def _log_w_of(self, readout: Tensor, word: Tensor, candidates: Tensor | None) -> Tensor:
        """log w_t at one word a step, (N,), from readout (N, R) and word (N,)."""
        if self.shortlist is None:
            return exact(readout).new_full(word.shape, -math.inf)
        if candidates is not None:
            candidates = _different(candidates, word)
            word = torch.searchsorted(candidates, word)
        weight, bias = self._weights(candidates)
        return log_softmax_at(readout, weight, bias, word)

    def _weights(self, candidates: Tensor | None) -> tuple[Tensor, Tensor]:
        """The shortlist's weight (V, R) and bias (V,), or just the candidates' rows, with sparse gradients."""
        assert self.shortlist is not None
        weight, bias = self.shortlist.weight, self.shortlist.bias
        if candidates is None:
            return weight, bias
        return sparse_rows(weight, candidates), sparse_rows(bias, candidates)

    def _log_l(self, location: Tensor | Annotations, steps: Tensor | None = None) -> Tensor:
        """log l_t at all steps (B, T, J), or at some of them (N, J)."""
        if isinstance(location, Tensor):
            return exact(location if steps is None else _rows(location, steps))
        if self.network is None:
            raise ValueError(
                "Annotations need the layer's own pointer network: PointerSoftmax(..., network=PointerNetwork(Q, A))"
            )
        log_l: Tensor = self.network(location, steps)
        return log_l


class PointerNetwork(nn.Module):
    """The location softmax as a pointer network (paper §4.1): l_tj ∝ exp(v · tanh(W h_j + U query_t + b))."""

    def __init__(self, query: int, annotation: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = annotation if hidden is None else hidden
        self.key = nn.Linear(annotation, hidden)
        self.query = nn.Linear(query, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)  # a bias here would cancel in the softmax

    def forward(self, at: Annotations, steps: Tensor | None = None) -> Tensor:
        """log l at all steps (B, T, J), or at some of them (N, J)."""
        if steps is None:
            key, query, x_mask = self.key(at.h).unsqueeze(1), at.query, at.x_mask.unsqueeze(1)  # (B, 1, J, …)
        else:
            example = steps // at.query.shape[1]
            key, query, x_mask = self.key(at.h)[example], _rows(at.query, steps), at.x_mask[example]  # (N, J, …)
        e = self.score(torch.tanh(key + self.query(query).unsqueeze(-2))).squeeze(-1)  # (B, T, J) or (N, J)
        return masked_log_softmax(exact(e), x_mask)


class Switch(nn.Module):
    """The switching network d_t (paper §4.1, §5.3): an MLP from evidence to the logit of p(z_t = 1), the shortlist.

    a_1 = g(W_1 evidence + b_1), a_k = g(W_k a_{k-1} + b_k) + a_{k-1}, d_t = σ(inverse_temperature · (w · a + bias)).
    A positive bias starts the switch towards the shortlist (docs/departures.md has the sign's story).
    """

    def __init__(
        self,
        evidence: int,
        hidden: int,
        *,
        layers: int = 2,
        activation: Activation = "noisy-tanh",
        residual: bool = True,
        bias: float = 1.0,
        inverse_temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden if k else evidence, hidden) for k in range(layers))
        self.activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "noisy-tanh": NoisyTanh}[activation]()
        self.residual = residual
        self.last = nn.Linear(hidden if layers else evidence, 1)
        nn.init.constant_(self.last.bias, bias)
        self.inverse_temperature = inverse_temperature

    def forward(self, evidence: Tensor) -> Tensor:
        a = evidence
        for k, layer in enumerate(self.layers):
            upper = self.activation(layer(a))
            a = upper + a if self.residual and k > 0 else upper
        return self.inverse_temperature * exact(self.last(a)).squeeze(-1)


class _Held(nn.Module):
    """A switch that does not move."""

    logit: float

    def forward(self, evidence: Tensor) -> Tensor:
        return torch.full(evidence.shape[:-1], self.logit, dtype=exact(evidence).dtype, device=evidence.device)


class NeverPoint(_Held):
    """d_t held at 1: the layer is the plain softmax over the shortlist, the paper's baseline."""

    logit = math.inf


class AlwaysPoint(_Held):
    """d_t held at 0: the layer is a pointer network (Vinyals et al. 2015), without shortlist weights."""

    logit = -math.inf


class NoisyTanh(nn.Module):
    """Noisy tanh (Gulcehre et al. 2016b): the identity in [-1, 1]; beyond, almost flat, with noise while training.

    x - sgn(x) (α δ + s ξ), δ = |x| - 1, s = c (σ(δ²) - 0.5)², ξ ~ N(0, 1) in training and its mean, 0, at test. As
    -ξ is as likely as ξ, sgn(x) is left out of its term.
    """

    alpha, c = 1.05, 0.5

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return torch.lerp(x, x.clamp(-1, 1), self.alpha)
        return noisy_tanh(x, self.alpha, self.c)


def masked_log_softmax(e: Tensor, mask: Tensor) -> Tensor:
    """log softmax over the last axis where mask is True, -inf elsewhere; a row without any True is -inf, not NaN."""
    mask = mask.expand_as(e)
    alive = mask | ~mask.any(-1, keepdim=True)  # a dead row is computed as if it were whole, then struck out
    return e.masked_fill(~alive, -math.inf).log_softmax(-1).masked_fill(~mask, -math.inf)


def _copyable(location: Tensor | Annotations, step: Tensor) -> Tensor:
    """(B, T): is there any position that may be copied? `step` is anything of that shape."""
    if isinstance(location, Tensor):
        return (location > -math.inf).any(-1)
    return location.x_mask.any(-1, keepdim=True).expand(step.shape)


def _steps(mask: Tensor) -> Tensor:
    """Where mask (B, T) is True, as indices into its flattened form, (N,)."""
    return mask.flatten().nonzero().squeeze(1)


def _rows(x: Tensor, steps: Tensor) -> Tensor:
    """x (B, T, …) at some steps, (N, …)."""
    return distinct_rows(x.flatten(0, 1), steps)


def _different(candidates: Tensor, *more: Tensor) -> Tensor:
    """Candidate words, and more of them, each once and in order; no candidate at all is an error."""
    if candidates.numel() == 0:
        raise ValueError("the set of candidate words is empty: give at least one word id, or None for all words")
    different: Tensor = torch.cat([candidates, *more]).unique()
    return different


def _logsumexp(x: Tensor) -> Tensor:
    """logsumexp over the last axis whose gradient is 0, not NaN, at -inf and in rows of nothing but -inf."""
    nothing = (x == -math.inf).all(-1)
    return x.masked_fill(nothing.unsqueeze(-1), 0).logsumexp(-1).masked_fill(nothing, -math.inf)
