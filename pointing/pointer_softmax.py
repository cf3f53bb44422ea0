"""The paper's output layer (§4), alone: a shortlist softmax, a location softmax, and the switch between them.

It sits on top of any decoder. What it asks of one is, for every step t, a readout (what the shortlist softmax
reads), evidence (what the switch reads), and where it looks in the source: either the log of attention weights
that the decoder has anyway, or annotations for the layer's own pointer network to point at.

B batch, T steps, J source positions, V shortlist words, C candidate words; widths R readout, E evidence, Q query, A
annotation. A choice is one number: a word's id below V, or V + the position whose word is copied.

What the layer cannot take is refused with a ValueError (`layer_checks`). docs/layer.md has examples.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing import layer_checks as check
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
    Give it a `PointerNetwork` of its own where the decoder has no attention to be reused, and a `shortlist` where the
    model has an output matrix already, which may be tied to its embeddings: it is shared, not copied. With
    `check_values=False` it does not look for wrong numbers in its arguments, such as NaN or a target that is no choice.
    """

    def __init__(
        self,
        words: int,
        readout: int,
        switch: Switch | NeverPoint | AlwaysPoint,
        network: PointerNetwork | None = None,
        *,
        shortlist: nn.Linear | None = None,
        check_values: bool = True,
    ) -> None:
        check.instance("switch", switch, Switch, NeverPoint, AlwaysPoint)
        check.instance("network", network, PointerNetwork, optional=True)
        check.widths(readout=readout)
        check.size("words", words, least=0 if isinstance(switch, AlwaysPoint) else 1)
        check.shortlist(shortlist, words, readout, is_used=not isinstance(switch, AlwaysPoint))
        super().__init__()
        self.words = words
        self.shortlist = None if isinstance(switch, AlwaysPoint) else shortlist or nn.Linear(readout, words)
        self.switch = switch
        self.network = network
        self.check_values = check_values

    @property
    def has_switch(self) -> bool:
        """True if the layer computes d_t, False if d_t is held at 1 or at 0."""
        return isinstance(self.switch, Switch)

    @property
    def has_shortlist(self) -> bool:
        """False if d_t is held at 0: the layer only points."""
        return self.shortlist is not None

    @property
    def can_point(self) -> bool:
        """False if d_t is held at 1: the layer is the plain softmax."""
        return not isinstance(self.switch, NeverPoint)

    # Training: what was chosen is known, so only its probability is computed.

    def log_likelihood(
        self,
        readout: Tensor,
        evidence: Tensor,
        log_l: Tensor | Annotations,
        target: Tensor,
        mask: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """log p(y_t, z_t | (y, z)_<t, x) with z_t observed (paper §4), (B, T); 0 at padded steps.

        log p(z_t) + (z_t ? log w_t[word] : log l_t[position]), each softmax only at the steps that use it.
        `log_l` is (B, T, J), -inf where nothing may be copied, or Annotations; `mask` (B, T) is True at
        real steps. `candidates` (C,) are the only shortlist words that compete (the large-vocabulary trick); the
        target's own words always do. The shortlist's gradients are then sparse, for an optimiser that takes them
        (SparseAdam, Adagrad, SGD).
        """
        self._check(readout, evidence, log_l, target=target, mask=mask, candidates=candidates)
        mask = torch.ones_like(target, dtype=torch.bool) if mask is None else mask
        z = target < self.words  # (B, T), True = shortlist
        real, at_word, at_position = _steps(mask), _steps(mask & z), _steps(mask & ~z)
        evidence = evidence if self.has_switch else evidence[..., :1]  # a held switch reads only the shape
        switch = self._switch(_rows(evidence, real), _rows(_copyable(log_l, target), real))  # (N,)
        log_d = F.logsigmoid(torch.where(_rows(z, real), switch, -switch))  # (N,)
        log_w = self._log_w_of(_rows(readout, at_word), _rows(target, at_word), candidates)
        position = _rows(target, at_position) - self.words
        log_l_of = self._log_l(log_l, at_position).gather(-1, position.unsqueeze(-1)).squeeze(-1)
        log_p = log_d.new_zeros(target.numel()).index_copy(0, real, log_d)
        log_p = log_p.index_add(0, at_word, log_w).index_add(0, at_position, log_l_of)
        return log_p.view_as(target)

    def log_marginal(
        self,
        readout: Tensor,
        evidence: Tensor,
        log_l: Tensor | Annotations,
        source_words: Tensor,
        y: Tensor,
        mask: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """log p(y_t | y_<t, x) with z_t summed out, (B, T): for when no choice was observed. Not the paper's.

        The probability of the word y_t by the shortlist plus that of every position that holds it. `source_words`
        (B, J) names the source's words: a shortlist id, or V + the first position of the same word; so does `y` (B, T).
        """
        self._check(readout, evidence, log_l, source_words=source_words, y=y, mask=mask, candidates=candidates)
        mask = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
        real = _steps(mask)
        word = _rows(y, real)  # (N,)
        switch = self._switch(_rows(evidence, real), _rows(_copyable(log_l, y), real))  # (N,)
        in_shortlist = _steps(word < self.words)
        log_w = self._log_w_of(_rows(readout, real[in_shortlist]), word[in_shortlist], candidates)
        by_word = F.logsigmoid(switch) + log_w.new_full(word.shape, -math.inf).index_copy(0, in_shortlist, log_w)
        same = source_words[real // y.shape[1]] == word.unsqueeze(1)  # (N, J)
        log_l_of = self._log_l(log_l, real).masked_fill(~same, -math.inf)
        by_position = F.logsigmoid(-switch).unsqueeze(1) + log_l_of  # (N, J)
        log_p = _logsumexp(torch.cat([by_word.unsqueeze(1), by_position], 1))
        return log_p.new_zeros(y.numel()).index_copy(0, real, log_p).view_as(y)

    # Test: everything that could be chosen.

    def forward(
        self, readout: Tensor, evidence: Tensor, log_l: Tensor | Annotations, candidates: Tensor | None = None
    ) -> Tensor:
        """The whole log f_t, (B, T, V + J); -inf at words that are no candidates and at masked positions."""
        self._check(readout, evidence, log_l, candidates=candidates)
        candidates = None if candidates is None else _different(candidates)
        by_word, by_position = self._log_f(readout, evidence, log_l, candidates)
        if candidates is not None:
            all_words = by_word.new_full((*by_word.shape[:-1], self.words), -math.inf)
            by_word = all_words.index_copy(-1, candidates, by_word)
        return torch.cat([by_word, by_position], -1)

    def top(
        self, k: int, readout: Tensor, evidence: Tensor, log_l: Tensor | Annotations, candidates: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The k most probable choices, best first: (log f_t, choice), both (B, T, k). k = 1 is the paper's argmax."""
        self._check(readout, evidence, log_l, candidates=candidates)
        candidates = None if candidates is None else _different(candidates)
        log_f = torch.cat(self._log_f(readout, evidence, log_l, candidates), -1)  # (B, T, C + J)
        check.size("k", k, least=1, most=log_f.shape[-1], advice="there are no more words and positions to choose from")
        log_p, choice = log_f.topk(k, -1)
        if candidates is not None:
            column = choice.clamp(max=len(candidates) - 1)
            pointer = choice - len(candidates) + self.words
            choice = torch.where(choice < len(candidates), candidates[column], pointer)
        return log_p, choice

    def marginalize(self, log_f: Tensor, source_words: Tensor) -> Tensor:
        """log f_t with all columns of the same word summed into one, the others -inf, (B, T, V + J). Not the paper's.

        The sum stands in the column that `source_words` (B, J) gives: a shortlist id, or V + the first position.
        """
        check.inputs({"log_f": log_f, "source_words": source_words}, {}, self.words, self.check_values)
        by_word, by_position = log_f.split([self.words, source_words.shape[1]], -1)
        column = source_words.unsqueeze(1).expand_as(by_position)  # (B, T, J)
        log_p = torch.cat([by_word, torch.full_like(by_position, -math.inf)], -1)
        largest = log_p.scatter_reduce(-1, column, by_position, "amax")
        finite = largest.masked_fill(largest == -math.inf, 0)
        total = (log_p - finite).exp().scatter_add(-1, column, (by_position - finite.gather(-1, column)).exp())
        return finite + total.log()

    # The parts.

    def _check(self, readout: Tensor, evidence: Tensor, log_l: Tensor | Annotations, **others: Tensor | None) -> None:
        """Refuses arguments that the layer cannot take; those that a held part does not read may have any width."""
        reads = {"R": self.shortlist, "E": self.switch.first}
        if self.network is not None:
            reads |= {"Q": self.network.query, "A": self.network.key}
        location = log_l._asdict() if isinstance(log_l, Annotations) else {"log_l": log_l}
        given = {"readout": readout, "evidence": evidence, **location, **others}
        check.inputs(given, reads, self.words, self.check_values)

    def _log_f(
        self, readout: Tensor, evidence: Tensor, log_l: Tensor | Annotations, candidates: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """log d_t w_t (B, T, C) and log (1 - d_t) l_t (B, T, J)."""
        switch = self._switch(evidence, _copyable(log_l, evidence[..., 0])).unsqueeze(-1)  # (B, T, 1)
        if self.shortlist is None:
            C = self.words if candidates is None else len(candidates)
            log_w = switch.new_full((*switch.shape[:-1], C), -math.inf)
        else:
            log_w = exact(F.linear(readout, *self._weights(candidates))).log_softmax(-1)
        return F.logsigmoid(switch) + log_w, F.logsigmoid(-switch) + self._log_l(log_l)

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
        bias = weight.new_zeros(self.words) if bias is None else bias
        if candidates is None:
            return weight, bias
        return sparse_rows(weight, candidates), sparse_rows(bias, candidates)

    def _log_l(self, log_l: Tensor | Annotations, steps: Tensor | None = None) -> Tensor:
        """log l_t at all steps (B, T, J), or at some of them (N, J)."""
        if isinstance(log_l, Tensor):
            return exact(log_l if steps is None else _rows(log_l, steps))
        assert self.network is not None
        pointed: Tensor = self.network(log_l, steps)
        return pointed


class AdditiveScores(nn.Module):
    """e_tj = v · tanh(W h_j + U query_t + b): how well a query fits each source position.

    The attention of a decoder (paper §3) and the pointer network (§4.1) both start from these scores.
    """

    def __init__(self, query: int, annotation: int, hidden: int | None = None) -> None:
        hidden = annotation if hidden is None else hidden
        check.widths(query=query, annotation=annotation, hidden=hidden)
        super().__init__()
        self.key = nn.Linear(annotation, hidden)
        self.query = nn.Linear(query, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)  # a bias here would cancel in the softmax

    def scores(self, keys: Tensor, query: Tensor) -> Tensor:
        """e_t (…, J) from keys W h_j + b (…, J, hidden) and queries (…, Q)."""
        e: Tensor = self.score(torch.tanh(keys + self.query(query).unsqueeze(-2))).squeeze(-1)
        return exact(e)


class PointerNetwork(AdditiveScores):
    """The location softmax as a pointer network (paper §4.1): l_t = softmax(e_t)."""

    def forward(self, at: Annotations, steps: Tensor | None = None) -> Tensor:
        """log l at all steps (B, T, J), or at some of them (N, J)."""
        check.instance("at", at, Annotations)
        check.inputs(at._asdict(), {"Q": self.query, "A": self.key})
        keys = self.key(at.h)  # (B, J, hidden)
        if steps is None:
            return masked_log_softmax(self.scores(keys.unsqueeze(1), at.query), at.x_mask.unsqueeze(1))
        example = steps // at.query.shape[1]
        return masked_log_softmax(self.scores(keys[example], _rows(at.query, steps)), at.x_mask[example])


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
        check.widths(evidence=evidence, hidden=hidden)
        check.switch(layers, activation, ACTIVATIONS, bias, inverse_temperature)
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden if k else evidence, hidden) for k in range(layers))
        self.activation = ACTIVATIONS[activation]()
        self.residual = residual
        self.last = nn.Linear(hidden if layers else evidence, 1)
        nn.init.constant_(self.last.bias, bias)
        self.inverse_temperature = inverse_temperature

    @property
    def first(self) -> nn.Linear:
        """The matrix that reads the evidence."""
        first = next(iter(self.layers), self.last)
        assert isinstance(first, nn.Linear)
        return first

    def forward(self, evidence: Tensor) -> Tensor:
        a = evidence
        for k, layer in enumerate(self.layers):
            upper = self.activation(layer(a))
            a = upper + a if self.residual and k > 0 else upper
        return self.inverse_temperature * exact(self.last(a)).squeeze(-1)


class _Held(nn.Module):
    """A switch whose logit is constant."""

    logit: float
    first = None  # no matrix reads the evidence

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


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "noisy-tanh": NoisyTanh}


def masked_log_softmax(e: Tensor, mask: Tensor) -> Tensor:
    """log softmax over the last axis where mask is True, -inf elsewhere; a row without any True is -inf, not NaN.

    The mask has as many axes as e, of the same size or of size 1.
    """
    check.masked(e, mask)
    mask = mask.expand_as(e)
    alive = mask | ~mask.any(-1, keepdim=True)  # a row without any True is computed as if it were all True
    return e.masked_fill(~alive, -math.inf).log_softmax(-1).masked_fill(~mask, -math.inf)


def _copyable(log_l: Tensor | Annotations, like: Tensor) -> Tensor:
    """(B, T): True where at least one position may be copied. `like` is any tensor of that shape."""
    if isinstance(log_l, Tensor):
        return (log_l > -math.inf).any(-1)
    return log_l.x_mask.any(-1, keepdim=True).expand(like.shape)


def _steps(mask: Tensor) -> Tensor:
    """Where mask (B, T) is True, as indices into its flattened form, (N,)."""
    return mask.flatten().nonzero().squeeze(1)


def _rows(x: Tensor, steps: Tensor) -> Tensor:
    """The rows of x (B, T, …) at the given steps, (N, …)."""
    return distinct_rows(x.flatten(0, 1), steps)


def _different(candidates: Tensor, *more: Tensor) -> Tensor:
    """All words of `candidates` and of `more`, each once, sorted."""
    different: Tensor = torch.cat([candidates, *more]).unique()
    return different


def _logsumexp(x: Tensor) -> Tensor:
    """logsumexp over the last axis; its gradient is 0, not NaN, at -inf, also in rows that are all -inf."""
    empty = (x == -math.inf).all(-1)
    return x.masked_fill(empty.unsqueeze(-1), 0).logsumexp(-1).masked_fill(empty, -math.inf)
