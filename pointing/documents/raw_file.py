"""A file's bytes as text, and edits to that text: what no edit touches is written back byte for byte."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from pathlib import Path

from pointing.errors import Misuse

MARKS = {  # byte order marks; the longest first
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}  # that add no mark when they write


@dataclass(frozen=True)
class RawFile:
    """The text of a file, without its byte order mark, and how to turn text into bytes of the same kind."""

    path: Path
    data: bytes = field(repr=False)
    text: str = field(repr=False)
    encoding: str
    mark: bytes = b""  # the byte order mark

    def bytes_of(self, text: str, errors: str = "strict") -> bytes:
        return self.mark + text.encode(self.encoding, errors)

    def can_hold(self, text: str) -> bool:
        """True if the file's encoding has all characters of the text."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def line_at(self, offset: int) -> int:
        """The number, from 1, of the line in which a character stands."""
        return self.text.count("\n", 0, offset) + 1


def decoded(path: Path, data: bytes, encoding: str, declared: str) -> RawFile:
    """The text of `data`; `declared` says where the encoding comes from, for the message about bytes outside of it."""
    mark = next((mark for mark in MARKS if data.startswith(mark)), b"")
    codec = MARKS[mark] if mark else encoding
    body = data[len(mark) :]
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as error:
        line = body.count("\n".encode(codec), 0, error.start) + 1
        raise Misuse(
            f"not {encoding}, {declared} (byte {error.start + len(mark) + 1} of the file)", path, line
        ) from None
    if (nul := text.find("\0")) >= 0:
        raise Misuse("there is a NUL character: this is no text file", path, text.count("\n", 0, nul) + 1)
    return RawFile(path, data, text, codec, mark)


def text_codec(path: Path, name: str) -> str:
    """The name of a text encoding as Python knows it."""
    try:
        "a".encode(name)
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        raise Misuse(f"no encoding {name!r} is known: save the file as UTF-8", path) from None
    return _WITHOUT_MARK.get(codecs.lookup(name).name, name)


class Edits:
    """Replacements in a text that do not overlap."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.changes: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, new: str) -> None:
        self.changes.append((start, end, new))

    def insert(self, at: int, new: str) -> None:
        self.replace(at, at, new)

    def result(self) -> str:
        """The text with all changes; insertions at the same place stand in the order in which they were made."""
        parts, done = [], 0
        for start, end, new in sorted(self.changes, key=lambda change: change[:2]):
            if start < done:
                raise ValueError(f"two changes of character {start}")
            parts += [self.text[done:start], new]
            done = end
        return "".join([*parts, self.text[done:]])
