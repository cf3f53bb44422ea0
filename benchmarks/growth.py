"""How the cost grows with each size, as one picture: docs/growth.svg.

    python benchmarks/growth.py --out docs/growth.svg

Each panel changes one size and leaves the others as they are in SIZES["small"] of benchmarks/training.py. The cost is
processor time on one thread, of the forward and backward pass of a batch of random words, or of a beam search over it;
for the corpus, of its preparation by one process; for threads, the time that passes. It is shown as a multiple of the
panel's first cost. The dotted line is what it would be if the cost were in proportion to the size, or, for threads, if
all of them worked all the time. `--pairs 5000 50000 500000 5000000` takes half an hour longer.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from generation import model_of
from matplotlib.figure import Figure
from training import SIZES

from pointing.config import Config, Search, checked
from pointing.corpus.examples import Batch
from pointing.corpus.preparation import prepare
from pointing.data import names
from pointing.generation.beam import search
from pointing.system.files import whole_file
from pointing.system.processor import keep_freed_memory, use_wide_products
from pointing.system.progress import say
from pointing.system.tables import Table


class Shape(NamedTuple):
    """What is computed: the sizes that a panel changes one of."""

    batch: int = 64
    source: int = 25  # words; the target is as long
    vocabulary: int = SIZES["small"]["vocabulary"]
    hidden: int = SIZES["small"]["hidden"]  # the encoder is half as wide in each direction
    beam: int = 5
    threads: int = 1


TRAINING = {
    "batch": (8, 16, 32, 64, 128),
    "source": (10, 20, 40, 80),
    "vocabulary": (1_000, 5_000, 10_000, 30_000),
    "hidden": (96, 192, 384, 768),
    "threads": (1, os.cpu_count() or 1),
}
GENERATION = {"batch": (1, 4, 16, 64), "beam": (1, 2, 5, 10), "source": (10, 20, 40, 80)}
GENERATION |= {"vocabulary": (1_000, 5_000, 10_000, 30_000), "hidden": (96, 192, 384, 768)}
PAIRS = (5_000, 20_000, 80_000)  # of the corpus that is prepared
THREADS = "training: threads"
SPECIAL = 4  # ids of no words


def batch_of(shape: Shape) -> Batch:
    """Random words; one of five target words is copied."""
    B, J, V = shape.batch, shape.source, shape.vocabulary
    torch.manual_seed(1)
    x, y = (torch.randint(SPECIAL, V, (B, J)) for _ in range(2))
    copied = torch.rand(B, J) < 0.2
    target = torch.where(copied, V + torch.randint(0, J, (B, J)), y)
    everywhere = torch.ones(B, J, dtype=torch.bool)
    words = torch.where(torch.rand(B, J) < 0.2, V + torch.arange(J), x)
    return Batch(torch.arange(B).numpy(), x, everywhere, words, target, y, everywhere)


def training(shape: Shape) -> Callable[[], object]:
    """One forward and backward pass."""
    model, batch = _model(shape).train(), batch_of(shape)

    def update() -> None:
        predicted = model(batch.x, batch.x_mask, batch.y)
        (-model.output.log_likelihood(*predicted, batch.target).sum()).backward()

    return update


def generation(shape: Shape) -> Callable[[], object]:
    """A search for outputs of ten words."""
    form, batch = _model(shape).eval().for_search(), batch_of(shape)
    settings = checked(Search, {"beam": shape.beam, "min_length": 10, "max_length": 10, "max_ratio": None})
    return lambda: search(form, batch, settings)


def _model(shape: Shape) -> torch.nn.Module:
    widths = {"embedding": SIZES["small"]["embedding"], "encoder": shape.hidden // 2, "hidden": shape.hidden}
    return model_of(widths, shape.vocabulary, shape.vocabulary)


def seconds(work: Callable[[], object], threads: int, clock: Callable[[], float], rounds: int = 3) -> float:
    """The least of some rounds, after one for warming up."""
    torch.set_num_threads(threads)
    times = []
    for _ in range(rounds + 1):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times[1:])


def preparation(pairs: int, folder: Path) -> float:
    """Seconds to prepare so many pairs: generated text, repeated."""
    text = folder / "generated"
    if not text.exists():
        names.bring(text)
    files = {}
    for side, name in (("source", "train.en"), ("target", "train.fr")):
        lines = (text / name).read_text("utf-8").splitlines(keepends=True)
        path = folder / f"{pairs}.{side}"
        path.write_text("".join(lines[n % len(lines)] for n in range(pairs)), "utf-8")
        files[side] = str(path)
    config = checked(Config, {"data": {"train": files, "dev": files}})
    start = time.process_time()
    prepare(config, folder / f"corpus-{pairs}", workers=1)
    return time.process_time() - start


def measured(pairs: Sequence[int]) -> dict[str, dict[int, float]]:
    """Panel → size → seconds."""
    results: dict[str, dict[int, float]] = {}
    for kind, work, axes in (("training", training, TRAINING), ("generation", generation, GENERATION)):
        for axis, sizes in axes.items():
            say(f"{kind}, {axis} …")
            clock = time.perf_counter if axis == "threads" else time.process_time
            shapes = {size: Shape()._replace(**{axis: size}) for size in sizes}
            results[f"{kind}: {axis}"] = {n: seconds(work(shape), shape.threads, clock) for n, shape in shapes.items()}
    say("preparation …")
    with TemporaryDirectory() as folder:
        results["preparation: pairs"] = {number: preparation(number, Path(folder)) for number in pairs}
    return results


def draw(results: dict[str, dict[int, float]], path: Path) -> None:
    columns = 4
    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(-(-len(results) // columns), columns).flatten()
    for panel, (name, costs) in zip(panels, results.items(), strict=False):
        sizes, (first, *_) = list(costs), costs.values()
        panel.loglog(sizes, [cost / first for cost in costs.values()], marker="o", markersize=4)
        ideal = [sizes[0] / size if name == THREADS else size / sizes[0] for size in sizes]
        panel.loglog(sizes, ideal, linestyle=":", color="gray")
        panel.set_title(name, fontsize=10)
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False, fontsize=8, rotation=20)
        panel.set_xticks([], minor=True)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    with whole_file(path) as part:
        figure.savefig(part, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("growth.svg"))
    parser.add_argument("--pairs", type=int, nargs="+", default=PAIRS, help="numbers of pairs that are prepared")
    args = parser.parse_args()
    use_wide_products()
    keep_freed_memory()
    results = measured(args.pairs)
    draw(results, args.out)
    rows = [
        [name, *(f"{size:,}: {cost / costs[next(iter(costs))]:.2f}" for size, cost in costs.items())]
        for name, costs in results.items()
    ]
    most = max(map(len, rows))
    Table(
        "Cost, as a multiple of the first", ["", *[""] * (most - 1)], [row + [""] * (most - len(row)) for row in rows]
    ).show()


if __name__ == "__main__":
    main()
