"""The processes of one run, on one machine or several, as `torchrun` starts them; or a single process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from pointing.errors import Deserted, Misuse
from pointing.system.program import process_count

Value = TypeVar("Value")


class Processes(NamedTuple):
    """All processes of a run, seen from one of them. Every method must be called in all processes."""

    rank: int  # of this process, from 0
    world_size: int  # number of processes
    device: torch.device  # of this process

    @property
    def first(self) -> bool:
        """True in the one process that writes files and messages."""
        return self.rank == 0

    def sum(self, numbers: Tensor) -> Tensor:
        """Adds up a tensor over all processes, in place."""
        if self.world_size > 1:
            dist.all_reduce(numbers)
        return numbers

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, by rank."""
        if self.world_size == 1:
            return [value]
        values = [value] * self.world_size
        dist.all_gather_object(values, value)
        return values

    @torch.no_grad()
    def sum_gradients(self, parameters: Mapping[str, Tensor]) -> None:
        """Adds up the gradients over all processes. A sparse sum has the rows that any process has."""
        if self.world_size == 1:
            return
        dense = [p for p in parameters.values() if p.grad is not None and not p.grad.is_sparse]
        flat = torch.cat([p.grad.reshape(-1) for p in dense if p.grad is not None])
        dist.all_reduce(flat)  # one message for all
        for p, grad in zip(dense, flat.split([p.numel() for p in dense]), strict=True):
            p.grad = grad.view_as(p)
        for p in parameters.values():
            if p.grad is not None and p.grad.is_sparse:
                p.grad = self._sum_sparse(p.grad.coalesce())

    def _sum_sparse(self, grad: Tensor) -> Tensor:
        row_counts = torch.zeros(self.world_size, dtype=torch.long, device=grad.device)
        row_counts[self.rank] = grad.indices().shape[1]
        counts = self.sum(row_counts).tolist()
        rows = self._gather_padded(grad.indices()[0], counts)
        values = self._gather_padded(grad.values(), counts)
        return torch.sparse_coo_tensor(rows.unsqueeze(0), values, grad.shape, check_invariants=False).coalesce()

    def _gather_padded(self, x: Tensor, counts: list[int]) -> Tensor:
        """The tensors of all processes, one below the other; `counts` are their lengths. All send the largest one."""
        padded = torch.cat([x, x.new_zeros(max(counts) - len(x), *x.shape[1:])])
        received = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(received, padded)
        return torch.cat([tensor[:count] for tensor, count in zip(received, counts, strict=True)])


@contextmanager
def processes(device: str = "auto") -> Iterator[Processes]:
    """The processes that torchrun started, or this one alone."""
    rank, world_size = int(os.environ.get("RANK", 0)), process_count()
    here = Processes(rank, world_size, _device(device))
    if world_size == 1:
        yield here
        return
    dist.init_process_group("nccl" if here.device.type == "cuda" else "gloo")
    try:
        yield here
    except RuntimeError as error:
        if not _is_of_distributed(error):
            raise
        raise Deserted("another process of this run has ended: see its message, or the system's log") from error
    finally:
        dist.destroy_process_group()


def _is_of_distributed(error: RuntimeError) -> bool:
    """True for what torch.distributed says when it cannot reach the other processes. Gloo's errors have no class."""
    classes = tuple(getattr(dist, name) for name in ("DistError", "DistBackendError") if hasattr(dist, name))
    return isinstance(error, classes) or "gloo" in str(error)


def _device(name: str) -> torch.device:
    """The device of this process; `auto` is a GPU if there is one. Processes of one machine take one GPU each."""
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    except RuntimeError as error:
        raise Misuse(f"device {name!r}: {str(error).splitlines()[0]}") from None
    if device.type not in ("cpu", "cuda"):
        raise Misuse(f"device {name!r}: choose auto, cpu or cuda")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise Misuse(f"device {name!r}: this machine has no GPU that torch can use")
        local = int(os.environ.get("LOCAL_RANK", 0))
        device = torch.device("cuda", local if device.index is None else device.index)
        torch.cuda.set_device(device)
    return device
