"""Generation throughput on this machine: ours and OpenNMT-py's, and how ours grows with batch, beam and source length.

    python benchmarks/generation.py data/debian/train.en data/debian/train.fr --peer opennmt

All cases have the same lines, vocabulary, threads and beam, and are timed from lines to lines. Every output has exactly
--steps words, so that both programs make the same number of steps. The peer runs twice: with our widths, and with the
width at which its model needs as many multiplications as ours ("equal work"). Our weights are random, the peer's are
those after a few updates; the time of a step does not depend on them. Rates are the median of three repetitions, with
the lowest and the highest.

A second table is of single lines, one call each. Its limit is the time that the matrix products of one line take alone,
each done by itself on weights that are laid out. `--run RUN` also measures the start-up of `pointing generate RUN`.
The small size takes less than five minutes on an idle machine; `--sizes small paper` takes an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import opennmt
import torch
from training import SIZES, corpus_of, options, peak

from pointing.config import Model, Search, checked
from pointing.corpus.examples import Batch, Corpus
from pointing.generation.beam import search
from pointing.generation.generator import Generator
from pointing.model.products import Products
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.system.progress import say
from pointing.system.tables import Table

REPETITIONS = 3
STARTS = 7  # of `pointing generate`

GROWTH = {
    "batch": [(B, 5, 25) for B in (1, 4, 16, 64, 256)],
    "beam": [(64, K, 25) for K in (1, 2, 5, 10, 20)],
    "source length": [(64, 5, J) for J in (10, 25, 50, 100, 200)],
}


def model_of(sizes: dict[str, int], source: int, target: int, output: str = "pointer-softmax") -> Seq2Seq:
    torch.manual_seed(1)
    widths = {name: sizes[name] for name in ("embedding", "encoder", "hidden")}
    model = Seq2Seq(checked(Model, widths | {"output": output}), source, target).eval()
    for parameter in model.parameters():  # larger than initial weights, so that outputs differ
        torch.nn.init.normal_(parameter, 0, 0.1)
    return model


class Measured(NamedTuple):
    """One case: sentences per second of each repetition, seconds of each line alone, multiplications of a sentence."""

    rates: list[float]
    alone: list[float]
    work: float


def ours(
    corpus: Corpus, sizes: dict[str, int], lines: list[str], args: argparse.Namespace, **changes: object
) -> tuple[list[float], list[float]]:
    """Sentences per second of each repetition, and the seconds of single lines."""
    layer = changes.pop("output", "pointer-softmax")
    model = model_of(sizes, len(corpus.lexicon.source), len(corpus.lexicon.target), str(layer))
    generator = Generator(Run(corpus.lexicon, model, {}))
    length = {"min_length": args.steps, "max_length": args.steps, "max_ratio": None}
    settings = checked(Search, {"beam": args.beam, **length, **changes})
    torch.set_num_threads(args.threads)
    generator.generate(lines[:64], settings)  # warm-up
    rates, alone = [], []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        outputs = generator.generate(lines, settings)
        rates.append(len(lines) / (time.perf_counter() - start))
        assert {len(output.tokens) for output in outputs} == {args.steps}
    for line in lines[: args.alone]:
        start = time.perf_counter()
        generator.generate([line], settings)
        alone.append(time.perf_counter() - start)
    return rates, alone


def limit(sizes: dict[str, int], J: int, steps: int, beam: int) -> list[float]:
    """Seconds that the matrix products of one line of our pointer softmax take alone, on one thread, of 100 times."""
    torch.set_num_threads(1)
    E, H, S, V = (sizes[name] for name in ("embedding", "encoder", "hidden", "vocabulary"))
    A = 2 * H
    once = [(J, E, 3 * H)] * 2 + [(1, H, 3 * H)] * 2 * J + [(J, A, A), (1, A, S)]  # rows, width, width of the product
    gru_and_attention = [(beam, E, 3 * S + E), (beam, S, 3 * S), (beam, S, A + 3 * S), (beam, A, 3 * S + E)]
    readout_and_switch = [(beam, S, E), (beam, A + S, S), (beam, S, S), (beam, S, 1), (beam, E, V)]
    products = {shape: Products((torch.randn(shape[2], shape[1]), None)) for shape in once}
    each_step = gru_and_attention + readout_and_switch  # of these no two share their weights
    of_step = [Products((torch.randn(N, R), None)) for _, R, N in each_step]
    of_line = [(products[shape], torch.randn(shape[:2])) for shape in once]
    of_line += [(product, torch.randn(beam, R)) for product, (_, R, _) in zip(of_step, each_step, strict=True)] * steps
    keys = torch.randn(1, J, A)
    query, log_l = torch.randn(1, beam, A), torch.randn(1, beam, J)
    seconds = []
    with torch.inference_mode():
        for _ in range(100):
            start = time.perf_counter()
            for product, x in of_line:
                product.all(x)
            for _ in range(steps):
                torch.bmm(query, keys.mT)
                torch.bmm(log_l, keys)
            seconds.append(time.perf_counter() - start)
    return seconds


def start_up(run: Path, threads: int) -> list[float]:
    """Seconds of `echo line | pointing generate RUN`, several times after the first."""
    command = [sys.executable, "-m", "pointing", "generate", str(run)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    seconds = []
    for _ in range(1 + STARTS):
        start = time.perf_counter()
        subprocess.run(command, input=b"a line\n", env=environment, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def grown(shape: tuple[int, int, int], sizes: dict[str, int], steps: int) -> tuple[float, float]:
    """Sentences per second of one batch on one thread, and the megabytes that the search takes; needs a new process."""
    torch.set_num_threads(1)
    (B, K, J), V = shape, sizes["vocabulary"]
    model = model_of(sizes, V, V).for_search()
    rng = np.random.default_rng(1)
    x = np.pad(rng.integers(2, V, (B, J)), ((0, 0), (0, 1)))
    x_words = np.where(rng.random(x.shape) < 0.2, V + np.arange(J + 1), x) * (x > 0)
    nothing = np.zeros((B, 0), np.int64)
    arrays = (x, x >= 0, x_words, nothing, nothing, nothing > 0)
    batch = Batch(np.arange(B), *(torch.from_numpy(array) for array in arrays))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        search(model, batch, Search(beam=K, min_length=steps, max_length=steps, max_ratio=None))
        seconds.append(time.perf_counter() - start)
    return B / min(seconds), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def peer(
    corpus: Corpus, sizes: dict[str, int], rows: int, args: argparse.Namespace, work: int, J: float
) -> dict[str, Measured]:
    """The peer's cases."""
    python, text = opennmt.environment(args.peer), args.folder / f"text-{sizes['vocabulary']}"
    source, target = opennmt.write_text(corpus.folder, text, seed=None)
    lines = text / "lines.source"
    lines.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:rows]), "utf-8")
    shape = {"J": J, "T": args.beam * args.steps}
    wide = {"embedding": sizes["embedding"], "vocabulary": sizes["vocabulary"]}
    equal = opennmt.equal_hidden(work, **wide, **shape)
    cases = {}
    for what, hidden in (("same widths", 2 * sizes["encoder"]), ("equal work", equal)):
        case = f"OpenNMT-py with copying, {what} (rnn_size {hidden})"
        size, run = {**wide, "hidden": hidden}, {"batch": args.batch, "threads": args.threads}
        say(f"{case}: training …")
        trained = opennmt.train(python, args.folder / "peer", source, target, **size, **run, updates=30)
        length = {"max_length": args.steps, "min_length": args.steps}
        times = {"beam": args.beam, "repetitions": REPETITIONS, "alone": args.alone}
        say(f"{case}: searching …")
        made = opennmt.translate(python, trained.model, lines, args.folder / "output", **times, **run, **length)
        needed = sum(opennmt.multiplications(**size, **shape).values())
        cases[case] = Measured([rows / seconds for seconds in made.repetitions], made.alone, needed)
    return cases


