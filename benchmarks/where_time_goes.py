"""Where the time goes, in training, in generation with beam 5, and for one line: shares of the processor's time.

    python benchmarks/where_time_goes.py                          # generated text, the small size, in a few minutes
    python benchmarks/where_time_goes.py train.en train.fr --sizes small paper

Every operation of PyTorch is timed by the clock of its thread, which stands still while other programs run. The time of
a call that computes nothing is taken off each; it is overhead, as is all that the operations leave of the whole time,
which is measured without looking at them. Multiplications are counted from the shapes, padding included. They are set
beside the peak of the same run: the best of large matrix products on one thread. All this is on one thread. "Waiting"
is the share of the time of several threads in which they do not work: it needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from training import SIZES, corpus_of

from pointing.config import Config, Search, checked
from pointing.corpus.batches import Batches
from pointing.corpus.examples import Batch, Corpus
from pointing.data import names
from pointing.generation.generator import Generator
from pointing.model.run import Run
from pointing.system.processor import use_wide_products
from pointing.system.progress import say
from pointing.system.tables import Table
from pointing.system.world import processes
from pointing.training.learner import Learner

BATCH = {"small": 64, "paper": 32}
PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "addmv", "addmv_", "mv", "_linear_pointwise"}
FUSED = {"_scaled_dot_product_flash_attention_for_cpu": 2, "_scaled_dot_product_flash_attention_for_cpu_backward": 4}
TANH = {"add", "sigmoid_", "tanh_", "tanh", "addcmul_"}  # of the attention, on tensors of 3 or 4 axes of its width
SOFTMAX = {"_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "exp", "exp_", "amax"}
MOVES = {"copy_", "clone", "cat", "stack", "index", "index_select", "gather", "topk", "embedding", "_to_copy", "sort"}
VIEWS = {"view", "select", "slice", "unbind", "t", "transpose", "expand", "unsqueeze", "squeeze", "split", "detach"}
VIEWS |= {"as_strided", "permute", "alias", "empty", "empty_like", "new_empty", "_unsafe_view", "split_with_sizes"}
KINDS = ["products", "attention's tanh", "softmax", "moves", "elementwise", "optimiser", "overhead"]


class Clock(TorchDispatchMode):
    """Seconds of this thread by kind of operation, and the multiplications of the products."""

    def __init__(self, annotation: int) -> None:
        super().__init__()
        self.annotation, self.region = annotation, ""
        self.seconds: Counter[str] = Counter()
        self.multiplications = 0
        x = torch.ones(1)
        self.call = min(self._timed(torch.ops.aten.alias.default, (x,), {})[1] for _ in range(200))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, seconds = self._timed(func, args, kwargs or {})
        name = func.overloadpacket.__name__
        if name in PRODUCTS | FUSED.keys():
            self.multiplications += _multiplications(name, args, result)
        kind = self.region or self._kind(name, result)
        if kind != "overhead":
            self.seconds[kind] += max(0.0, seconds - self.call)
        return result

    def mark_optimiser(self, learner: Learner) -> None:
        """All operations of its optimiser's step are of a kind of their own."""
        step = learner._step

        def marked(rate: float) -> float | None:
            self.region = "optimiser"
            norm = step(rate)
            self.region = ""
            return norm

        learner._step = marked  # type: ignore[method-assign]

    def _timed(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, float]:
        start = time.thread_time()
        return func(*args, **kwargs), time.thread_time() - start

    def _kind(self, name: str, result: Any) -> str:
        if name in PRODUCTS | FUSED.keys():
            return "products"
        if name in TANH and result.dim() in (3, 4) and result.shape[-1] == self.annotation:
            return "attention's tanh"
        if name in VIEWS:
            return "overhead"
        return "softmax" if name in SOFTMAX else "moves" if name in MOVES else "elementwise"


def _multiplications(name: str, args: Any, result: Any) -> int:
    """Of a product: the numbers of the result times those that each is a sum of."""
    if name in FUSED:  # queries, keys, values, or the gradient before them: (B, heads, N, width)
        query, key = args[:2] if FUSED[name] == 2 else args[1:3]
        return FUSED[name] * prod(query.shape) * int(key.shape[2])
    left = args[0 if name in ("mm", "bmm", "mv", "_linear_pointwise") else 1]
    return int(result.numel()) * int(left.shape[-1])


def peak() -> float:
    """Multiplications a second of processor time in large float32 products on one thread, the best of eight."""
    torch.set_num_threads(1)
    a, best = torch.randn(1024, 1024), 0.0
    for _ in range(8):
        start = time.thread_time()
        a @ a
        best = max(best, 1024**3 / (time.thread_time() - start))
    return best


