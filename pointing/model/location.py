"""The location softmax l_t by scaled dot products, as one head of attention has it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pointing.kernels import exact
from pointing.pointer_softmax import masked_log_softmax


class Location(nn.Module):
    """e_tj = U s_t · W h_j / sqrt(width), l_t = softmax(e_t), c_t = Σ_j l_tj h_j."""

    def __init__(self, state: int, annotation: int, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(state, width), nn.Linear(annotation, width)

    def forward(self, s: Tensor, keys: Tensor, h: Tensor, x_mask: Tensor) -> tuple[Tensor, Tensor]:
        """log l (B, T, J) and c (B, T, A), from states s (B, T, S), keys W h (B, J, width) and h (B, J, A)."""
        e = exact(torch.bmm(self.query(s), keys.mT)) / math.sqrt(keys.shape[-1])
        log_l = masked_log_softmax(e, x_mask.unsqueeze(1))
        return log_l, torch.bmm(log_l.exp().to(h.dtype), h)