def measure(name: str, files: dict[str, str], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """All cases of a size."""
    sizes = SIZES[name]
    say(f"{name}: preparing the text …")
    corpus = corpus_of(sizes["vocabulary"], files, args.folder)
    train = corpus.split("train")
    lines = [train[row]["source_text"] for row in range(min(args.lines, len(train)))]
    J = float(train.source_lengths[: len(lines)].mean()) + 1
    top, T, few = peak(args.threads), args.beam * args.steps, "pointer softmax, 2,000 candidates"
    cases = {}
    for case, changes in {
        "pointer softmax": {},
        "softmax": {"output": "softmax"},
        few: {"large_vocabulary": 2000},
    }.items():
        say(f"{name}, {case} …")
        V, copy = 2000 if case == few else sizes["vocabulary"], case != "softmax"
        work = opennmt.our_multiplications(**{**sizes, "vocabulary": V}, J=J, T=T, copy=copy)
        cases[case] = Measured(*ours(corpus, sizes, lines, args, **changes), sum(work.values()))
    if args.peer is not None:
        cases |= peer(corpus, sizes, len(lines), args, int(cases["pointer softmax"].work), J)
    top, first = max(top, peak(args.threads)), statistics.median(cases["pointer softmax"].rates)
    say(f"{name}: the products of one line …")
    cases["its matrix products alone, one thread"] = Measured([], limit(sizes, round(J), args.steps, args.beam), 0)
    results = {}
    for case, (rates, alone, work) in cases.items():
        figures = dict(zip(("p50", "p99"), (np.percentile(alone, (50, 99)) * 1000).tolist(), strict=True))
        if rates:
            rate = statistics.median(rates)
            figures |= {"rate": rate, "lowest": min(rates), "highest": max(rates)}
            figures |= {"beside": rate / first, "work": work, "peak": rate * work / top}
        results[f"{name}: {case}"] = figures
    return results


def tables(results: dict[str, dict[str, float]], args: argparse.Namespace) -> list[Table]:
    """Many lines together, then lines alone."""
    together = []
    for case, r in results.items():
        if "rate" in r:
            spread = f"{r['lowest']:,.1f} to {r['highest']:,.1f}"
            work = f"{r['work'] / 1e6:,.0f}", f"{r['peak']:.0%}"
            together.append([case, f"{r['rate']:,.1f}", spread, f"{r['beside']:.2f}", *work])
    header = ["case", "sentences/s", f"of {REPETITIONS} repetitions", "beside our pointer softmax"]
    header += ["million multiply-adds a sentence", "of the peak"]
    alone = [[case, f"{r['p50']:.1f}", f"{r['p99']:.1f}"] for case, r in results.items()]
    how = f"{args.threads} threads, beam {args.beam}, {args.steps} words a sentence"
    return [
        Table(f"Generation, {how}", header, together),
        Table(f"One line alone, {args.alone} lines, {how}", ["case", "p50, ms", "p99, ms"], alone),
    ]


def main() -> None:
    parser = options(__doc__.split("\n")[0], "benchmark-generation", ["small"])
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--alone", type=int, default=200, help="lines that are also searched one by one")
    parser.add_argument("--steps", type=int, default=20, help="words of every output")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="the peer's; ours is chosen by length")
    parser.add_argument("--growth", action="store_true", help="also how ours grows, on one thread")
    parser.add_argument("--run", type=Path, help="a trained run, for the start-up of `pointing generate`")
    args = parser.parse_args()
    files = {"source": str(args.source.resolve()), "target": str(args.target.resolve())}
    results: dict[str, dict[str, float]] = {}
    for name in args.sizes:
        results |= measure(name, files, args)
    starts = [] if args.run is None else start_up(args.run, args.threads)
    growth = {}
    if args.growth:
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            for what, shapes in GROWTH.items():
                say(f"growth with {what} …")
                growth[what] = [
                    (shape, *pool.submit(grown, shape, SIZES["small"], args.steps).result()) for shape in shapes
                ]
    if args.json:
        print(json.dumps({"rates": results, "growth": growth, "starts": starts}))
        return
    for table in tables(results, args):
        table.show()
    if starts:
        span = f"{min(starts):.2f} to {max(starts):.2f}"
        print(f"`echo line | pointing generate`: {statistics.median(starts):.2f} s (median of {len(starts)}; {span})")
    for what, some in growth.items():
        rows = [[f"{B} × {K} × {J}", f"{rate:,.1f}", f"{size:,.0f}"] for (B, K, J), rate, size in some]
        Table(f"With {what}, one thread", ["batch × beam × source words", "sentences/s", "MB"], rows).show()


if __name__ == "__main__":
    main()
