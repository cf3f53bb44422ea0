"""Training throughput on this machine: ours and OpenNMT-py's, beside what the matrix products alone would allow.

    python benchmarks/training.py data/debian/train.en data/debian/train.fr --peer opennmt

All cases have the same text, vocabulary, batch and precision. The table has target words per second of our softmax, of
our pointer softmax, of the large-vocabulary trick against the full softmax of 75,000 words, and of the peer with
copying; and the share of the measured peak of float32 matrix products that our updates reach. An update has all parts
that `pointing train` has: batch, forward, backward, clipping, optimiser. The peer runs twice: with our widths, and with
the width at which its model needs as many multiplications as ours ("equal work"). Half of our updates are made before
the peer runs and half after it, because a shared machine is not always equally fast.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import opennmt
import torch

from pointing.config import Config, checked
from pointing.corpus.examples import Corpus
from pointing.corpus.lexicon import VOCABULARIES
from pointing.corpus.preparation import prepare
from pointing.system.border import MANIFEST
from pointing.system.files import write_text
from pointing.system.processor import use_wide_products
from pointing.system.tables import Table
from pointing.system.world import processes
from pointing.training.loop import Trainer

SIZES = {
    "small": {"embedding": 128, "encoder": 192, "hidden": 384, "vocabulary": 5_000},
    "paper": {"embedding": 500, "encoder": 1024, "hidden": 1024, "vocabulary": 30_000},
    "large vocabulary": {"embedding": 100, "encoder": 200, "hidden": 200, "vocabulary": 75_000},
}


def peak(threads: int) -> float:
    """Multiply-adds per second in large float32 matrix products, the best of eight."""
    torch.set_num_threads(threads)
    use_wide_products()
    a, best = torch.randn(2048, 2048), 0.0
    for _ in range(8):
        start = time.perf_counter()
        a @ a
        best = max(best, 2048**3 / (time.perf_counter() - start))
    return best


def corpus_of(words: int, files: dict[str, str], folder: Path) -> Corpus:
    """The prepared text with a target vocabulary of exactly this many words; invented words fill it up."""
    settings = {"data": {"train": files, "dev": files}, "vocabulary": {"source": words, "target": words}}
    corpus, _ = prepare(checked(Config, settings), folder / f"corpus-{words}")
    missing = words - len(corpus.lexicon.target)
    if missing > 0:
        path = corpus.folder / VOCABULARIES[1]
        write_text(path, path.read_text("utf-8") + "".join(f"\x01{n}\t0\n" for n in range(missing)))
        (corpus.folder / MANIFEST).unlink(missing_ok=True)  # which says how long the vocabulary was
        corpus = Corpus(corpus.folder)
    return corpus


def updates(corpus: Corpus, sizes: dict[str, int], args: argparse.Namespace, **changes: object) -> Iterator[float]:
    """Target words per second, update by update."""
    model = {name: sizes[name] for name in ("embedding", "encoder", "hidden")}
    settings = dict(corpus.about["settings"])
    training = {"optimizer": "adam", "batch": args.batch, "threads": args.threads, "clip": 1.0}
    training["large_vocabulary"] = changes.pop("large_vocabulary", None)
    config = checked(Config, {**settings, "model": model | changes, "training": training})
    with tempfile.TemporaryDirectory() as folder, processes("cpu") as alone:
        trainer = Trainer(config, corpus, Path(folder), alone, resume=False)
        batches = iter(trainer.batches)
        for number in count(1):
            start = time.perf_counter()
            batch = next(batches)
            trainer.learner.learn([batch], number)
            yield int(batch.mask.sum()) / (time.perf_counter() - start)


def side_by_side(cases: dict[str, Iterator[float]], rounds: int) -> dict[str, list[float]]:
    """The rates of the cases, which take turns on the same batches."""
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            rates[name].append(next(case))
    return rates


def beside(peer: Path, corpus: Corpus, sizes: dict[str, int], ours: float, args: argparse.Namespace) -> dict[str, Any]:
    """The peer's rates; `ours` is the number of multiplications that our model needs for a pair."""
    python, results = opennmt.environment(peer), {}
    source, target = opennmt.write_text(corpus.folder, args.folder / f"text-{sizes['vocabulary']}")
    V, E, (J, T) = sizes["vocabulary"], sizes["embedding"], lengths(corpus)
    equal = opennmt.equal_hidden(ours, embedding=E, vocabulary=V, J=J, T=T)
    for what, hidden in (("same widths", 2 * sizes["encoder"]), ("equal work", equal)):
        wide = {"embedding": E, "hidden": hidden, "vocabulary": V}
        made = opennmt.train(
            python, args.folder / "peer", source, target,
            **wide, batch=args.batch, updates=max(30, args.updates), threads=args.threads,
        )  # fmt: skip
        work = sum(opennmt.multiplications(**wide, J=J, T=T).values()) / T
        case = f"OpenNMT-py with copying, {what} (rnn_size {hidden})"
        results[case] = {"rate": made.tokens_per_second, "work": work}
    return results


