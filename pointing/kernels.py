"""Autograd functions that give the same results as PyTorch's own operations with less work or less memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

TRAINING_LOGITS_IN_CACHE = 2**19  # numbers of a (steps, V) tensor that are worked on at a time
_MINUS_ONE = torch.tensor(-1.0, device="cpu")  # a number of Python would be made a tensor, and cast, at every call


def log_softmax_at(x: Tensor, weight: Tensor, bias: Tensor, column: Tensor) -> Tensor:
    """log softmax(x Wᵀ + b) at one column of each row, (N,): x (N, R), weight (V, R), bias (V,), column (N,)."""
    log_p: Tensor = _LogSoftmaxAt.apply(*_autocast(x, weight, bias), column)  # type: ignore[no-untyped-call]
    return log_p


def distinct_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x[rows] for rows that are all different: the gradient is copied back, not added up, which costs far less."""
    selected: Tensor = _Rows.apply(x, rows, False)  # type: ignore[no-untyped-call]
    return selected


def sparse_rows(weight: Tensor, rows: Tensor) -> Tensor:
    """weight[rows], whose gradient is sparse: neither pass touches the other rows, however many there are."""
    selected: Tensor = _Rows.apply(weight, rows, True)  # type: ignore[no-untyped-call]
    return selected


def noisy_tanh(x: Tensor, alpha: float, c: float) -> Tensor:
    """x - α d - c (σ(d²) - 0.5)² ξ with d = x - clamp(x, -1, 1), ξ ~ N(0, 1)."""
    y: Tensor = _NoisyTanh.apply(x, alpha, c)  # type: ignore[no-untyped-call]
    return y


def tanh_(x: Tensor) -> Tensor:
    """tanh x = 2 σ(2 x) - 1 in place, without gradient: PyTorch computes σ ten times faster on a CPU."""
    return tanh_of_half_(x.add_(x))


def tanh_of_half_(x: Tensor) -> Tensor:
    """tanh(x / 2) = 2 σ(x) - 1 in place, without gradient."""
    return torch.add(_MINUS_ONE, x.sigmoid_(), alpha=2, out=x)


class _LogSoftmaxAt(torch.autograd.Function):
    """Keeps one (N, V) tensor, where log_softmax and nll_loss keep three, and passes over it two times less.

    The logits become p = exp(logits - their largest) in place, a few rows at a time, so that these stay in the cache.
    The gradient of the logits is -(grad / total) (p - total at the column), row by row. `forward` stores the second
    factor in p; `backward` multiplies the first factor, one number for each row, into x, which is narrower than p.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, column: Tensor) -> Tensor:
        p = torch.addmm(bias, x, weight.t())  # (N, V)
        gold = exact(p.gather(1, column.unsqueeze(1)).squeeze(1))
        largest, total = torch.empty_like(gold), torch.empty_like(gold)
        for rows in _chunks(p):
            logits = exact(p[rows])
            torch.amax(logits, 1, out=largest[rows])
            torch.sum(logits.sub_(largest[rows].unsqueeze(1)).exp_(), 1, out=total[rows])
            if logits.dtype != p.dtype:
                p[rows] = logits
        gold -= largest
        at_gold = (gold.exp() - total).clamp_(min=torch.finfo(p.dtype).min)  # float16 ends at 65,504
        ctx.save_for_backward(x, weight, p.scatter_(1, column.unsqueeze(1), at_gold.unsqueeze(1).to(p.dtype)), total)
        return gold - total.log()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, p, total = ctx.saved_tensors
        factor = (grad / total).neg().unsqueeze(1).to(p.dtype)
        grad_weight = torch.mm(p.t(), x * factor) if ctx.needs_input_grad[1] else None
        return torch.mm(p, weight).mul_(factor), grad_weight, torch.mm(p.t(), factor).squeeze(1), None


class _NoisyTanh(torch.autograd.Function):
    """Keeps one tensor for the backward pass, the slope.

    It is 1 inside [-1, 1], and outside 1 - α - 4 c ξ s σ(d²) (1 - σ(d²)) d with s = σ(d²) - 0.5.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float, c: float) -> Tensor:
        hard = x.clamp(-1, 1)
        y = torch.lerp(x, hard, alpha)
        d = torch.sub(x, hard, out=hard)
        sigma = (d * d).sigmoid_()
        spread = sigma - 0.5
        noise = torch.randn_like(x).mul_(spread)
        y.addcmul_(noise, spread, value=-c)
        bend = torch.ops.aten.sigmoid_backward(noise.mul_(d), sigma)
        ctx.save_for_backward(bend.mul_(-4 * c).add_(1 - alpha).masked_fill_(d == 0, 1))
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


class _Rows(torch.autograd.Function):
    """x[rows]. The gradient is sparse, or a table of zeros into which its rows are copied."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, sparse: bool) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape, ctx.sparse = x.shape, sparse
        return x.index_select(0, rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (rows,) = ctx.saved_tensors
        if ctx.sparse:
            return torch.sparse_coo_tensor(rows.unsqueeze(0), grad, ctx.shape, check_invariants=False), None, None
        return grad.new_zeros(ctx.shape).index_copy_(0, rows, grad), None, None


def _chunks(x: Tensor) -> Iterator[slice]:
    """Slices of rows of x, each small enough to stay in the cache."""
    rows = max(1, TRAINING_LOGITS_IN_CACHE // x.shape[1])
    return (slice(start, min(start + rows, len(x))) for start in range(0, len(x), rows))


def exact(x: Tensor) -> Tensor:
    """x in float32 at least: probabilities are computed so, even if autocast made the matrix products float16."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Casts the inputs of an autograd function of our own as autocast casts those of F.linear."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(tensor if tensor.dtype == torch.float64 else tensor.to(dtype) for tensor in tensors)
