"""Lines a second of each kind of tokenizer, beside sacremoses' own.

    python benchmarks/tokenization.py [FILE] [--language fr] [--lines 20000]

FILE is plain or gzipped text; without it, lines are generated. In each round all tokenizers start with an empty memory
and take turns, 500 lines at a time, on one core. For each piece of 500 lines the best time of all rounds counts, so
that other work on the machine does not change the result.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from pointing.errors import Misuse
from pointing.system.files import read_text
from pointing.text.tokenizer import Tokenizer

Contestant = Callable[[], Callable[[str], object]]  # builds a function of a line


def generated(count: int, seed: int = 1) -> Iterator[str]:
    """Sentences of made-up words whose frequencies fall as natural ones do (rank to the power -1)."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "ion")]
    vocabulary = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(30_000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    for _ in range(count):
        words = rng.choices(vocabulary, cum_weights=weights, k=rng.randint(8, 30))
        words[0] = words[0].capitalize()
        for place in range(3, len(words) - 1, 9):
            words[place] = rng.choice(["{},", "{}'s", "({})", "{} 12.5%", "{}-{}", '"{}"']).format(words[place], "ex")
        yield " ".join(words) + "."


def contestants(language: str) -> dict[str, Contestant]:
    ours: dict[str, Contestant] = {
        "regex": lambda: Tokenizer("regex", language),
        "regex, lower-cased, digits folded": lambda: Tokenizer("regex", language, lowercase=True, digits="fold"),
        "regex, words without offsets": lambda: Tokenizer("regex", language).words,
        "whitespace": lambda: Tokenizer("whitespace", language),
    }
    with suppress(ImportError):
        from sacremoses import MosesTokenizer

        def sacremoses() -> Callable[[str], object]:
            tokenize = MosesTokenizer(language).tokenize
            return lambda line: tokenize(line, escape=False)

        return {"sacremoses": sacremoses, "moses": lambda: Tokenizer("moses", language), **ours}
    return ours


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--language", default="en")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        source = (line for _, line in read_text(options.file)) if options.file else generated(options.lines)
        lines = list(itertools.islice(source, options.lines))
    except Misuse as error:
        parser.error(str(error))
    if not lines:
        parser.error("there are no lines to tokenise")

    pieces = [lines[at : at + 500] for at in range(0, len(lines), 500)]
    best: dict[str, list[float]] = {name: [math.inf] * len(pieces) for name in contestants(options.language)}
    for _ in range(options.rounds):
        runners = {name: build() for name, build in contestants(options.language).items()}
        for (number, piece), (name, tokenize) in itertools.product(enumerate(pieces), runners.items()):
            start = time.process_time()
            for line in piece:
                tokenize(line)
            best[name][number] = min(best[name][number], time.process_time() - start)

    totals = {name: sum(times) for name, times in best.items()}
    reference = totals.get("sacremoses")
    print(f"{len(lines)} lines, {options.file or 'generated'}, {options.language}; best of {options.rounds} rounds")
    print(f"{'':36}{'lines/s':>10}{'µs/line':>10}{'x sacremoses':>14}")
    for name, seconds in totals.items():
        ratio = f"{reference / seconds:.1f}" if reference else "-"
        print(f"{name:36}{len(lines) / seconds:>10,.0f}{seconds / len(lines) * 1e6:>10.1f}{ratio:>14}")


if __name__ == "__main__":
    main()
