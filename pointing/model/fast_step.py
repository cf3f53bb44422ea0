"""The decoder's step for search: what Seq2Seq.step computes, with its weights laid out for many small steps.

Products that read the same vector are one, the weights lie as the product reads them, and the attention's largest
tensor stays in the cache. For inference only.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pointing.model.recurrence import step
from pointing.model.seq2seq import Seq2Seq, Source
from pointing.pointer_softmax import masked_log_softmax

IN_CACHE = 2**18  # numbers of the attention's (B, K, J, A) tensor worked on at a time


class Stepper:
    """stepper(y_prev, s, source) is model.step(y_prev, s, source), for as long as the weights stay as they are."""

    def __init__(self, model: Seq2Seq) -> None:
        decoder, attention = model.decoder, model.decoder.attention
        first, second = decoder.first, decoder.second
        self.of_y = _Products([first.weight_ih, model.from_y.weight], [first.bias_ih, None])
        self.of_s = _Products([first.weight_hh], [first.bias_hh])
        self.of_middle = _Products([attention.query.weight, second.weight_hh], [None, second.bias_hh])
        self.of_c = _Products([second.weight_ih, model.from_c.weight], [second.bias_ih, None])
        self.of_last = _Products([model.from_s.weight], [model.from_s.bias])
        self.score = attention.score.weight.view(-1)

    def __call__(self, y_prev: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """s_t, readout, evidence, log l_t of K hypotheses of each source, (B, K, …) each."""
        B, K, _ = s.shape
        s = s.flatten(0, 1)  # (B K, S), as all below but the attention
        gates, by_y = self.of_y(y_prev.flatten(0, 1))
        (recurrent,) = self.of_s(s)
        middle = step(gates, recurrent, s)
        query, recurrent = self.of_middle(middle)
        log_l = masked_log_softmax(self._e(query.view(B, K, -1), source), source.x_mask.unsqueeze(1))  # (B, K, J)
        c = torch.bmm(log_l.exp(), source.h).flatten(0, 1)
        gates, by_c = self.of_c(c)
        s = step(gates, recurrent, middle)
        (by_s,) = self.of_last(s)
        readout, evidence = (by_s + by_y).add_(by_c).tanh_(), torch.cat([c, s], -1)
        return s.view(B, K, -1), readout.view(B, K, -1), evidence.view(B, K, -1), log_l

    def _e(self, query: Tensor, source: Source) -> Tensor:
        """e_tj = v · tanh(key_j + query), (B, K, J), some sources at a time."""
        (B, K, A), J = query.shape, source.keys.shape[1]
        e = query.new_empty(B, K * J)
        at_a_time = max(1, IN_CACHE // (K * J * A))
        buffer = query.new_empty(min(B, at_a_time), K, J, A)
        for start in range(0, B, at_a_time):
            some = slice(start, min(start + at_a_time, B))
            hidden = buffer[: some.stop - start]
            torch.add(source.keys[some].unsqueeze(1), query[some].unsqueeze(2), out=hidden).tanh_()
            torch.mv(hidden.view(-1, A), self.score, out=e[some].view(-1))
        return e.view(B, K, J)


class _Products:
    """x → W x + b for several W and b at once; b is one more row of W, which spares copying it to every row."""

    def __init__(self, weights: list[Tensor], biases: list[Tensor | None]) -> None:
        self.widths = [len(weight) for weight in weights]
        parts = [w.new_zeros(len(w)) if b is None else b for w, b in zip(weights, biases, strict=True)]
        self.weight = torch.cat([torch.cat(weights).t(), torch.cat(parts).unsqueeze(0)])

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = torch.mm(F.pad(x, (0, 1), value=1.0), self.weight).split(self.widths, -1)
        return parts
