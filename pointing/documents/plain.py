"""Plain text: every line that has a letter is a unit. A line that cannot be translated stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pointing.documents.document import Fill, Unit
from pointing.documents.raw_file import Edits, decoded, text_codec

_LINE = re.compile(r"[^\r\n]+")


class PlainText:
    kind = "text"
    language = None

    def __init__(self, path: Path, data: bytes, encoding: str = "utf-8") -> None:
        self.path, self.data, self.notes = path, data, list[str]()
        self.raw = decoded(path, data, text_codec(path, encoding), "as text files are read (see --encoding)")
        self.units: list[Unit] = []
        self.spans: list[tuple[int, int]] = []
        line, seen = 1, 0
        for match in _LINE.finditer(self.raw.text):
            line += self.raw.text.count("\n", seen, match.start())
            seen = match.start()
            if not match[0].isspace():
                self.units.append(Unit(len(self.units), line, (match[0],), ("",), "empty"))
                self.spans.append(match.span())

    def problem(self, unit: Unit, text: str) -> str | None:
        return None if self.raw.can_hold(text) else f"has characters that {self.raw.encoding} lacks"

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        edits = Edits(self.raw.text)
        for number, fill in fills.items():
            edits.replace(*self.spans[number], fill.texts[0])
        return self.raw.bytes_of(edits.result())
