"""How precise is an induced dictionary? Its links in sentences that were aligned by hand, beside simpler methods.

    python benchmarks/dictionary_precision.py --source train.en.gz --target train.fr.gz \\
        --gold-text gold.txt --gold-alignments gold.align [--dictionary words.tsv …]

The gold text has lines `source ||| target`, tokenised; the alignments have lines of `1-1 2-3 4p3`, counted from 1:
`-` is a sure link, `p` a possible one. The gold sentences are added to the training text, as usual in word alignment
(--held-out leaves them out); the gold alignments are not used for training.

A target word is linked to the best of its senses that occurs in the source sentence; if this occurs several times, to
the place nearest to the diagonal. precision = links that are sure or possible / links; recall = sure links found / sure
links; AER as in Och and Ney (2003).
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from pointing.errors import Misuse
from pointing.system.files import read_text
from pointing.text.aligner import MODEL_1, Estimate, estimate, induce
from pointing.text.dictionary import Dictionary
from pointing.text.tokenizer import Tokenizer

Words = Sequence[str]
Links = set[tuple[int, int]]  # (source position, target position)


class Gold(NamedTuple):
    source: list[str]
    target: list[str]
    sure: Links
    possible: Links  # includes the sure links


def read_gold(text: str, alignments: str) -> list[Gold]:
    gold = []
    for (number, line), (_, links) in zip(read_text(text), read_text(alignments), strict=True):
        sides = line.lower().split("|||")
        if len(sides) != 2 or not re.fullmatch(r"\s*(\d+[-p]\d+\s*)*", links):
            raise Misuse("expected `source ||| target` here and `1-1 2p3` in the alignments", text, number)
        cells = [(int(i) - 1, int(j) - 1, kind) for i, kind, j in re.findall(r"(\d+)([-p])(\d+)", links)]
        sure = {(i, j) for i, j, kind in cells if kind == "-"}
        gold.append(Gold(sides[0].split(), sides[1].split(), sure, {(i, j) for i, j, _ in cells}))
    return gold


def links_by(senses: Callable[[str], Words], source: Words, target: Words) -> Links:
    links = set()
    for j, word in enumerate(target):
        best = next((sense for sense in senses(word) if sense in source), None)
        if best is not None:
            positions = [i for i, sense in enumerate(source) if sense == best]
            links.add((min(positions, key=lambda i: abs(i / len(source) - j / len(target))), j))
    return links


def viterbi(estimates: Estimate) -> Callable[[Words, Words], Links]:
    """Links each word with its most probable partner, if both directions choose the same pair."""
    keys = estimates.source.astype(np.int64) << 32 | estimates.target
    source_ids = {word: number for number, word in enumerate(estimates.source_words)}
    target_ids = {word: number for number, word in enumerate(estimates.target_words)}

    def align(source: Words, target: Words) -> Links:
        i = np.array([source_ids.get(word, -1) for word in source])
        j = np.array([target_ids.get(word, -1) for word in target])
        wanted = i.astype(np.int64) << 32 | j[:, None]  # (J, I)
        at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        seen = (keys[at] == wanted) & (i >= 0) & (j[:, None] >= 0)
        forward, backward = np.where(seen, estimates.forward[at], 0), np.where(seen, estimates.backward[at], 0)
        best_i, best_j = forward.argmax(1), backward.argmax(0)
        return {(int(s), t) for t, s in enumerate(best_i) if seen[t, s] and best_j[s] == t}

    return align


def row(name: str, size: int | None, align: Callable[[Words, Words], Links], gold: list[Gold], rare: set[str]) -> str:
    cells = [name, "" if size is None else f"{size:,}"]
    for subset in (None, rare):
        links = right = sure_found = sure_all = 0
        for pair in gold:
            counted = [subset is None or word in subset for word in pair.target]
            linked = {(i, j) for i, j in align(pair.source, pair.target) if counted[j]}
            sure = {(i, j) for i, j in pair.sure if counted[j]}
            links, right = links + len(linked), right + len(linked & pair.possible)
            sure_found, sure_all = sure_found + len(linked & sure), sure_all + len(sure)
        cells += [f"{links:,}", f"{100 * right / max(1, links):.1f}", f"{100 * sure_found / max(1, sure_all):.1f}"]
        if subset is None:
            cells.append(f"{100 * (1 - (sure_found + right) / max(1, links + sure_all)):.1f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="training text, plain or .gz")
    parser.add_argument("--target", required=True)
    parser.add_argument("--gold-text", required=True)
    parser.add_argument("--gold-alignments", required=True)
    parser.add_argument("--dictionary", action="append", default=[], help="a dictionary to compare with; repeatable")
    parser.add_argument("--languages", nargs=2, default=["en", "fr"])
    parser.add_argument("--pairs", type=int, help="read no more of the training text")
    parser.add_argument("--rare", type=int, default=10, help="a rare word is seen at most this often in training")
    parser.add_argument("--held-out", action="store_true", help="do not add the gold text to the training text")
    options = parser.parse_args()
    gold = read_gold(options.gold_text, options.gold_alignments)
    source, target = (Tokenizer("regex", language, lowercase=True) for language in options.languages)

    def training() -> Iterator[tuple[Words, Words]]:
        lines = zip(read_text(options.source), read_text(options.target), strict=True)
        for (_, line), (_, other) in islice(lines, options.pairs):
            yield source.words(line), target.words(other)

    def corpus() -> Iterator[tuple[Words, Words]]:
        yield from training()
        if not options.held_out:
            yield from ((pair.source, pair.target) for pair in gold)

    counts = Counter(word for _, words in training() for word in words)
    words = [word for pair in gold for word in pair.target]
    rare = {word for word in words if counts[word] <= options.rare}
    print(f"gold: {len(gold)} pairs, {len(words):,} target words, {sum(word in rare for word in words):,} of them rare")
    print(f"(seen at most {options.rare} times in the training text's {counts.total():,} target words)\n")
    print("| | pairs | links | precision % | recall % | AER % | rare links | rare precision % | rare recall % |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    print(row("same word", None, lambda x, y: links_by(lambda word: [word], x, y), gold, rare))
    for path in options.dictionary:
        given = Dictionary.load(path).normalized(str.lower, str.lower)
        print(row(path.rpartition("/")[2], len(given), lambda x, y: links_by(given.senses, x, y), gold, rare))  # noqa: B023
    start = time.perf_counter()
    induced = induce(corpus())
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(row("induced", len(induced), lambda x, y: links_by(induced.senses, x, y), gold, rare))
    print(row("Model 1 alignment, intersection", None, viterbi(estimate(corpus(), prior=MODEL_1)), gold, rare))
    print(f"\ninduced in {seconds:.0f} s, tokenising included; peak memory {peak * 1024 / 1e9:.2f} GB")


if __name__ == "__main__":
    try:
        main()
    except Misuse as error:
        sys.exit(str(error))
