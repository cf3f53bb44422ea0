"""The fast twin of the GRU decoder's step, for search on a CPU.

`GRUSearch.step` is the readable reference, which also runs on GPUs. This one computes the same numbers (a test holds
both together) from weights that are laid out for many small steps (`products.py`): products that read the same vector
are one product, and the attention's largest tensor stays in the cache.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pointing.kernels import tanh_
from pointing.model.products import Products
from pointing.model.recurrence import step
from pointing.pointer_softmax import AdditiveScores

ATTENTION_NUMBERS_IN_CACHE = 2**18  # numbers of the attention's (B, K, J, A) tensor that are worked on at a time


class FastStep:
    """One step of K hypotheses of each of B sources, for as long as the weights stay as they are. It is read-only."""

    def __init__(
        self,
        first: nn.GRUCell,
        attention: AdditiveScores,
        second: nn.GRUCell,
        from_s: nn.Linear,
        from_y: nn.Linear,
        from_c: nn.Linear,
    ) -> None:
        """From the decoder's two GRUs with the attention between them, and the three parts of the deep output."""
        self.of_y = Products([first.weight_ih, from_y.weight], [first.bias_ih, None])
        self.of_s = Products([first.weight_hh], [first.bias_hh])
        self.of_middle = Products([attention.query.weight, second.weight_hh], [None, second.bias_hh])
        self.of_c = Products([second.weight_ih, from_c.weight], [second.bias_ih, None])
        self.of_last = Products([from_s.weight], [from_s.bias])
        self.score = 2 * attention.score.weight.detach().view(-1)

    def __call__(
        self, y_prev: Tensor, s: Tensor, keys: Tensor, h: Tensor, x_mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """s_t, readout, evidence, log l_t, (B, K, …) each, from y_prev (B, K, E), s (B, K, S), keys and h (B, J, A)."""
        B, K, _ = s.shape
        s = s.flatten(0, 1)  # (B K, S), as all below but the attention
        gates, by_y = self.of_y(y_prev.flatten(0, 1))
        recurrent = self.of_s.all(s)
        middle = step(gates, recurrent, s)
        query, recurrent = self.of_middle(middle)
        e = self._e(query.view(B, K, -1), keys)  # (B, K, J); every source has a position, so no row is all padding
        log_l = e.masked_fill_(~x_mask.unsqueeze(1), -math.inf).log_softmax(-1)
        c = torch.bmm(log_l.exp(), h).flatten(0, 1)
        gates, by_c = self.of_c(c)
        s = step(gates, recurrent, middle)
        readout, evidence = tanh_(self.of_last.all(s).add_(by_y).add_(by_c)), torch.cat([c, s], -1)
        return s.view(B, K, -1), readout.view(B, K, -1), evidence.view(B, K, -1), log_l

    def _e(self, query: Tensor, keys: Tensor) -> Tensor:
        """e_tj = v · tanh(key_j + query), (B, K, J), a few sources at a time, but for a constant.

        v · tanh(x) = 2 v · σ(2 x) - sum of v, whose last term is the same for all positions: their softmax is too.
        """
        (B, K, A), J = query.shape, keys.shape[1]
        e = query.new_empty(B, K * J)
        at_a_time = max(1, ATTENTION_NUMBERS_IN_CACHE // (K * J * A))
        buffer = query.new_empty(min(B, at_a_time), K, J, A)
        for start in range(0, B, at_a_time):
            rows = slice(start, min(start + at_a_time, B))
            hidden = buffer[: rows.stop - start]
            torch.add(keys[rows].unsqueeze(1), query[rows].unsqueeze(2), out=hidden).mul_(2).sigmoid_()
            torch.mv(hidden.view(-1, A), self.score, out=e[rows].view(-1))
        return e.view(B, K, J)
