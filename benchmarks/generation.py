"""Generation throughput on this machine: ours and OpenNMT-py's, and how ours grows with batch, beam and source length.

    python benchmarks/generation.py data/debian/train.en data/debian/train.fr --peer opennmt

All cases have the same lines, vocabulary, threads and beam, and are timed from lines to lines. Every output has exactly
--steps words, so that both programs make the same number of steps. The peer runs twice: with our widths, and with the
width at which its model needs as many multiplications as ours ("equal work"). Our weights are random, the peer's are
those after a few updates; the time of a step does not depend on them.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import opennmt
import torch
from training import SIZES, corpus_of, options, peak

from pointing.config import Model, Search, checked
from pointing.corpus.examples import Batch, Corpus
from pointing.generation.beam import search
from pointing.generation.generator import Generator
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.system.tables import Table

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


def ours(corpus: Corpus, sizes: dict[str, int], lines: list[str], args: argparse.Namespace, **changes: object) -> float:
    """Sentences per second, the best of three runs over the lines."""
    layer = changes.pop("output", "pointer-softmax")
    model = model_of(sizes, len(corpus.lexicon.source), len(corpus.lexicon.target), str(layer))
    generator = Generator(Run(corpus.lexicon, model, {}))
    length = {"min_length": args.steps, "max_length": args.steps, "max_ratio": None}
    settings = checked(Search, {"beam": args.beam, **length, **changes})
    torch.set_num_threads(args.threads)
    generator.generate(lines[:64], settings)  # warm-up
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        outputs = generator.generate(lines, settings)
        seconds.append(time.perf_counter() - start)
        assert {len(output.tokens) for output in outputs} == {args.steps}
    return len(lines) / min(seconds)


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
) -> dict[str, tuple[float, float]]:
    """The peer's cases: name → sentences per second, and multiplications per sentence."""
    python, text = opennmt.environment(args.peer), args.folder / f"text-{sizes['vocabulary']}"
    source, target = opennmt.write_text(corpus.folder, text, seed=None)
    lines = text / "lines.source"
    lines.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:rows]), "utf-8")
    shape = {"J": J, "T": args.beam * args.steps}
    wide = {"embedding": sizes["embedding"], "vocabulary": sizes["vocabulary"]}
    equal = opennmt.equal_hidden(work, **wide, **shape)
    cases = {}
    for what, hidden in (("same widths", 2 * sizes["encoder"]), ("equal work", equal)):
        size, run = {**wide, "hidden": hidden}, {"batch": args.batch, "threads": args.threads}
        trained = opennmt.train(python, args.folder / "peer", source, target, **size, **run, updates=30)
        length = {"max_length": args.steps, "min_length": args.steps}
        made = opennmt.translate(python, trained.model, lines, args.folder / "output", beam=args.beam, **run, **length)
        rate = rows / made.seconds
        needed = sum(opennmt.multiplications(**size, **shape).values())
        cases[f"OpenNMT-py with copying, {what} (rnn_size {hidden})"] = (rate, needed)
    return cases


def main() -> None:
    parser = options(__doc__.split("\n")[0], "benchmark-generation", ["small", "paper"])
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--steps", type=int, default=20, help="words of every output")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="the peer's; ours is chosen by length")
    parser.add_argument("--growth", action="store_true", help="also how ours grows, on one thread")
    args = parser.parse_args()
    files = {"source": str(args.source.resolve()), "target": str(args.target.resolve())}
    results: dict[str, dict[str, float]] = {}
    for name in args.sizes:
        sizes = SIZES[name]
        corpus = corpus_of(sizes["vocabulary"], files, args.folder)
        train = corpus.split("train")
        lines = [train[row]["source_text"] for row in range(min(args.lines, len(train)))]
        J = float(train.source_lengths[: len(lines)].mean()) + 1
        top, T = peak(args.threads), args.beam * args.steps
        cases = {
            "pointer softmax": (ours(corpus, sizes, lines, args), sizes["vocabulary"], True),
            "softmax": (ours(corpus, sizes, lines, args, output="softmax"), sizes["vocabulary"], False),
            "pointer softmax, 2,000 candidates": (ours(corpus, sizes, lines, args, large_vocabulary=2000), 2000, True),
        }
        rates = {}
        for case, (rate, V, copy) in cases.items():
            work = opennmt.our_multiplications(**{**sizes, "vocabulary": V}, J=J, T=T, copy=copy)
            rates[case] = (rate, sum(work.values()))
        if args.peer is not None:
            rates |= peer(corpus, sizes, len(lines), args, int(rates["pointer softmax"][1]), J)
        top, first = max(top, peak(args.threads)), rates["pointer softmax"][0]
        for case, (rate, work_a_line) in rates.items():
            figures = {"rate": rate, "beside": rate / first, "work": work_a_line, "peak": rate * work_a_line / top}
            results[f"{name}: {case}"] = figures
    growth = {}
    if args.growth:
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            for what, shapes in GROWTH.items():
                growth[what] = [
                    (shape, *pool.submit(grown, shape, SIZES["small"], args.steps).result()) for shape in shapes
                ]
    if args.json:
        print(json.dumps({"rates": results, "growth": growth}))
        return
    rows = [
        [case, f"{r['rate']:,.1f}", f"{r['beside']:.2f}", f"{r['work'] / 1e6:,.0f}", f"{r['peak']:.0%}"]
        for case, r in results.items()
    ]
    header = ["case", "sentences/s", "beside our pointer softmax", "million multiply-adds a sentence", "of the peak"]
    title = f"Generation, {args.threads} threads, beam {args.beam}, {args.steps} words a sentence"
    Table(title, header, rows).show()
    for what, some in growth.items():
        rows = [[f"{B} × {K} × {J}", f"{rate:,.1f}", f"{size:,.0f}"] for (B, K, J), rate, size in some]
        Table(f"With {what}, one thread", ["batch × beam × source words", "sentences/s", "MB"], rows).show()


if __name__ == "__main__":
    main()
