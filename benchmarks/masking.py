"""The usual way to keep placeholders: masked by numbers before a translator reads the text, put back afterwards.

    python benchmarks/masking.py mask data/gettext data/gettext-masked        # train, dev and test of both sides
    python benchmarks/masking.py unmask data/gettext/test.en outputs.txt > unmasked.txt

Each protected span of a source line becomes `__PH1__`, `__PH2__`, … in the order of their first occurrence, and so does
the same span of the target. A space keeps a mask apart from a letter beside it. A model of any kind can be trained on
the masked text. `unmask` puts the spans of source line n into output line n, without that space where the source has
none. A number that the source has not stays as it is.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from pointing.text.protected import PRESETS, Protector

PROTECTOR = Protector(PRESETS["software"])


def spans(line: str) -> list[str]:
    """The different protected texts of a line, in the order of their first occurrence."""
    return list(dict.fromkeys(line[start:end] for start, end, _ in PROTECTOR(line)))


def masked(line: str, numbers: dict[str, int]) -> str:
    """The line with each protected text that has a number replaced by its mask."""
    text, at = [], 0
    for start, end, _ in PROTECTOR(line):
        if line[start:end] in numbers:
            left, right = touches(line, start, end)
            text += [line[at:start], " " * left + f"__PH{numbers[line[start:end]]}__" + " " * right]
            at = end
    return "".join([*text, line[at:]])


def touches(line: str, start: int, end: int) -> tuple[bool, bool]:
    """True if a letter, a digit or another span's end stands directly before the span, and directly after it."""
    return bool(re.search(r"[\w>]\Z", line[:start])), bool(re.match(r"[\w<]", line[end:]))


def mask(corpus: Path, out: Path, languages: tuple[str, str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        sides = [(corpus / f"{split}.{language}").read_text(encoding="utf-8").split("\n") for language in languages]
        lines: tuple[list[str], list[str]] = ([], [])
        for source, target in zip(*sides, strict=True):
            numbers = {text: number for number, text in enumerate(spans(source), 1)}
            for side, line in enumerate((source, target)):
                lines[side].append(masked(line, numbers))
        for language, side_lines in zip(languages, lines, strict=True):
            (out / f"{split}.{language}").write_text("\n".join(side_lines), encoding="utf-8")


def unmask(source: Path, outputs: Path) -> None:
    sources, lines = (path.read_text(encoding="utf-8").splitlines() for path in (source, outputs))
    for source_line, line in zip(sources, lines, strict=True):
        joined = {source_line[s:e]: touches(source_line, s, e) for s, e, _ in PROTECTOR(source_line)}
        for number, text in enumerate(spans(source_line), 1):
            left, right = (" ?" * side for side in joined[text])
            line = re.sub(rf"{left}__PH{number}__{right}", lambda _, text=text: text, line, flags=re.IGNORECASE)
        sys.stdout.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["mask", "unmask"])
    parser.add_argument("first", type=Path, help="the corpus, or the source lines")
    parser.add_argument("second", type=Path, help="the masked corpus, or the outputs")
    parser.add_argument("--languages", nargs=2, default=("en", "fr"))
    arguments = parser.parse_args()
    if arguments.command == "mask":
        mask(arguments.first, arguments.second, tuple(arguments.languages))
    else:
        unmask(arguments.first, arguments.second)


if __name__ == "__main__":
    main()
