"""Adadelta and Adam that also take sparse gradients, row by row, and the gradient's norm.

With the large-vocabulary trick a table has gradients at a few of its rows. A dense step would read and write the whole
table and its statistics at every update. Here a row without a gradient is left as it is: its statistics do not decay
(docs/departures.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.optim.adam import adam

from pointing.config import Training

IN_CACHE = 2**16  # numbers of a parameter that are updated at a time


class Adadelta:
    """Zeiler 2012, with the paper's ρ and ε."""

    slots, rate = ("squares", "deltas"), 1.0
    rho, epsilon = 0.95, 1e-6

    def update(self, p: Tensor, grad: Tensor, slots: list[Tensor], rate: float, updates: int) -> None:
        rho, epsilon = self.rho, self.epsilon
        for p, grad, squares, deltas in zip(*(_pieces(some) for some in (p, grad, *slots)), strict=True):  # noqa: B020
            squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
            step = (deltas + epsilon).div_(squares + epsilon).sqrt_().mul_(grad)
            deltas.mul_(rho).addcmul_(step, step, value=1 - rho)
            p.sub_(step, alpha=rate)


class Adam:
    """Kingma & Ba 2015; with decay of the weights as in AdamW (Loshchilov & Hutter 2019)."""

    slots, rate = ("means", "squares"), 1e-3
    betas: ClassVar = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}

    def __init__(self, weight_decay: float = 0.0) -> None:
        self.weight_decay = weight_decay

    def update(self, p: Tensor, grad: Tensor, slots: list[Tensor], rate: float, updates: int) -> None:
        if self.weight_decay:
            p.mul_(1 - rate * self.weight_decay)
        means, squares = slots
        fixed = {"amsgrad": False, "weight_decay": 0.0, "maximize": False}
        steps = [torch.tensor(float(updates - 1), device=p.device)]  # before this one
        adam([p], [grad], [means], [squares], [], steps, fused=True, lr=rate, **self.betas, **fixed)  # type: ignore[arg-type]


class Optimizer:
    """The parameters' updates; `slots` is all that must be kept between two of them."""

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], settings: Training) -> None:
        self.parameters = dict(parameters)
        self.settings = settings
        self.rule: Adadelta | Adam
        if settings.optimizer == "adadelta":
            self.rule = Adadelta()
        else:
            self.rule = Adam(settings.weight_decay if settings.optimizer == "adamw" else 0.0)
        self.slots = {
            f"{slot}.{name}": torch.zeros_like(p) for name, p in self.parameters.items() for slot in self.rule.slots
        }

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 1: up in a line, then flat or down."""
        settings = self.settings
        highest = settings.learning_rate or self.rule.rate
        if update <= settings.warmup:
            return highest * update / settings.warmup
        if settings.decay == "inverse-sqrt":
            return float(highest * (max(1, settings.warmup) / update) ** 0.5)
        if settings.decay == "linear" and settings.updates:
            return highest * max(0.0, (settings.updates + 1 - update) / (settings.updates + 1 - settings.warmup))
        return highest

    @torch.no_grad()
    def update(self, update: int) -> None:
        """Moves the parameters by their gradients, which are then gone."""
        rate = self.rate(update)
        for name, p in self.parameters.items():
            slots = [self.slots[f"{slot}.{name}"] for slot in self.rule.slots]
            if p.grad is None:
                continue
            if p.grad.is_sparse:
                whole_grad = p.grad.coalesce()
                rows, grad = whole_grad.indices()[0], whole_grad.values()
                some, some_slots = p[rows], [slot[rows] for slot in slots]
                self.rule.update(some, grad, some_slots, rate, update)
                for whole, part in zip([p, *slots], [some, *some_slots], strict=True):
                    whole.index_copy_(0, rows, part)
            else:
                self.rule.update(p, p.grad, slots, rate, update)
            p.grad = None


@torch.no_grad()
def clip(parameters: Mapping[str, Tensor], norm: float | None) -> Tensor:
    """The norm of the whole gradient, which is scaled down to at most `norm`."""
    gradients = list(values(parameters))
    total: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in gradients]))
    if norm is not None and total > norm and total.isfinite():
        torch._foreach_mul_(gradients, norm / total)
    return total


def values(parameters: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """The gradients' numbers, of sparse ones those that are there, each row once; to be changed in place."""
    for p in parameters.values():
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()
            yield p.grad.values()
        elif p.grad is not None:
            yield p.grad


def _pieces(x: Tensor) -> Iterator[Tensor]:
    """A tensor's numbers, so many at a time that all passes over them stay in the cache."""
    flat = x.view(-1)
    return (flat,) if flat.is_cuda else flat.split(IN_CACHE)  # type: ignore[return-value]
