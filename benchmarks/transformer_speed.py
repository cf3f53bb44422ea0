"""Training and generation with Transformers on this machine: ours (also with an SSRU decoder) and OpenNMT-py's.

    python benchmarks/transformer_speed.py data/debian/train.en data/debian/train.fr --peer opennmt

All have the same words, widths, layers, batch, threads and beam. The peer's Transformer copies nothing, which is in its
favour. The table has target words per second in training, the share of the measured peak of float32 matrix products
that our updates reach, and sentences per second in a search whose outputs all have --steps words. Half of our updates
are made before the peer runs and half after it, because a shared machine is not always equally fast.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import opennmt
import torch
from training import corpus_of, lengths, options, peak, side_by_side, updates

from pointing.config import Config, Search, checked
from pointing.corpus.examples import Corpus
from pointing.generation.generator import Generator
from pointing.model.run import Run, make_model
from pointing.system.tables import Table

WIDTH, FEED_FORWARD, LAYERS, HEADS, WORDS = 256, 1024, 3, 4, 5_000
OURS = {
    "Transformer, softmax": {"kind": "transformer", "output": "softmax"},
    "Transformer, pointer softmax": {"kind": "transformer", "output": "pointer-softmax"},
    "SSRU, pointer softmax": {"kind": "ssru", "output": "pointer-softmax"},
}
MODEL = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "heads": HEADS, "tied": True}
SIZES = {"embedding": WIDTH, "hidden": FEED_FORWARD, "encoder": FEED_FORWARD}
PEER = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "enc_layers": LAYERS,
    "dec_layers": LAYERS,
    "heads": HEADS,
    "transformer_ff": FEED_FORWARD,
    "position_encoding": True,
    "share_decoder_embeddings": True,
    "self_attn_type": "scaled-dot",
    "global_attention": "general",
}


def multiplications(J: float, T: float, kind: Mapping[str, str]) -> float:
    """Multiply-adds of our forward pass for a pair of J and T words."""
    D, H, V = WIDTH, FEED_FORWARD, WORDS
    layer = 4 * D * D + 2 * D * H  # self-attention's projections, and feed-forward
    encoder = J * (LAYERS * layer) + LAYERS * 2 * J * J * D
    before = 3 * D * D if kind["kind"] == "ssru" else 4 * D * D + T * D  # on average half of the steps are before
    source = 2 * D * D + 2 * J * D
    decoder = T * LAYERS * (before + source + 2 * D * H) + J * LAYERS * 2 * D * D
    location = T * (2 * D * D + 2 * J * D) + J * D * D
    switch = T * 3 * D * D if kind["output"] == "pointer-softmax" else 0
    return encoder + decoder + location + switch + T * D * V


def generated(corpus: Corpus, kind: Mapping[str, str], lines: list[str], args: argparse.Namespace) -> float:
    """Sentences per second, the best of three runs over the lines; weights are random."""
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    config = checked(Config, {**corpus.about["settings"], "model": {**SIZES, **MODEL, **kind}})
    lexicon = replace(corpus.lexicon, config=config)
    generator = Generator(Run(lexicon, make_model(lexicon).eval(), {}))
    search = checked(Search, {"beam": args.beam, "min_length": args.steps, "max_length": args.steps, "max_ratio": None})
    generator.generate(lines[:32], search)  # warm-up
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        generator.generate(lines, search)
        seconds.append(time.perf_counter() - start)
    return len(lines) / min(seconds)


def main() -> None:
    parser = options(__doc__.split("\n")[0], "benchmark-transformers", [])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--updates", type=int, default=20, help="of each case, after 3 for warming up")
    parser.add_argument("--lines", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20, help="words of every output")
    parser.add_argument("--beam", type=int, default=5)
    args = parser.parse_args()
    files = {"source": str(args.source.resolve()), "target": str(args.target.resolve())}
    corpus = corpus_of(WORDS, files, args.folder)
    J, T = lengths(corpus)
    cases = {name: updates(corpus, SIZES, args, **MODEL, **kind) for name, kind in OURS.items()}
    top, half = peak(args.threads), args.updates // 2
    side_by_side(cases, 3)
    rates = side_by_side(cases, half)
    train = corpus.split("train")
    lines = [train[row]["source_text"] for row in range(min(args.lines, len(train)))]
    results: dict[str, Any] = {}
    print("ours trained; searching", flush=True)
    for name, kind in OURS.items():
        results[name] = {"search": generated(corpus, kind, lines, args)}
    if args.peer is not None:
        print("now the peer", flush=True)
        python = opennmt.environment(args.peer)
        source, target = opennmt.write_text(corpus.folder, args.folder / "text")
        some = args.folder / "text" / "some.source"
        some.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[: len(lines)]), "utf-8")
        sizes = {"embedding": WIDTH, "hidden": WIDTH, "vocabulary": WORDS}
        run = {"batch": args.batch, "threads": args.threads}
        made = opennmt.train(
            python, args.folder / "peer", source, target,
            **sizes, **run, updates=max(30, args.updates), copy=False, model=PEER,
        )  # fmt: skip
        search = {"beam": args.beam, "max_length": args.steps, "min_length": args.steps}
        said = opennmt.translate(python, made.model, some, args.folder / "output", **run, **search)
        results["OpenNMT-py's Transformer"] = {"train": made.tokens_per_second, "search": len(lines) / said.seconds}
    for name, more in side_by_side(cases, args.updates - half).items():
        results[name]["train"] = statistics.median(rates[name] + more)
    top = max(top, peak(args.threads))
    for name, kind in OURS.items():
        results[name]["peak"] = 3 * multiplications(J, T, kind) / T * results[name]["train"] / top
    if args.json:
        print(json.dumps(results))
        return
    first = results["OpenNMT-py's Transformer" if args.peer is not None else next(iter(OURS))]
    rows = [
        [
            name,
            f"{r['train']:,.0f}",
            f"{r['train'] / first['train']:.2f}",
            f"{r['peak']:.0%}" if "peak" in r else "",
            f"{r['search']:,.1f}",
            f"{r['search'] / first['search']:.2f}",
        ]
        for name, r in results.items()
    ]
    header = [
        "",
        "training: words/s",
        "beside the peer",
        "of the peak",
        f"beam {args.beam}: lines/s",
        "beside the peer",
    ]
    Table(f"Width {WIDTH}, {LAYERS} + {LAYERS} layers, {args.threads} threads", header, rows).show()


if __name__ == "__main__":
    main()