def lengths(corpus: Corpus) -> tuple[float, float]:
    """The mean lengths J and T."""
    train = corpus.split("train")
    return float(train.source_lengths.mean()) + 1, float(train.target_lengths.mean())


def options(description: str, folder: str, sizes: list[str]) -> argparse.ArgumentParser:
    """The options that the benchmarks of training and generation share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("source", type=Path, help="raw text, a sentence a line")
    parser.add_argument("target", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(folder), help="for prepared text and models")
    parser.add_argument("--peer", type=Path, help="folder for OpenNMT-py's venv; without it the peer is left out")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=sizes)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    return parser


def main() -> None:
    parser = options(__doc__.split("\n")[0], "benchmark-training", list(SIZES))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--updates", type=int, default=20, help="of each case, after 3 for warming up")
    args = parser.parse_args()
    files = {"source": str(args.source.resolve()), "target": str(args.target.resolve())}
    rows: list[list[str]] = []
    results: dict[str, Any] = {}
    for name in args.sizes:
        sizes = SIZES[name]
        corpus = corpus_of(sizes["vocabulary"], files, args.folder)
        cases = {"softmax": updates(corpus, sizes, args, output="softmax")}
        if name == "large vocabulary":
            for output in ("softmax", "pointer-softmax"):
                cases[f"{output}, 2,000 candidates"] = updates(
                    corpus, sizes, args, output=output, large_vocabulary=2000
                )
        else:
            cases["pointer softmax"] = updates(corpus, sizes, args, output="pointer-softmax")
        (J, T), measured = lengths(corpus), {}
        for case in cases:
            V = 2_000 if "candidates" in case else sizes["vocabulary"]
            work = opennmt.our_multiplications(**{**sizes, "vocabulary": V}, J=J, T=T, copy="pointer" in case)
            measured[case] = {"work": sum(work.values()) / T}
        top, half = peak(args.threads), args.updates // 2
        side_by_side(cases, 3)
        rates = side_by_side(cases, half)
        if args.peer is not None and name != "large vocabulary":
            measured |= beside(args.peer, corpus, sizes, measured["pointer softmax"]["work"] * T, args)
        for case, more in side_by_side(cases, args.updates - half).items():
            measured[case]["rate"] = statistics.median(rates[case] + more)
        top = max(top, peak(args.threads))
        for case, of in measured.items():
            results[f"{name}: {case}"] = of | {"peak": 3 * of["work"] * of["rate"] / top}
        first = results[f"{name}: softmax"]["rate"]
        rows += [
            [case, f"{r['rate']:,.0f}", f"{r['rate'] / first:.2f}", f"{r['work'] / 1e6:.2f}", f"{r['peak']:.0%}"]
            for case, r in results.items()
            if case.startswith(f"{name}:")
        ]
    if args.json:
        print(json.dumps(results))
        return
    header = ["case", "target words/s", "beside our softmax", "million multiply-adds a word", "of the peak"]
    Table(f"Training, {args.threads} threads, batch {args.batch}", header, rows).show()


if __name__ == "__main__":
    main()
