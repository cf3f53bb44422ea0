"""The fast twin of the GRU decoder's step, for search on a CPU.

`GRUSearch.step` is the readable reference, which also runs on GPUs. This one computes the same numbers (a test holds
both together) from weights that are laid out for many small steps (`products.py`): products that read the same vector
are one product, and the attention's largest tensor stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pointing.kernels import tanh_, tanh_of_half_
from pointing.model.products import Products
from pointing.pointer_softmax import AdditiveScores

ATTENTION_NUMBERS_IN_CACHE = 2**18  # numbers of the attention's (B, K, J, A) tensor that are worked on at a time


class FastStep:
    """One step of K hypotheses of each of B sources, for as long as the weights stay as they are. It is read-only.

    tanh x is 2 σ(2 x) - 1. Where x is a sum of products, the factor 2 is in their weights, which changes no digit.
    """

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
        twice = 2 * attention.query.weight
        self.of_y = Products(*_gates(first.weight_ih, first.bias_ih), (from_y.weight, None))
        self.of_s = Products(*_gates(first.weight_hh, first.bias_hh))
        self.of_middle = Products((twice, None), *_gates(second.weight_hh, second.bias_hh))
        self.of_c = Products(*_gates(second.weight_ih, second.bias_ih), (from_c.weight, None))
        self.of_last = Products((from_s.weight, from_s.bias))
        self.score = 2 * attention.score.weight.detach().view(-1)

    def __call__(
        self, y_prev: Tensor, s: Tensor, keys: Tensor, h: Tensor, x_mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """s_t, readout, evidence, log l_t, (B, K, …) each, from y_prev (B, K, E), s (B, K, S), keys and h (B, J, A)."""
        B, K, S = s.shape
        s = s.view(B * K, S)  # as all below but the attention
        reset_update, new, by_y = self.of_y(y_prev.view(B * K, -1))
        middle = _step(reset_update, new, self.of_s(s), s)
        query, *recurrent = self.of_middle(middle)
        e = self._e(query.view(B, K, 1, -1), keys.unsqueeze(1))  # (B, K, J)
        log_l = e.masked_fill_(~x_mask.unsqueeze(1), -math.inf).log_softmax(-1)  # no source is all padding
        c = torch.bmm(log_l.exp(), h).view(B * K, -1)
        reset_update, new, by_c = self.of_c(c)
        s = _step(reset_update, new, recurrent, middle)
        readout, evidence = tanh_(self.of_last.all(s).add_(by_y).add_(by_c)), torch.cat([c, s], -1)
        return s.view(B, K, S), readout.view(B, K, -1), evidence.view(B, K, -1), log_l

    def _e(self, double_query: Tensor, keys: Tensor) -> Tensor:
        """e_tj = v · tanh(key_j + query), (B, K, J), but for a constant, from (B, K, 1, A) and (B, 1, J, A).

        v · tanh(x) = 2 v · σ(2 x) - sum of v, whose last term is the same for all positions: their softmax is too.
        """
        (B, K, _, A), J = double_query.shape, keys.shape[2]
        at_a_time = max(1, ATTENTION_NUMBERS_IN_CACHE // (K * J * A))
        if at_a_time < B:
            parts = zip(double_query.split(at_a_time), keys.split(at_a_time), strict=True)
            return torch.cat([self._e(*part) for part in parts])
        hidden = torch.add(double_query, keys, alpha=2).sigmoid_()
        return hidden.mul_(self.score).sum(-1)  # quicker than a product with one column


def _gates(weight: Tensor, bias: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """A GRU's weights and biases for `_step`: those of reset and update, then twice those of the new state."""
    S = len(bias) // 3
    return (weight[: 2 * S], bias[: 2 * S]), (2 * weight[2 * S :], 2 * bias[2 * S :])


def _step(reset_update: Tensor, new: Tensor, recurrent: Sequence[Tensor], s: Tensor) -> Tensor:
    """One step of a GRU from W x + b, U s + b, in two parts each, and s (M, S)."""
    reset, update = torch.sigmoid_(reset_update + recurrent[0]).chunk(2, -1)
    return torch.lerp(tanh_of_half_(torch.addcmul(new, reset, recurrent[1])), s, update)
