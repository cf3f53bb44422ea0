"""A corpus as parallel text: a folder with a file for each split and side, and `corpus.json`, which describes it.

Line n of `train.en` and line n of `train.fr` are one example. `corpus.json` says how many examples there are, and how
many were left out for which reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from pointing.errors import Misuse
from pointing.system.border import read_object
from pointing.system.files import whole_folder

NOTE = "corpus.json"
TOKEN = re.compile(r"\w+|[^\w\s]")  # about as many as a tokenizer gives, and the same for every corpus
SHORT = 50  # tokens; the paper's limit for a side


@dataclass(frozen=True)
class Summary:
    """What a written corpus has: `short` counts the pairs of at most 50 tokens a side (words and punctuation marks)."""

    corpus: str
    folder: str
    files: tuple[str, ...]
    pairs: dict[str, int]  # by split
    short: dict[str, int]  # by split
    left_out: dict[str, int]  # by reason
    changed: dict[str, int]  # by the kind of change
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.corpus}, in {self.folder}:"]
        for split, pairs in self.pairs.items():
            lines.append(f"  {split}: {pairs:,} pairs, {self.short[split]:,} of at most {SHORT} tokens a side")
        lines += [f"  left out: {count:,} {reason}" for reason, count in self.left_out.items()]
        lines += [f"  changed: {count:,} {what}" for what, count in self.changed.items()]
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in self.warnings)])


class CorpusWriter:
    """Writes a corpus: every pair goes to disk at once, so that a corpus may be larger than the memory."""

    def __init__(self, name: str, folder: Path, sides: Sequence[str]) -> None:
        self.name, self.folder, self.sides = name, folder, tuple(sides)
        self.pairs: Counter[str] = Counter()
        self.short: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._part: Path | None = None
        self._open = ExitStack()
        self._files: dict[str, list[TextIO]] = {}

    def add(self, split: str, *texts: str) -> None:
        """Writes one example: a text without line breaks for each side."""
        for text, file in zip(texts, self._files_of(split), strict=True):
            assert "\n" not in text, text
            file.write(text + "\n")
        self.pairs[split] += 1
        self.short[split] += all(len(TOKEN.findall(text)) <= SHORT for text in texts[:2])

    def summary(self) -> Summary:
        files = tuple(f"{split}.{side}" for split in self._files for side in self.sides)
        counts = {split: self.pairs[split] for split in self._files}
        return Summary(
            self.name,
            str(self.folder),
            files,
            counts,
            {split: self.short[split] for split in counts},
            dict(self.left_out),
            dict(self.changed),
            tuple(self.warnings),
        )

    def _files_of(self, split: str) -> list[TextIO]:
        if split not in self._files:
            assert self._part is not None
            if not re.fullmatch(r"[\w-]+", split):
                raise Misuse(f"a split is named with letters and digits, not {split!r}")
            self._files[split] = [
                # errors: JSON can hold a lone surrogate, UTF-8 cannot: it becomes a question mark
                self._open.enter_context(
                    (self._part / f"{split}.{side}").open("w", encoding="utf-8", errors="replace", newline="\n")
                )
                for side in self.sides
            ]
        return self._files[split]

    @contextmanager
    def _writing(self, part: Path) -> Iterator[None]:
        self._part = part
        with self._open:
            yield
        note = json.dumps(asdict(self.summary()), indent=2, ensure_ascii=False)
        (part / NOTE).write_text(note + "\n", encoding="utf-8")


@contextmanager
def writing(name: str, folder: str | Path, sides: Sequence[str]) -> Iterator[CorpusWriter]:
    """with writing("my corpus", "data/mine", ["en", "fr"]) as corpus: corpus.add("train", "a cat", "un chat")

    The folder appears only if the block ends well. The first two sides are source and target.
    """
    folder = Path(folder)
    _check_may_replace(folder)
    corpus = CorpusWriter(name, folder, sides)
    with whole_folder(folder) as part, corpus._writing(part):
        yield corpus
        if not corpus.pairs:
            raise Misuse(f"{name}: no pair was left, nothing was written ({dict(corpus.left_out)})")


def _check_may_replace(folder: Path) -> None:
    """An older corpus may be replaced. A folder with any other file may not, because that file would be lost."""
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        if names and not names <= {NOTE, *_files_in(folder / NOTE)}:
            raise Misuse("this folder holds other things than a corpus: name another, or an empty one", folder)
    elif folder.exists():
        raise Misuse("this is a file: name a folder", folder)


def _files_in(note: Path) -> list[str]:
    """The files of the corpus that a corpus.json describes."""
    try:
        return [str(name) for name in read_object(note, "a note on a corpus")["files"]]
    except (Misuse, KeyError, TypeError):
        return []
