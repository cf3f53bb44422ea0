"""What the guarantee of protected spans costs in generation, and what protecting and forms cost in preparation.

    python benchmarks/spans.py generation RUN lines.en [--rounds 5]
    python benchmarks/spans.py tokenization lines.en [--rounds 5]

`generation` searches the same lines in turn with the guarantee and without it (the same model, the same tokens): all
lines, and those without any span. `tokenization` tokenises the same lines in turn as a plain run, with forms, and with
forms and protected spans. Ratios of the medians of all rounds, with the spread of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import pointing
from pointing.config import Text
from pointing.corpus.lexicon import make_tokenizer
from pointing.text.token_arrays import tokenize_lines


def compare(ways: Mapping[str, Callable[[], object]], rounds: int) -> None:
    """Runs all ways in turn, and prints their times as ratios to the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            if number:  # the first round only warms up
                seconds[name].append(time.perf_counter() - start)
        print(f"  round {number} of {rounds}", flush=True)
    first = next(iter(seconds))
    for name, times in seconds.items():
        ratios = sorted(one / other for one, other in zip(times, seconds[first], strict=True))
        ratio = median(times) / median(seconds[first])
        print(f"{name}: {ratio:.3f} of the time of {first} ({ratios[0]:.3f} to {ratios[-1]:.3f})", flush=True)


def generation(run: Path, lines: list[str], rounds: int) -> None:
    model = pointing.load(run, "cpu")
    read = model.read(lines)
    has_spans = [line.protected is not None and bool(line.protected.any()) for line in read]
    parts = {"all": read, "none": [line for line, has in zip(read, has_spans, strict=True) if not has]}
    print(f"{len(read)} lines, {sum(has_spans)} with spans")
    for name, part in parts.items():
        free = [line._replace(protected=None) for line in part]
        print(f"{len(part)} lines ({name})")
        compare({"no guarantee": lambda f=free: model.run(f), "guaranteed": lambda p=part: model.run(p)}, rounds)


def tokenization(lines: list[str], rounds: int) -> None:
    def way(**text: object) -> Callable[[], object]:
        settings = Text.model_validate(text)
        return lambda: tokenize_lines(make_tokenizer(settings, "en"), lines, settings.forms)

    software = {"forms": True, "protect": "software"}
    compare({"plain": way(), "forms": way(forms=True), "forms and protected spans": way(**software)}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["generation", "tokenization"])
    parser.add_argument("paths", type=Path, nargs="+", help="a run and its lines, or lines")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=1000, help="at most so many lines")
    arguments = parser.parse_args()
    lines = arguments.paths[-1].read_text(encoding="utf-8").splitlines()
    if arguments.what == "generation":
        generation(arguments.paths[0], lines[: arguments.lines], arguments.rounds)
    else:
        tokenization(lines, arguments.rounds)


if __name__ == "__main__":
    main()
