"""The simpler simple recurrent unit (Kim et al. 2019), which reads the words before in a quick decoder.

f_t = σ(W_f x_t + b_f), c_t = f_t c_{t-1} + (1 - f_t) W x_t, output max(0, c_t). All matrix products lie outside the
loop over time: inside it are only products of numbers, whose gradient is computed by hand here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class SSRU(nn.Module):
    """The unit, after a LayerNorm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.forget_new = nn.Linear(width, 2 * width)
        self.last = nn.Linear(width, width)

    def all_steps(self, x: Tensor) -> Tensor:
        """(B, T, D)"""
        forget, new = self._gates(x)
        c: Tensor = _Recurrence.apply(forget.transpose(0, 1), new.transpose(0, 1))  # type: ignore[no-untyped-call]
        return self._out(c.transpose(0, 1))

    def start(self, x: Tensor) -> Tensor:
        """c before the first step, (B, K, D)."""
        return torch.zeros_like(x)

    def step(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step (B, K, D), and its c."""
        forget, new = self._gates(x)
        c = torch.addcmul(new, forget, c)
        return self._out(c), c

    def _gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """f and (1 - f) W x."""
        forget, new = self.forget_new(self.norm(x)).chunk(2, -1)
        forget = torch.sigmoid(forget)
        return forget, new * (1 - forget)

    def _out(self, c: Tensor) -> Tensor:
        out: Tensor = self.last(torch.relu(c))
        return out


class _Recurrence(torch.autograd.Function):
    """c_t = f_t c_{t-1} + u_t, c_0 = 0; all time-major (T, B, D)."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, u: Tensor) -> Tensor:
        c = torch.empty_like(u, memory_format=torch.contiguous_format)
        c[0] = u[0]
        for t in range(1, len(c)):
            torch.addcmul(u[t], f[t], c[t - 1], out=c[t])
        ctx.save_for_backward(f, c)
        return c

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        f, c = ctx.saved_tensors
        grad_u = grad.clone(memory_format=torch.contiguous_format)
        for t in range(len(c) - 1, 0, -1):
            grad_u[t - 1].addcmul_(f[t], grad_u[t])
        grad_f = torch.zeros_like(grad_u)
        torch.mul(grad_u[1:], c[:-1], out=grad_f[1:])
        return grad_f, grad_u
