"""Files with both sides in them as pairs of lines to learn from: tables, JSON lines, PO, XLIFF, text with tabs.

A message of several lines or columns gives a pair for each, as `pointing translate` asks for them one by one, and
accelerators are taken off. What cannot be learned from is counted with the reason.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pointing.documents.columns import Wanted, choose_filled_columns
from pointing.documents.kinds import SUFFIXES, Reading, open_document
from pointing.documents.message import pieces
from pointing.documents.raw_file import LARGEST, decoded, read_bytes
from pointing.documents.tables import read_rows
from pointing.errors import Misuse
from pointing.text.languages import language_of_name
from pointing.text.protected import PRESETS, Protector

KINDS = ("gettext", "XLIFF", "tables", "JSON lines", "text")


class Pair(NamedTuple):
    """An example: two lines, where they stand in the file, and what keeps them together with others."""

    line: int  # from 1
    source: str
    target: str
    key: str | None = None


class Message(NamedTuple):
    """A text of the file and its translation, each of any number of lines."""

    line: int
    source: str
    target: str
    key: str | None = None


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


def is_table(path: Path) -> bool:
    """True for a file whose name says that both sides are in it."""
    suffix = _inner(path).suffix.lower()
    return any(suffix in SUFFIXES[kind] for kind in KINDS if kind != "text")


def read_pairs(path: Path, wanted: Wanted, key_column: str | None = None) -> PairsOfFile:
    """The pairs of a file; `wanted` are the columns that the user names, and languages for guessing them."""
    suffix, found = _inner(path).suffix.lower(), PairsOfFile(path)
    if suffix in SUFFIXES["JSON lines"]:
        messages = _json_messages(found, _read(path), wanted, key_column)
    elif suffix in SUFFIXES["gettext"] or suffix in SUFFIXES["XLIFF"]:
        if key_column is not None:
            raise Misuse("there are no columns in this file: leave out key_column", path)
        messages = _document_messages(found, wanted)
    else:
        messages = _table_messages(found, _read(path), wanted, key_column)
    protector = Protector(PRESETS["software"])
    for message in messages:
        _add_lines(found, message, protector)
    if not found.pairs:
        why = ", ".join(f"{count:,} have {reason}" for reason, count in found.left_out.items()) or "it is empty"
        raise Misuse(f"there is no pair to learn from: {why}", path)
    return found


def _inner(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _read(path: Path) -> bytes:
    data = read_bytes(path)
    if path.suffix.lower() != ".gz":
        return data
    try:
        text = zlib.decompressobj(wbits=31).decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise Misuse(f"this is not a whole gzip file ({error})", path) from None
    if len(text) > LARGEST:
        raise Misuse(f"unpacked, this file has more than {LARGEST:,} bytes: cut it into parts", path)
    return text if text or not data else gzip.decompress(data)


def _table_messages(found: PairsOfFile, data: bytes, wanted: Wanted, key_column: str | None) -> Iterator[Message]:
    suffix = _inner(found.path).suffix.lower()
    raw = decoded(found.path, data, "utf-8", "as tables are read")
    if suffix not in SUFFIXES["tables"] and "\t" not in raw.text.split("\n", 1)[0]:
        raise Misuse("this text has no tab between source and translation: give two files, or a table", found.path)
    rows = read_rows(raw, is_csv=suffix == ".csv")
    values = [(row.line, [field.value for field in row.fields]) for row in rows]
    if not values:
        return
    columns = choose_filled_columns([cells for _, cells in values], wanted, key_column, found.path)
    found.notes += [f"{found.path}: {columns.guess}"] if columns.guess else []
    if columns.header is not None:
        names = [columns.header[place] for place in (columns.source, columns.target)]
        found.languages = language_of_name(names[0]), language_of_name(names[1])
    for line, cells in values[columns.header is not None :]:
        source, target, key = (
            "" if place is None or place >= len(cells) else cells[place]
            for place in (columns.source, columns.target, columns.key)
        )
        yield Message(line, source, target, None if columns.key is None else key)


def _json_messages(found: PairsOfFile, data: bytes, wanted: Wanted, key_column: str | None) -> Iterator[Message]:
    raw = decoded(found.path, data, "utf-8", "as JSON is read")
    objects: list[tuple[int, dict[str, str]]] = []
    for line, text in enumerate(raw.text.split("\n"), 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Misuse(f"this line is no JSON: {error}", found.path, line) from None
        if not isinstance(value, dict):
            raise Misuse("this line is JSON, but no object: {…}", found.path, line)
        objects.append((line, dict(_flat(value))))
    names = list(dict.fromkeys(name for _, members in objects for name in members))
    if not names:
        return
    table = [names, *([members.get(name, "") for name in names] for _, members in objects[:1000])]
    columns = choose_filled_columns(table, wanted, key_column, found.path, has_header=True)
    found.notes += [f"{found.path}: {columns.guess}"] if columns.guess else []
    source, target = names[columns.source], names[columns.target]
    found.languages = language_of_name(source), language_of_name(target)
    key = None if columns.key is None else names[columns.key]
    for line, members in objects:
        yield Message(
            line, members.get(source, ""), members.get(target, ""), None if key is None else members.get(key, "")
        )


def _flat(value: dict[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The texts of an object; those of objects inside with dotted names, as in {"translation": {"en": …}}."""
    for name, member in value.items():
        if isinstance(member, str):
            yield prefix + name, member
        elif isinstance(member, dict) and not prefix:
            yield from _flat(member, f"{name}.")


def _document_messages(found: PairsOfFile, wanted: Wanted) -> Iterator[Message]:
    document = open_document(found.path, Reading(wanted.languages[1], wanted))
    found.languages = None, document.language and language_of_name(document.language)
    for unit in document.units:
        if unit.state == "fuzzy":
            found.leave_out("a fuzzy mark", unit.line)
            continue
        for source, target in dict.fromkeys(zip(unit.sources, unit.targets, strict=False)):
            yield Message(unit.line, source, target)


def _add_lines(found: PairsOfFile, message: Message, protector: Protector) -> None:
    """The lines of a message as pairs, if both sides have the same parts."""
    line, source, target, key = message
    if not source.strip() or not target.strip():
        found.leave_out("no translation" if source.strip() else "no source", line)
        return
    if "\0" in source or "\0" in target:
        found.leave_out("a NUL character", line)
        return
    sides: list[Sequence[str]] = [
        [piece.core for piece in pieces(text.strip(), protector, accelerators=True) if piece.is_asked]
        for text in (source, target)
    ]
    if len(sides[0]) != len(sides[1]):
        if "\n" in source.strip() or "\n" in target.strip():
            found.leave_out("lines that do not match", line)
            return
        sides = [[" ".join(text.split())] for text in (source, target)]
    if not sides[0]:
        found.leave_out("no word", line)
        return
    for left, right in zip(*sides, strict=True):
        found.pairs.append(Pair(line, " ".join(left.split()), " ".join(right.split()), key))