def shares(work: Callable[[], object], clock: Clock, threads: int) -> dict[str, float]:
    """The shares of the time that some work takes, the whole seconds, the multiplications, and the share of waiting."""
    torch.set_num_threads(1)
    work()  # warm-up
    whole = min(_processor_seconds(work) for _ in range(2))
    with clock:
        work()
    torch.set_num_threads(threads)
    start = time.perf_counter()
    work()
    capacity = threads * (time.perf_counter() - start)
    known = sum(clock.seconds.values())
    result = {kind: clock.seconds[kind] / max(whole, known) for kind in KINDS}
    result["overhead"] = max(0.0, 1 - known / whole)
    return result | {"seconds": whole, "multiplications": clock.multiplications, "waiting": 1 - whole / capacity}


def _processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Case(NamedTuple):
    name: str
    work: Callable[[], object]
    annotation: int  # the width of the attention
    learner: Learner | None = None  # in training


def config_of(corpus: Corpus, size: str, kind: str) -> Config:
    """The settings of a model of one of the sizes. A Transformer is as wide as the GRU's state."""
    model: dict[str, Any] = {name: SIZES[size][name] for name in ("embedding", "encoder", "hidden")}
    if kind == "transformer":
        width = SIZES[size]["hidden"]
        layers = {"encoder_layers": 3, "decoder_layers": 3, "heads": 8}
        model = {"kind": kind, "embedding": width, "hidden": 4 * width, "dropout": 0.1, **layers}
    training = {"optimizer": "adam", "batch": BATCH[size], "clip": 1.0}
    return checked(Config, {**corpus.about["settings"], "model": model, "training": training})


def cases(corpus: Corpus, size: str, args: argparse.Namespace) -> Iterator[Case]:
    """What is measured, one after the other."""
    split, width = corpus.split("train"), 2 * SIZES[size]["encoder"]
    lines = [str(line) for line in split.groups[0].column("source_text")[: args.lines]]
    search = checked(Search, {"beam": 5, "min_length": args.steps, "max_length": args.steps, "max_ratio": None})
    with processes("cpu") as alone:
        for kind in ("gru", "transformer"):
            learner = Learner(config_of(corpus, size, kind), corpus, alone)
            batches = list(islice(Batches(split, BATCH[size]), args.updates))
            yield Case(f"{kind}: training", partial(train, learner, batches), width, learner)
            if kind == "gru":
                generator = Generator(Run(corpus.lexicon, learner.model.eval(), {}))
                yield Case("beam 5", partial(generator.generate, lines, search), width)
                yield Case("one line", partial(generator.generate, lines[:1], search), width)


def train(learner: Learner, batches: list[Batch]) -> None:
    for batch in batches:
        learner.learn([batch], 1)


def measure(size: str, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Case → shares, with the peak of the same run."""
    corpus = corpus_of(SIZES[size]["vocabulary"], text_of(args), args.folder)
    results = {}
    for case in cases(corpus, size, args):
        say(f"{size}, {case.name} …")
        clock, top = Clock(case.annotation), peak()
        if case.learner is not None:
            clock.mark_optimiser(case.learner)
        results[case.name] = shares(case.work, clock, args.threads) | {"peak": max(top, peak())}
    return results


def text_of(args: argparse.Namespace) -> dict[str, str]:
    """The files that were given, or generated ones."""
    if args.files:
        return dict(zip(("source", "target"), (str(file.resolve()) for file in args.files), strict=True))
    folder = args.folder / "generated"
    if not folder.exists():
        names.bring(folder)
    return {"source": str(folder / "train.en"), "target": str(folder / "train.fr")}


def table(size: str, results: dict[str, dict[str, float]], threads: int) -> Table:
    """A column for each case."""
    rows = [[kind, *(f"{of[kind]:.0%}" for of in results.values())] for kind in KINDS]
    rows.append(["of the peak", *(f"{r['multiplications'] / r['seconds'] / r['peak']:.0%}" for r in results.values())])
    rows.append([f"waiting, {threads} threads", *(f"{of['waiting']:.0%}" for of in results.values())])
    top = max(of["peak"] for of in results.values())
    title = f"Where the time goes, {size} size, one thread; peak {2 * top / 1e9:.0f} GFLOP/s"
    return Table(title, ["", *results], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="*", help="raw text of source and target; without it, generated text")
    parser.add_argument("--folder", type=Path, default=Path("benchmark-time"), help="for text and prepared text")
    parser.add_argument("--sizes", nargs="+", choices=list(BATCH), default=["small"])
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--lines", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="words of every output")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for the share of waiting")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if len(args.files) not in (0, 2):
        parser.error("give two files, or none")
    use_wide_products()
    results = {size: measure(size, args) for size in args.sizes}
    if args.json:
        print(json.dumps(results))
        return
    for size, of in results.items():
        table(size, of, args.threads).show()


if __name__ == "__main__":
    main()
