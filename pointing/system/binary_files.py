"""Tells files that are not text, so that nobody translates a picture or a model's weights line by line.

A few odd bytes do not make a file binary: a stray NUL, or a line in another encoding, is handled where lines are read.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import Any

from pointing.errors import Misuse

FIRST_BYTES = 8192  # that are looked at
MOST_ODD = 0.3  # the share of these that may be control characters, or no UTF-8
FEWEST_ODD = 16  # in a short text a few bytes are a large share
NULS = bytes(4)  # so many in a row stand in no text
KINDS = {  # how well-known files begin
    b"\x1f\x8b": "a gzip file: its name must end in .gz",
    b"\xff\xfe": "UTF-16: convert it with iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "UTF-16: convert it with iconv -f UTF-16 -t UTF-8",
    b"PK\x03\x04": "a zip archive, or an office document",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x7fELF": "a program",
}
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")  # the escape is in coloured logs


def check_is_text(path: Path) -> None:
    """Refuses a regular file, plain or .gz, that clearly is not text. What cannot be read is not refused here."""
    try:
        if not path.is_file():
            return
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            start = file.read(FIRST_BYTES)
    except (OSError, EOFError, zlib.error):
        return
    _refuse(start, path)


def check_standard_input() -> None:
    """The same for a file that the shell gives as standard input. Of a pipe nothing is known before it is read."""
    try:
        is_file = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
        buffer: Any = sys.stdin.buffer
        start = buffer.peek(FIRST_BYTES)[:FIRST_BYTES] if is_file else b""
    except (OSError, AttributeError):  # no file at all: a test's, or a notebook's
        return
    _refuse(start, "standard input")


def _refuse(start: bytes, path: Path | str) -> None:
    if is_binary(start):
        kind = next((kind for begin, kind in KINDS.items() if start.startswith(begin)), None)
        known = "" if kind is None else f"; it looks like {kind}"
        raise Misuse(f"this is not text in UTF-8{known}", path)


def is_binary(start: bytes) -> bool:
    """True if a file that begins like this is no text: NULs in a row, or many bytes that text does not have."""
    if NULS in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    text = start.decode("utf-8", "surrogateescape")  # a byte that is not UTF-8 becomes half a surrogate pair
    odd = sum("\udc80" <= character <= "\udcff" or ord(character) in _CONTROLS for character in text)
    return odd >= FEWEST_ODD and odd > MOST_ODD * len(start)
