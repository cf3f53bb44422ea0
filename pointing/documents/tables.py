"""Tables with named columns, CSV and TSV: only the fields that are filled change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pointing.documents.columns import Wanted, choose_columns
from pointing.documents.document import Fill, State, Unit
from pointing.documents.raw_file import Edits, RawFile, decoded, text_codec
from pointing.errors import Misuse

_ROW_END = re.compile(r"\r\n|\n|\r|$")
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
CHARACTERS_OF_FIRST_LINES = 1 << 16  # that the delimiter is chosen by


class Field(NamedTuple):
    """A field's value, and its characters in the file, with its quotation marks."""

    value: str
    start: int
    end: int


class Row(NamedTuple):
    line: int
    fields: list[Field]


class DelimitedTable:
    """CSV (fields may be quoted) or TSV (a tab always ends a field, a quotation mark is a character like others)."""

    language = None

    def __init__(self, path: Path, data: bytes, wanted: Wanted, encoding: str = "utf-8") -> None:
        self.path, self.data, self.notes = path, data, list[str]()
        self.raw = decoded(path, data, text_codec(path, encoding), "as tables are read (see --encoding)")
        self.kind = "CSV" if path.suffix.lower() == ".csv" else "TSV"
        self.delimiter = _delimiter(self.raw.text, self.kind == "CSV")
        self.rows = read_rows(self.raw, self.kind == "CSV")
        self.units: list[Unit] = []
        if self.rows:
            self._choose(wanted)
            self._read()

    def _choose(self, wanted: Wanted) -> None:
        """By name in the header; two numbers mean that there is no header, unless it has such names."""
        names = [field.value for field in self.rows[0].fields]
        numbers = [value for value in (wanted.source, wanted.target) if value is not None and value.isdecimal()]
        self.header: Row | None = None
        self.new_name: str | None = None  # of the target's column, if it is to be added
        if len(numbers) == 2 and not set(numbers) & set(names):
            self.source, self.target = (int(number) - 1 for number in numbers)
            if min(self.source, self.target) < 0 or self.source >= len(names) or self.source == self.target:
                raise Misuse(f"columns are numbered from 1 to {len(names)}, and must be two different ones", self.path)
            return
        columns = choose_columns(names, wanted, self.path)
        self.header = self.rows.pop(0)
        self.source = names.index(columns.source)
        self.target = names.index(columns.target) if columns.target in names else len(names)
        self.new_name = columns.target if self.target == len(names) else None
        if columns.guess is not None:
            self.notes.append(f"{self.path}: {columns.guess} (guessed from the header)")

    def _read(self) -> None:
        for row in self.rows:
            fields = row.fields
            source = fields[self.source].value if self.source < len(fields) else ""
            target = fields[self.target].value if self.target < len(fields) else ""
            state: State = "translated" if target.strip() else "empty"
            self.units.append(Unit(len(self.units), row.line, (source,), (target,), state))

    def problem(self, unit: Unit, text: str) -> str | None:
        if self.kind == "TSV" and ("\t" in text or "\n" in text):
            return "has a tab or a line end, which a field of a TSV file cannot hold"
        return None if self.raw.can_hold(text) else f"has characters that {self.raw.encoding} lacks"

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        if not fills:
            return self.data
        edits = Edits(self.raw.text)
        if self.header is not None and self.new_name is not None:
            self._write(edits, self.header, self.new_name)
        for number, row in enumerate(self.rows):
            if number in fills:
                self._write(edits, row, fills[number].texts[0])
            elif self.target >= len(row.fields) and self.new_name is not None:
                self._write(edits, row, "")
        return self.raw.bytes_of(edits.result())

    def _write(self, edits: Edits, row: Row, text: str) -> None:
        if self.target < len(row.fields):
            old = row.fields[self.target]
            was_quoted = self.raw.text[old.start : old.start + 1] == '"' and old.end - old.start >= 2
            edits.replace(old.start, old.end, self._quoted(text, was_quoted))
        else:
            missing = self.target - len(row.fields) + 1
            edits.insert(row.fields[-1].end, self.delimiter * missing + self._quoted(text, False))

    def _quoted(self, text: str, always: bool) -> str:
        special = f'{self.delimiter}"\r\n'
        if self.kind == "TSV" or not (always or any(character in text for character in special)):
            return text
        doubled = text.replace('"', '""')
        return f'"{doubled}"'


def read_rows(raw: RawFile, is_csv: bool) -> list[Row]:
    """The rows that are not empty."""
    rows = _rows(raw, _delimiter(raw.text, is_csv), is_csv)
    return [row for row in rows if any(field.value for field in row.fields)]


def _delimiter(text: str, is_csv: bool) -> str:
    """What stands between fields: a tab; in a CSV file the one of , ; and tab that its first lines agree about."""
    if not is_csv:
        return "\t"
    lines = [_QUOTED.sub("", line) for line in text[:CHARACTERS_OF_FIRST_LINES].split("\n") if line.strip()]

    def agreement(delimiter: str) -> tuple[int, int]:
        """How many lines have as many as the first one, if that has any; and how many it has."""
        counts = [line.count(delimiter) for line in lines]
        return sum(count == counts[0] > 0 for count in counts), sum(counts[:1])

    return max(",;\t", key=agreement)


def _rows(raw: RawFile, delimiter: str, quotes: bool) -> Iterator[Row]:
    """The rows with the places of their fields; a quoted field may hold delimiters and line ends."""
    text, at, line = raw.text, 0, 1
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    while at < len(text):
        begun, fields = line, list[Field]()
        while True:
            if quotes and text.startswith('"', at):
                match = _QUOTED.match(text, at)
                if match is None or text[match.end() : match.end() + 1] not in ("", delimiter, "\r", "\n"):
                    what = "has no end" if match is None else "goes on after its closing quotation mark"
                    raise Misuse(f"a quoted field {what}", raw.path, line)
                value = match[1].replace('""', '"')
                line += value.count("\n")
            else:
                match = plain.match(text, at)
                assert match is not None
                value = match[0]
            fields.append(Field(value, *match.span()))
            at = match.end()
            if not text.startswith(delimiter, at):
                break
            at += 1
        end = _ROW_END.match(text, at)
        assert end is not None
        at, line = end.end(), line + 1
        yield Row(begun, fields)
