"""Files with both sides in them as pairs of lines to learn from: tables, JSON lines, PO, XLIFF, text with tabs.

A message of several lines or columns gives a pair for each, as `pointing translate` asks for them one by one, and
accelerators are taken off. What cannot be learned from is counted with the reason.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from pointing.documents.columns import Wanted
from pointing.documents.filled_columns import SAMPLE, FilledColumns, choose_filled_columns
from pointing.documents.json_lines import read_object, text_of
from pointing.documents.kinds import SUFFIXES
from pointing.documents.message import pieces
from pointing.documents.po import Po
from pointing.documents.raw_file import decoded
from pointing.documents.tables import read_rows
from pointing.documents.xliff import Xliff
from pointing.errors import Misuse
from pointing.system.border import LARGEST, read_bytes
from pointing.text.accelerators import without_accelerator
from pointing.text.languages import language_of_name
from pointing.text.protected import PRESETS, Protector

WITH_BOTH_SIDES = tuple(suffix for kind, suffixes in SUFFIXES.items() if kind != "text" for suffix in suffixes)
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
INSTEAD = {  # of files that cannot be read
    ".json": "write one object a line, and name it .jsonl",
    **dict.fromkeys(SPREADSHEETS, "save the table as CSV"),
}
Read = Callable[[Path], bytes]
_SPACES = re.compile(r"[^\S\u00a0\u202f]+")  # but no-break spaces, which are part of how a language is written
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")  # JSON can write them, UTF-8 cannot

_PLAIN_WORD = re.compile(r"(?<!\S)[^\W\d_]{2,}(?!\S)")  # which no protected span but a tag or {{…}} can hold
_MAY_HAVE_PARTS = re.compile(r"\s\s|[\t\r\n<{]")


class Pair(NamedTuple):
    """A text and its translation: a message of a file, or one of its lines, which is an example."""

    line: int  # in the file, from 1
    source: str
    target: str
    key: str | None = None  # what keeps it together with others when dev and test are split off


@dataclass
class PairsOfFile:
    """What a file has to learn from."""

    path: Path
    pairs: list[Pair] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # messages, by reason
    first_left_out: dict[str, int] = field(default_factory=dict)  # the line of the first one
    notes: list[str] = field(default_factory=list)  # what was guessed
    languages: tuple[str | None, str | None] = (None, None)  # of source and target, if names of columns say them

    def leave_out(self, reason: str, line: int) -> None:
        self.left_out[reason] += 1
        self.first_left_out.setdefault(reason, line)

    @property
    def emptiness(self) -> str:
        """Why there is no pair, in words."""
        reasons = (
            f"{count:,} have {reason} (first on line {self.first_left_out[reason]:,})"
            for reason, count in self.left_out.items()
        )
        return f"there is no pair to learn from: {', '.join(reasons) or 'it is empty'}"


def is_table(path: Path) -> bool:
    """True for a file whose name says that both sides are in it."""
    return _suffix(path) in WITH_BOTH_SIDES


def is_data(path: Path) -> bool:
    """True for a file whose name says that it is data: a table, text, or a spreadsheet."""
    return is_table(path) or _suffix(path) in (*SUFFIXES["text"], *SPREADSHEETS)


def read_pairs(path: Path, wanted: Wanted, key_column: str | None = None, read: Read = read_bytes) -> PairsOfFile:
    """The pairs of a file, whose bytes `read` gives.

    `wanted` are the columns that the user names, and languages for guessing them.
    """
    suffix, found = _suffix(path), PairsOfFile(path)
    if suffix in INSTEAD:
        raise Misuse(f"files named *{suffix} cannot be read: {INSTEAD[suffix]}", path)
    data = _unpacked(path, read(path))
    if suffix in SUFFIXES["gettext"] or suffix in SUFFIXES["XLIFF"]:
        if key_column is not None or wanted.source is not None or wanted.target is not None:
            raise Misuse("there are no columns in this file: name none", path)
        kind = Po if suffix in SUFFIXES["gettext"] else Xliff
        messages = _document_messages(found, kind(path, data, wanted.languages[1]))
    elif suffix in SUFFIXES["JSON lines"]:
        messages = _json_messages(found, data, wanted, key_column)
    else:
        messages = _table_messages(found, data, wanted, key_column)
    protector = Protector(PRESETS["software"])
    for message in messages:
        _add_lines(found, message, protector)
    return found


def _suffix(path: Path) -> str:
    """The end of the file's name, without .gz."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def _unpacked(path: Path, data: bytes) -> bytes:
    if path.suffix.lower() != ".gz":
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            unpacked = file.read(LARGEST + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Misuse(f"this is not a whole gzip file ({error})", path) from None
    if len(unpacked) > LARGEST:
        raise Misuse(f"unpacked, this file has more than {LARGEST:,} bytes: cut it into parts", path)
    return unpacked


def _table_messages(found: PairsOfFile, data: bytes, wanted: Wanted, key_column: str | None) -> Iterator[Pair]:
    suffix = _suffix(found.path)
    raw = decoded(found.path, data, "utf-8", "as tables are read: save it as UTF-8")
    rows = [(row.line, [field.value for field in row.fields]) for row in read_rows(raw, is_csv=suffix == ".csv")]
    if not rows:
        return
    if suffix not in SUFFIXES["tables"] and len(rows[0][1]) < 2:
        what = "this text has no tab between source and translation: give two files, or a table"
        raise Misuse(what, found.path, rows[0][0])
    columns = choose_filled_columns([cells for _, cells in rows], wanted, key_column, found.path)
    _note(found, columns)
    for line, cells in rows[columns.header is not None :]:
        if any(cells[columns.width :]):
            found.leave_out("more cells than there are columns", line)
            continue
        source, target, key = (
            "" if place is None or place >= len(cells) else cells[place]
            for place in (columns.source, columns.target, columns.key)
        )
        yield Pair(line, source, target, key or None)


def _json_messages(found: PairsOfFile, data: bytes, wanted: Wanted, key_column: str | None) -> Iterator[Pair]:
    raw = decoded(found.path, data, "utf-8", "as JSON is read")
    objects = [
        (line, dict(_flat(read_object(text, found.path, line))))
        for line, text in enumerate(raw.text.split("\n"), 1)
        if text.strip()
    ]
    names = list(dict.fromkeys(name for _, members in objects for name in members))
    if not names:
        for line, _ in objects:
            found.leave_out("no source", line)
        return
    texts = ([text_of(members.get(name)) or "" for name in names] for _, members in objects[:SAMPLE])
    columns = choose_filled_columns([names, *texts], wanted, key_column, found.path, has_header=True)
    _note(found, columns)
    for line, members in objects:
        source, target = (text_of(members.get(names[place])) for place in (columns.source, columns.target))
        if source is None or target is None:
            found.leave_out("a value that is no text", line)
            continue
        key = None if columns.key is None else members.get(names[columns.key])
        yield Pair(line, source, target, None if key in (None, "") else str(key))


def _flat(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members of an object; those of an object inside with dotted names, as in {"translation": {"en": …}}."""
    for name, member in value.items():
        if isinstance(member, dict):
            yield from ((f"{name}.{inner}", value) for inner, value in member.items())
        else:
            yield name, member


def _note(found: PairsOfFile, columns: FilledColumns) -> None:
    """Writes down which columns were chosen, and their languages."""
    if columns.guess is not None:
        found.notes.append(f"{found.path}: {columns.guess}")
    if columns.header is not None:
        source, target = (columns.header[place] for place in (columns.source, columns.target))
        found.languages = language_of_name(source), language_of_name(target)


def _document_messages(found: PairsOfFile, document: Po | Xliff) -> Iterator[Pair]:
    found.languages = None, document.language and language_of_name(document.language)
    for unit in document.units:
        if unit.state == "fuzzy":
            found.leave_out("a fuzzy mark", unit.line)
        elif unit.trouble is not None:
            found.leave_out(f"trouble: {unit.trouble}", unit.line)
        else:
            for source, target in dict.fromkeys(zip(unit.sources, unit.targets, strict=True)):
                yield Pair(unit.line, source, target)


def _add_lines(found: PairsOfFile, message: Pair, protector: Protector) -> None:
    """The lines of a message as pairs, if both sides have the same parts."""
    line, source, target, key = message
    if not source.strip() or not target.strip():
        found.leave_out("no translation" if source.strip() else "no source", line)
        return
    for wrong, reason in (("\0", "a NUL character"), (_HALF_CHARACTER, "half a character (a lone surrogate)")):
        if re.search(wrong, source) or re.search(wrong, target):
            found.leave_out(reason, line)
            return
    sides = [_parts(text.strip(), protector) for text in (source, target)]
    if len(sides[0]) != len(sides[1]):
        if "\n" in source.strip() or "\n" in target.strip():
            found.leave_out("lines that do not match", line)
            return
        sides = [[source], [target]]
    if not sides[0]:
        found.leave_out("no word", line)
        return
    for left, right in zip(*sides, strict=True):
        found.pairs.append(Pair(line, _one_line(left), _one_line(right), key))


def _parts(text: str, protector: Protector) -> list[str]:
    """The parts of a text that have words, without accelerators."""
    if _PLAIN_WORD.search(text) and not _MAY_HAVE_PARTS.search(text):
        return [without_accelerator(text)[0]]  # what `pieces` would say, in a fraction of its time
    return [piece.core for piece in pieces(text, protector, accelerators=True) if piece.is_asked]


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()
