"""Which columns of a table that is learned from hold the source and the translation: as told, or guessed.

A table to translate (`columns`) always has a header, and its target column may be missing. Here both columns are
filled, so that they can also be known by what is in them, and the first row may be data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pointing.documents.columns import NAMES, Wanted, column_key
from pointing.errors import Misuse
from pointing.text.languages import language_of_name

Rows = Sequence[Sequence[str]]

CERTAIN_NAMES = {"source", "target", "src", "tgt", "msgid", "msgstr"}  # one of them makes a row a header
USUAL_NAMES = {
    *("text", "translation", "original", "string", "key", "id", "name", "context", "comment", "label", "value"),
    *("input", "output", "article", "headline", "title", "summary", "document", "description", "reference"),
    *("product", "domain", "file", "module", "category", "notes"),
}
PAIRS_OF_NAMES = (
    *NAMES,
    *(("original", "translation"), ("input", "output"), ("source", "reference")),
    *(("article", "headline"), ("document", "summary"), ("text", "summary"), ("article", "summary")),
)
SAMPLE = 1000  # rows by which columns are judged
LEAST_SHARE = 0.3  # of the cells of a column that holds text have more than one word
LONGEST_SHOWN, MOST_SHOWN = 40, 20  # characters of a cell, and cells, in a message


class FilledColumns(NamedTuple):
    """Places of the columns, counted from 0."""

    source: int
    target: int
    key: int | None
    header: list[str] | None  # None: the first row is data
    width: int  # how many columns there are
    guess: str | None  # in words, for the user; None if both columns were told


def choose_filled_columns(
    rows: Rows, wanted: Wanted, key: str | None, path: Path, has_header: bool | None = None
) -> FilledColumns:
    """The columns of source and translation, and of the key if it is given; has_header=None: rows[0] may be a header.

    As told; else by the names of languages, by other usual names, or if just two columns hold text.
    """
    told = [name for name in (wanted.source, wanted.target, key) if name is not None]
    is_guessed = has_header is None
    if has_header is None:
        has_header = _is_header(rows[0], told)
    table = _Table(rows, has_header, path)
    key_place = None if key is None else table.place(key)
    source = None if wanted.source is None else table.place(wanted.source)
    target = None if wanted.target is None else table.place(wanted.target)
    guess: str | None = None
    if source is None or target is None:
        source, target, why = _guess(table, wanted, source, target, key_place)
        if is_guessed and not has_header:
            why += "; the first row is taken for data, since it names no columns"
        guess = f"source column {table.shown(source)}, target column {table.shown(target)} ({why})"
    if source == target:
        raise Misuse("the source column and the target column are the same: give two names", path)
    for place in (source, target, key_place):
        table.check_is_unique(place)
    return FilledColumns(source, target, key_place, table.header, table.width, guess)


def _is_header(first: Sequence[str], told: Sequence[str]) -> bool:
    """True if the first row has the names that the user told, or else usual names of columns."""
    if set(told) & set(first):
        return True
    if (told and all(name.isdecimal() for name in told)) or any(cell.strip().isdecimal() for cell in first):
        return False
    names = [column_key(cell) for cell in first]
    known = sum(name in USUAL_NAMES or language_of_name(name) is not None for name in names)
    return bool(CERTAIN_NAMES & set(names)) or known >= 2 or (known == 1 and len(names) > 2)


class _Table:
    """Rows, with or without a header."""

    def __init__(self, rows: Rows, has_header: bool, path: Path) -> None:
        self.path = path
        self.first = list(rows[0])
        self.header = self.first if has_header else None
        self.rows = rows[1:SAMPLE] if has_header else rows[:SAMPLE]
        widths = Counter(map(len, self.rows))
        self.width = len(self.first) if has_header else max(widths, key=lambda width: (widths[width], width))

    def place(self, name: str) -> int:
        """The place of a column that the user named, or numbered from 1."""
        if self.header is not None and name in self.header:
            return self.header.index(name)
        if name.isdecimal() and 1 <= int(name) <= self.width:
            return int(name) - 1
        raise Misuse(f"there is no column {name!r}; {self.columns()}", self.path)

    def check_is_unique(self, place: int | None) -> None:
        if self.header is not None and place is not None and (count := self.header.count(self.header[place])) > 1:
            raise Misuse(f"there are {count} columns {self.header[place]!r}: give each its own name", self.path)

    def shown(self, place: int) -> str:
        return f"number {place + 1}" if self.header is None else repr(self.header[place])

    def columns(self) -> str:
        """What columns there are, in words."""
        cut = (cell if len(cell) <= LONGEST_SHOWN else f"{cell[:LONGEST_SHOWN]}…" for cell in self.first[:MOST_SHOWN])
        cells = ", ".join(map(repr, cut)) + ", …" * (len(self.first) > MOST_SHOWN)
        return f"the first row has {cells}" if self.header is None else f"there are: {cells}"

    def empty_cells(self, place: int) -> int:
        return sum(place >= len(row) or not row[place].strip() for row in self.rows)

    def holds_text(self, place: int) -> bool:
        cells = [row[place] for row in self.rows if place < len(row) and row[place].strip()]
        return sum(" " in cell.strip() for cell in cells) >= LEAST_SHARE * max(1, len(cells))


def _guess(
    table: _Table, wanted: Wanted, source: int | None, target: int | None, key: int | None
) -> tuple[int, int, str]:
    """Places of source and target, at most one of which was told, and why these."""
    free = [place for place in range(table.width) if place not in (source, target, key)]
    if table.width == 1:
        raise Misuse(f"there is only one column, but source and translation need two; {table.columns()}", table.path)
    if source is None and target is None:
        if table.header is not None and (named := _by_names(table, table.header, free, wanted.languages)):
            return named
        texts = [place for place in free if table.holds_text(place)]
        both = texts if len(texts) == 2 else free
        if len(both) == 2:
            return both[0], both[1], "the two columns that hold text"
    else:
        texts = [place for place in free if table.holds_text(place)]
        others = free if len(free) == 1 else texts
        if len(others) == 1:
            other = others[0]
            return other if source is None else source, other if target is None else target, "the other column"
    told = "source_column and target_column in the settings, or `pointing init --source-column … --target-column …`"
    raise Misuse(f"which columns hold source and translation is not clear: give {told}; {table.columns()}", table.path)


def _by_names(
    table: _Table, header: Sequence[str], free: Sequence[int], languages: tuple[str, str]
) -> tuple[int, int, str] | None:
    """The columns with the names of two languages, or with two usual names.

    Of two languages the one with more empty cells is translated into; else the other one than English, from which most
    strings are translated; else the one on the right.
    """
    codes = {place: language_of_name(header[place]) for place in free}
    named = [place for place in free if codes[place] is not None]
    by_code = {codes[place]: place for place in reversed(named)}
    source, target = (language_of_name(language) for language in languages)
    if source != target and source in by_code and target in by_code:
        return by_code[source], by_code[target], f"by data.languages, {source} and {target}"
    if len(named) == 2:
        first, second = sorted(named, key=lambda place: (table.empty_cells(place), codes[place] != "en"))
        return first, second, "by the names of languages"
    by_key = {column_key(header[place]): place for place in reversed(free)}
    for names in PAIRS_OF_NAMES:
        if names[0] in by_key and names[1] in by_key:
            return by_key[names[0]], by_key[names[1]], "by their names"
    return None
