"""Several processes, on one machine or many, as `torchrun` starts them; one process is the same without the talk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from pointing.errors import Misuse

Thing = TypeVar("Thing")


class Processes(NamedTuple):
    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Is this the process that writes and speaks?"""
        return self.rank == 0

    def sum(self, numbers: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.world > 1:
            dist.all_reduce(numbers)
        return numbers

    def gather(self, mine: Thing) -> list[Thing]:
        """What every process has, in the order of their ranks."""
        if self.world == 1:
            return [mine]
        everything = [mine] * self.world
        dist.all_gather_object(everything, mine)
        return everything

    @torch.no_grad()
    def sum_gradients(self, parameters: Mapping[str, Tensor]) -> None:
        """Every process has the sum of all gradients after it; of sparse ones the union of the rows."""
        if self.world == 1:
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
        counts = torch.zeros(self.world, dtype=torch.long, device=grad.device)
        counts[self.rank] = grad.indices().shape[1]
        each = self.sum(counts).tolist()
        rows, values = grad.indices()[0], grad.values()
        missing = max(each) - len(rows)  # all must send as much
        rows = torch.cat([rows, rows.new_zeros(missing)])
        values = torch.cat([values, values.new_zeros(missing, *values.shape[1:])])
        all_rows, all_values = ([torch.empty_like(some) for _ in range(self.world)] for some in (rows, values))
        dist.all_gather(all_rows, rows)
        dist.all_gather(all_values, values)
        rows, values = (
            torch.cat([some[:count] for some, count in zip(sent, each, strict=True)]) for sent in (all_rows, all_values)
        )
        return torch.sparse_coo_tensor(rows.unsqueeze(0), values, grad.shape, check_invariants=False).coalesce()


@contextmanager
def processes(device: str = "auto") -> Iterator[Processes]:
    """This process among those that torchrun started, or alone."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    local = int(os.environ.get("LOCAL_RANK", 0))
    try:
        place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    except RuntimeError as error:
        raise Misuse(f"device {device!r}: {str(error).splitlines()[0]}") from None
    if place.type == "cuda":
        if not torch.cuda.is_available():
            raise Misuse(f"device {device!r}: this machine has no GPU that torch can use")
        place = torch.device("cuda", local if place.index is None else place.index)
        torch.cuda.set_device(place)
    if place.type not in ("cpu", "cuda"):
        raise Misuse(f"device {device!r}: choose auto, cpu or cuda")
    if world == 1:
        yield Processes(rank, world, place)
        return
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(rank, world, place)
    finally:
        dist.destroy_process_group()
