"""Autograd functions that do less work than the operations they stand for would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

IN_CACHE, AT_A_TIME = 2**19, 2**23  # numbers of a (steps, V) tensor worked on at a time: by passes, by products


def log_softmax_at(x: Tensor, weight: Tensor, bias: Tensor, column: Tensor) -> Tensor:
    """log softmax(x Wᵀ + b) at one column a row, (N,): x (N, R), weight (V, R), bias (V,), column (N,)."""
    log_p: Tensor = _LogSoftmaxAt.apply(*_autocast(x, weight, bias), column)  # type: ignore[no-untyped-call]
    return log_p


def distinct_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x[rows] for rows that are all different: the gradient is copied back, not added up, which costs far less."""
    some: Tensor = _DistinctRows.apply(x, rows)  # type: ignore[no-untyped-call]
    return some


def sparse_rows(weight: Tensor, rows: Tensor) -> Tensor:
    """weight[rows], whose gradient is sparse: neither pass touches the other rows, however many there are."""
    some: Tensor = _SparseRows.apply(weight, rows)  # type: ignore[no-untyped-call]
    return some


class _LogSoftmaxAt(torch.autograd.Function):
    """Holds one (N, V) tensor where log_softmax and nll hold three.

    The logits become exp(logits - their largest) in place; chunks of rows stay in the cache from pass to pass.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, column: Tensor) -> Tensor:
        p = torch.addmm(bias, x, weight.t())  # (N, V)
        gold = exact(p.gather(1, column.unsqueeze(1)).squeeze(1))
        largest, total = torch.empty_like(gold), torch.empty_like(gold)
        for some in _chunks(p, IN_CACHE):
            logits = exact(p[some])
            torch.amax(logits, 1, out=largest[some])
            torch.sum(logits.sub_(largest[some].unsqueeze(1)).exp_(), 1, out=total[some])
            if logits.dtype != p.dtype:
                p[some] = logits
        ctx.save_for_backward(x, weight, column, p, total)
        return gold - largest - total.log()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, column, p, total = ctx.saved_tensors
        grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
        grad_bias = torch.zeros(len(weight), dtype=total.dtype, device=x.device)
        buffer = torch.empty_like(p[: max(1, AT_A_TIME // len(weight))])
        scale = (grad / total).unsqueeze(1).neg().to(p.dtype)
        for some in _chunks(p, AT_A_TIME):
            grad_p = torch.mul(p[some], scale[some], out=buffer[: len(p[some])])
            grad_p.scatter_add_(1, column[some].unsqueeze(1), grad[some].unsqueeze(1).to(p.dtype))
            torch.mm(grad_p, weight, out=grad_x[some])
            if ctx.needs_input_grad[1]:  # a frozen shortlist costs a product less
                grad_weight.addmm_(grad_p.t(), x[some])
            grad_bias += grad_p.sum(0)
        return grad_x, grad_weight, grad_bias.to(weight.dtype), None


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = x.shape
        return x.index_select(0, rows)


class _DistinctRows(_Rows):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, rows, grad), None


class _SparseRows(_Rows):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(rows.unsqueeze(0), grad, ctx.shape, check_invariants=False), None


def _chunks(x: Tensor, numbers: int) -> Iterator[slice]:
    """Slices of x's rows with about so many numbers each."""
    rows = max(1, numbers // x.shape[1])
    return (slice(start, min(start + rows, len(x))) for start in range(0, len(x), rows))


def exact(x: Tensor) -> Tensor:
    """Probabilities are computed in float32 at least, whatever autocast made of the matrix products."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """What F.linear does to its inputs under autocast, for an autograd function of our own."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(tensor if tensor.dtype == torch.float64 else tensor.to(dtype) for tensor in tensors)
