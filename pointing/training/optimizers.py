"""Adadelta and Adam that also take sparse gradients, row by row; clipping; the learning rate of each update.

With the large-vocabulary trick, only a few rows of an embedding table have a gradient. A dense step would read and
write the whole table and its statistics at every update. Here a row without a gradient stays as it is, and its
statistics do not decay (docs/departures.md). torch.optim.Adadelta and torch.optim.Adam refuse sparse gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim.adam import adam

from pointing.config import Training

NUMBERS_IN_CACHE = 2**16  # numbers of each tensor that Adadelta updates at a time


class RowOptimizer(torch.optim.Optimizer):
    """An optimiser for dense and sparse gradients. A subclass names its statistics and updates one parameter.

    `group["step"]` counts the steps of a parameter group.
    """

    statistics: ClassVar[tuple[str, str]]  # tensors of the parameter's shape that are kept in `state`

    def update(self, p: Tensor, grad: Tensor, statistics: list[Tensor], group: dict[str, Any]) -> None:
        """Changes a parameter, or some rows of one, and its statistics in place."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group({"step": 0, **param_group})
        for p in self.param_groups[-1]["params"]:
            self.state[p] = {name: torch.zeros_like(p) for name in self.statistics}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            group["step"] += 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                statistics = [self.state[p][name] for name in self.statistics]
                if p.grad.is_sparse:
                    self._update_rows(p, p.grad.coalesce(), statistics, group)
                else:
                    self.update(p, _in_the_order_of(p, p.grad), statistics, group)
        return loss

    def _update_rows(self, p: Tensor, grad: Tensor, statistics: list[Tensor], group: dict[str, Any]) -> None:
        rows = grad.indices()[0]
        p_rows, statistics_rows = p[rows], [tensor[rows] for tensor in statistics]
        self.update(p_rows, grad.values(), statistics_rows, group)
        for table, updated in zip([p, *statistics], [p_rows, *statistics_rows], strict=True):
            table.index_copy_(0, rows, updated)


class Adadelta(RowOptimizer):
    """Zeiler 2012, with the paper's ρ and ε as defaults."""

    statistics = ("squares", "deltas")  # running means of the squared gradient, and of the squared change

    def __init__(self, params: Any, lr: float = 1.0, rho: float = 0.95, eps: float = 1e-6) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps})

    def update(self, p: Tensor, grad: Tensor, statistics: list[Tensor], group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        for p_part, grad_part, squares, deltas in _parts(p, grad, *statistics):
            squares.mul_(rho).addcmul_(grad_part, grad_part, value=1 - rho)
            change = (deltas + eps).div_(squares + eps).sqrt_().mul_(grad_part)
            deltas.mul_(rho).addcmul_(change, change, value=1 - rho)
            p_part.sub_(change, alpha=group["lr"])


class Adam(RowOptimizer):
    """Kingma & Ba 2015; with weight decay it is AdamW (Loshchilov & Hutter 2019)."""

    statistics = ("means", "squares")  # running means of the gradient, and of its square

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, statistics: list[Tensor], group: dict[str, Any]) -> None:
        (means, squares), (beta1, beta2) = statistics, group["betas"]
        if group["weight_decay"]:
            p.mul_(1 - group["lr"] * group["weight_decay"])
        step = torch.tensor(float(group["step"] - 1), device=p.device)  # adam() adds 1
        adam(
            [p], [grad], [means], [squares], max_exp_avg_sqs=[], state_steps=[step],
            lr=group["lr"], beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=0.0,
            fused=True, amsgrad=False, maximize=False,
        )  # fmt: skip


def _in_the_order_of(p: Tensor, grad: Tensor) -> Tensor:
    """A gradient whose numbers lie in memory as the parameter's do, which torch's fused Adam takes for granted."""
    return grad if grad.stride() == p.stride() else torch.empty_like(p).copy_(grad)


def _parts(*tensors: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """The same parts of several tensors, small enough that all passes over one part stay in the processor's cache."""
    if tensors[0].is_cuda or not all(tensor.is_contiguous() for tensor in tensors):
        return [tensors]
    return zip(*(tensor.view(-1).split(NUMBERS_IN_CACHE) for tensor in tensors), strict=True)


def build_optimizer(parameters: Iterable[Tensor], settings: Training) -> RowOptimizer:
    """The optimiser that the settings name, with the learning rate of the first update."""
    rate = learning_rate(settings, 1)
    if settings.optimizer == "adadelta":
        return Adadelta(parameters, lr=rate)
    return Adam(parameters, lr=rate, weight_decay=settings.weight_decay)


def learning_rate(settings: Training, update: int) -> float:
    """The learning rate of an update, counted from 1: it rises linearly over `warmup`, then stays or decays."""
    highest = settings.learning_rate or (1.0 if settings.optimizer == "adadelta" else 1e-3)
    if update <= settings.warmup:
        return highest * update / settings.warmup
    if settings.decay == "inverse-sqrt":
        return float(highest * (max(1, settings.warmup) / update) ** 0.5)
    if settings.decay == "linear" and settings.updates:
        return highest * max(0.0, (settings.updates + 1 - update) / (settings.updates + 1 - settings.warmup))
    return highest


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], limit: float | None) -> Tensor:
    """The norm of the whole gradient; a gradient with a larger norm than `limit` is scaled down to it.

    torch.nn.utils.clip_grad_norm_ refuses sparse gradients.
    """
    gradients = list(_gradient_values(parameters))
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in gradients]))
    if limit is not None and norm > limit and norm.isfinite():
        torch._foreach_mul_(gradients, limit / norm)
    return norm


def _gradient_values(parameters: Iterable[Tensor]) -> Iterator[Tensor]:
    """The numbers of all gradients, which may be changed in place. Of a sparse gradient: its rows, each once."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()
            yield p.grad.values()
        elif p.grad is not None:
            yield p.grad
