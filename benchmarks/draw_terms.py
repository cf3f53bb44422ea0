"""Draws a glossary from held-out pairs: words that their translations write in the same way nearly every time.

    python benchmarks/draw_terms.py data/gettext/test.en data/gettext/test.fr --out terms.tsv [--terms 200]
    pointing evaluate RUN --source data/gettext/test.en --reference data/gettext/test.fr --glossary terms.tsv

A term is a word of at least four letters that stands in at least two pairs, whose most probable link (by our word
aligner, on these pairs alone) is another word that stands in all of their targets: the term of this text.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

from pointing.text.aligner import induce
from pointing.text.tokenizer import Tokenizer

SHORTEST = 4  # letters
SURE, SHARE, PAIRS = 0.3, 1.0, 2  # of the link; of the targets; at least


def terms(source: list[str], target: list[str]) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(lowercase=True)
    pairs = [(tokenizer.words(x), tokenizer.words(y)) for x, y in zip(source, target, strict=True)]
    best: dict[str, tuple[float, str]] = {}
    for word, other, probability in induce(iter(pairs)).pairs():
        best[word] = max(best.get(word, (0.0, "")), (probability, other))
    found = []
    for word, (probability, other) in sorted(best.items()):
        letters = re.fullmatch(r"[^\W\d_]+", word) and re.fullmatch(r"[^\W\d_]+", other)
        if not letters or min(len(word), len(other)) < SHORTEST or probability < SURE or word == other:
            continue
        targets = [y for x, y in pairs if word in x]
        if len(targets) >= PAIRS and sum(other in y for y in targets) >= SHARE * len(targets):
            found.append((word, other))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--terms", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (arguments.source, arguments.target)]
    found = terms(*lines)
    drawn = random.Random(arguments.seed).sample(found, min(arguments.terms, len(found)))
    arguments.out.write_text("".join(f"{word}\t{other}\n" for word, other in sorted(drawn)), encoding="utf-8")
    print(f"{arguments.out}: {len(drawn)} of {len(found)} terms")


if __name__ == "__main__":
    main()
