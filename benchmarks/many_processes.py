"""Training in several processes: words a second, waiting, and communication; and from these a plan for many machines.

    python benchmarks/many_processes.py                          # generated text, 1, 2, 4 and 8 processes
    python benchmarks/many_processes.py train.en train.fr --processes 1 2 --size paper

`torchrun` starts the processes on this machine, each with one thread; all together take one batch, as `pointing train`
does. Before the gradients are added up, the processes wait for the slowest one; only what follows is communication. The
plan takes the time of one process's update as it was measured here, a batch of that size for each machine, and the
bytes of a ring: each machine sends and receives 2 (n - 1) / n of a dense gradient, and n - 1 times a sparse one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from training import SIZES, corpus_of
from where_time_goes import BATCH, config_of, text_of

from pointing.corpus.batches import Batches
from pointing.corpus.examples import Batch, Corpus
from pointing.system.progress import say
from pointing.system.tables import Table
from pointing.system.world import Processes, processes
from pointing.training.learner import Learner

WARM_UP = 2  # updates
CANDIDATES = 2_000  # of the large-vocabulary trick, as in the paper


class Timed(Processes):
    """Processes that measure how long they wait for one another, and how long they communicate."""

    seconds: dict[str, float] = {"waiting": 0.0, "communication": 0.0}  # noqa: RUF012 (one for the process)

    def sum_gradients(self, parameters: Any) -> None:
        start = time.perf_counter()
        if self.world_size > 1:
            dist.barrier()
        ready = time.perf_counter()
        super().sum_gradients(parameters)
        self.seconds["waiting"] += ready - start
        self.seconds["communication"] += time.perf_counter() - ready


def work(args: argparse.Namespace) -> None:
    """What each process does; the first one prints what it measured."""
    torch.set_num_threads(1)
    corpus = Corpus(args.folder / f"corpus-{SIZES[args.size]['vocabulary']}")
    with processes("cpu") as world:
        timed = Timed(*world)
        learner = Learner(config_of(corpus, args.size, "gru"), corpus, timed)
        batches = list(islice(Batches(corpus.split("train"), BATCH[args.size]), WARM_UP + args.updates))
        learn(learner, batches[:WARM_UP])
        timed.seconds.update(waiting=0.0, communication=0.0)
        start = time.perf_counter()
        words = learn(learner, batches[WARM_UP:])
        seconds = time.perf_counter() - start
        if world.first:
            numbers = {"seconds": seconds / args.updates, "rate": words / seconds, **shares(timed, seconds)}
            print(json.dumps(numbers | message(learner, batches[-1])))


def shares(timed: Timed, seconds: float) -> dict[str, float]:
    return {name: part / seconds for name, part in timed.seconds.items()}


def learn(learner: Learner, batches: list[Batch]) -> float:
    return sum(learner.learn([batch], 1).words for batch in batches)


def measured(count: int, args: argparse.Namespace) -> dict[str, float]:
    """The same updates by so many processes."""
    say(f"{args.size}, {count} processes …")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), __file__]
    options = ["--worker", "--size", args.size, "--updates", str(args.updates), "--folder", str(args.folder)]
    done = subprocess.run(
        [*torchrun, *options], env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def message(learner: Learner, batch: Batch) -> dict[str, float]:
    """Megabytes of a gradient: dense; and with the large-vocabulary trick its dense part and its rows."""
    tables = {name: p for name, p in learner.parameters.items() if "embedding" in name or "shortlist" in name}
    whole = sum(p.numel() for p in learner.parameters.values())
    rows = {"encoder.embedding.weight": len(batch.x.unique()), "embedding.weight": len(batch.y.unique())}
    sparse = sum(rows.get(name, CANDIDATES) * (p[0].numel() + 2) for name, p in tables.items())  # an index: 8 bytes
    rest = whole - sum(p.numel() for p in tables.values())
    return {"dense": 4 * whole / 1e6, "rest": 4 * rest / 1e6, "rows": 4 * sparse / 1e6}


def planned(machines: int, one: dict[str, float], gigabits: float) -> list[str]:
    """A row of the plan: seconds of communication in an update and the share of the machines' work that is left."""
    a_second, around = gigabits * 1e9 / 8 / 1e6, 2 * (machines - 1) / machines  # megabytes
    dense = around * one["dense"] / a_second
    sparse = (around * one["rest"] + (machines - 1) * one["rows"]) / a_second
    row = [f"{machines}"]
    for seconds in (dense, sparse):
        left = one["seconds"] / (one["seconds"] + seconds)
        row += [f"{1000 * seconds:,.0f} ms", f"{left:.0%}", f"{machines * left:.1f}"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="*", help="raw text of source and target; without it, generated text")
    parser.add_argument("--folder", type=Path, default=Path("benchmark-time"), help="for text and prepared text")
    parser.add_argument("--size", choices=list(BATCH), default="small")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--machines", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--gigabits", type=float, default=10.0, help="a second, of the network between the machines")
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    if len(args.files) not in (0, 2):
        parser.error("give two files, or none")
    corpus_of(SIZES[args.size]["vocabulary"], text_of(args), args.folder)
    results = {count: measured(count, args) for count in args.processes}
    one = results[min(results)]
    rows = [
        [
            f"{n}",
            f"{r['rate']:,.0f}",
            f"{r['rate'] / one['rate']:.2f}",
            f"{r['waiting']:.0%}",
            f"{r['communication']:.0%}",
        ]
        for n, r in results.items()
    ]
    header = ["processes", "target words/s", "times one's", "waiting", "communication"]
    Table(f"Training, {args.size} size, processes of one thread on {os.cpu_count()} cores", header, rows).show()
    header = ["machines", "dense gradient", "work left", "times one's", "sparse gradient", "work left", "times one's"]
    title = f"Plan for {args.gigabits:g} Gbit/s: {one['dense']:.0f} MB dense, or {one['rest']:.0f} MB and "
    title += (
        f"{one['rows']:.1f} MB of rows; {1000 * one['seconds']:,.0f} ms an update, batch {BATCH[args.size]} a machine"
    )
    Table(title, header, [planned(n, one, args.gigabits) for n in args.machines]).show()


if __name__ == "__main__":
    main()
