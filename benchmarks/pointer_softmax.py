"""What the pointer softmax costs beside a plain softmax, one training step (forward + backward) of the output layer.

    python benchmarks/pointer_softmax.py

The widths are those of the paper's NMT (§5.3, dl4mt): readout 500, state 1024, annotation 2048, batch 32. In the padded
batch some steps are padding and some are pointed. The plain layer is nn.Linear + cross_entropy with ignore_index on the
same batch, as usual. Cases take turns in one process, and their medians are compared; each case's peak memory is
measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing.pointer_softmax import PointerSoftmax, Switch

B, T, J = 32, 30, 30
R, S, A = 500, 1024, 2048
PADDED, POINTED = 0.15, 0.05
Case = Callable[[], None]


def inputs(V: int) -> dict[str, Tensor]:
    torch.manual_seed(1)
    lengths = torch.randint(int(T * (1 - 2 * PADDED)), T + 1, (B, 1))
    mask = torch.arange(T) < lengths
    word, place = torch.randint(V, (B, T)), V + torch.randint(J, (B, T))
    return {
        "readout": torch.randn(B, T, R, requires_grad=True),
        "evidence": torch.randn(B, T, S + A, requires_grad=True),
        "e": torch.randn(B, T, J, requires_grad=True),
        "mask": mask,
        "word": word.masked_fill(~mask, -100),
        "target": torch.where(torch.rand(B, T) < POINTED, place, word),
    }


def forget(layer: nn.Module, x: dict[str, Tensor]) -> None:
    layer.zero_grad()
    for tensor in x.values():
        tensor.grad = None


def plain(V: int) -> Case:
    x, layer = inputs(V), nn.Linear(R, V)

    def step() -> None:
        forget(layer, x)
        F.cross_entropy(layer(x["readout"]).flatten(0, 1), x["word"].flatten()).backward()

    return step


def pointer(V: int, candidates: int | None = None) -> Case:
    x, layer = inputs(V), PointerSoftmax(V, R, Switch(S + A, S))
    ids = None if candidates is None else torch.randperm(V)[:candidates]
    target = x["target"]
    if ids is not None:  # gold words are among the candidates, as the batch's own words are in training
        target = torch.where(target < V, ids[target % candidates], target)

    def step() -> None:
        forget(layer, x)
        log_l = x["e"].log_softmax(-1)
        log_p = layer.log_likelihood(x["readout"], x["evidence"], log_l, target, x["mask"], ids)
        (-log_p.sum() / B).backward()

    return step


CASES: dict[str, Callable[[], Case]] = {
    "plain softmax, 30,000 words": lambda: plain(30_000),
    "pointer softmax, 30,000 words": lambda: pointer(30_000),
    "pointer softmax, 2,000 of 30,000 words": lambda: pointer(30_000, 2_000),
    "pointer softmax, 2,000 of 75,000 words": lambda: pointer(75_000, 2_000),
    "pointer softmax, 2,000 of 300,000 words": lambda: pointer(300_000, 2_000),
}


def peak(name: str) -> float:
    """Megabytes that one case's steps add to the process at their peak."""
    step = CASES[name]()
    before = resident("VmRSS")
    for _ in range(2):
        step()
    return resident("VmHWM") - before


def resident(field: str) -> float:
    """Megabytes of this process, now (VmRSS) or at their highest (VmHWM); getrusage would count the parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.peak_of:
        print(peak(args.peak_of))
        return
    steps = {name: make() for name, make in CASES.items()}
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for repeat in range(args.repeats + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if repeat >= 2:
                times[name].append(time.perf_counter() - start)
    command = [sys.executable, __file__, "--threads", str(torch.get_num_threads()), "--peak-of"]
    memory = {name: float(subprocess.check_output([*command, name])) for name in CASES}
    base = next(iter(CASES))
    ratios = {
        name: {
            "time": statistics.median(times[name]) / statistics.median(times[base]),
            "memory": memory[name] / memory[base],
        }
        for name in CASES
    }
    if args.json:
        print(json.dumps(ratios, indent=2))
        return
    print(f"{'one training step, against the plain softmax':<45}{'time':>8}{'peak memory':>14}")
    for name, ratio in ratios.items():
        print(f"{name:<45}{ratio['time']:>7.2f}×{ratio['memory']:>13.2f}×")
    print(f"plain softmax: {statistics.median(times[base]):.2f} s a step, {memory[base]:.0f} MB")


if __name__ == "__main__":
    main()
