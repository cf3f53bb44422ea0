"""Which column of a table holds the source and which the translation: as told, or guessed if there is no doubt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pointing.errors import Misuse
from pointing.text.languages import language_of_name

NAMES = (("source", "target"), ("src", "tgt"), ("msgid", "msgstr"), ("source", "translation"), ("text", "translation"))


class Columns(NamedTuple):
    source: str
    target: str  # may be missing in the table: then it is added
    guess: str | None  # in words, for the user; None if both were told


class Wanted(NamedTuple):
    """What the user said, and the languages of the run, for guessing."""

    source: str | None = None
    target: str | None = None
    languages: tuple[str, str] = ("en", "fr")


def choose_columns(names: Sequence[str], wanted: Wanted, path: Path) -> Columns:
    """The columns' names; refused if there is more than one way to guess."""
    columns = _choose(names, wanted, path)
    for name in (columns.source, columns.target):
        if names.count(name) > 1:
            raise Misuse(f"there are {names.count(name)} columns {name!r}: give each its own name", path)
    return columns


def _choose(names: Sequence[str], wanted: Wanted, path: Path) -> Columns:
    there = ", ".join(map(repr, names))
    if wanted.source is not None and wanted.source not in names:
        raise Misuse(f"there is no column {wanted.source!r}; there are: {there}", path)
    if wanted.source is not None and wanted.target is not None:
        if wanted.source == wanted.target:
            raise Misuse("the source column and the target column are the same: give two names", path)
        return Columns(wanted.source, wanted.target, None)
    found = [pair for pair in _pairs(names, wanted) if wanted.source in (None, pair[0])]
    found = [pair for pair in found if wanted.target in (None, pair[1])]
    if not found:
        told = "--source-column" if wanted.source is None else "--target-column"
        raise Misuse(f"which columns hold source and translation is not clear: give {told}; there are: {there}", path)
    source, target = found[0]
    new = "" if target in names else ", which is new"
    return Columns(source, target, f"source column {source!r}, target column {target!r}{new}")


def _pairs(names: Sequence[str], wanted: Wanted) -> list[tuple[str, str]]:
    """Pairs of columns that may be meant, the most likely first."""
    by_key = {_key(name): name for name in reversed(names)}
    pairs = []
    for source, target in [*NAMES, tuple(map(_key, wanted.languages))]:
        if source in by_key and target in by_key:
            pairs.append((by_key[source], by_key[target]))
    if pairs:
        return pairs
    if wanted.source is not None or wanted.target is not None:
        others = [name for name in names if name not in (wanted.source, wanted.target)]
        if len(others) == 1:
            pair = (wanted.source or others[0], wanted.target or others[0])
            return [pair]
        if wanted.target is not None or not others:
            known = wanted.source or next((by_key[name] for name in _sources(wanted) if name in by_key), None)
            return [] if known is None else [(known, wanted.target or wanted.languages[1])]
        return []
    if len(names) == 2:
        return [(names[0], names[1])]
    if len(names) == 1:
        return [(names[0], wanted.languages[1])]
    return []


def _sources(wanted: Wanted) -> list[str]:
    return [*(source for source, _ in NAMES), _key(wanted.languages[0])]


def _key(name: str) -> str:
    return name.strip().lower().replace("-", "_")


class FilledColumns(NamedTuple):
    """Places of the columns of a table with translations, counted from 0."""

    source: int
    target: int
    key: int | None
    header: list[str] | None  # None: the first row is data
    guess: str | None  # in words, for the user; None if both columns were told


HEADER_WORDS = {
    *("source", "target", "src", "tgt", "msgid", "msgstr", "text", "translation", "original", "string", "key", "id"),
    *("name", "context", "comment", "label", "value", "input", "output", "article", "headline", "title", "summary"),
    *("document", "description", "reference", "product", "domain", "file", "module", "category", "notes"),
}
SUMMARIES = (("article", "headline"), ("document", "summary"), ("text", "summary"), ("article", "summary"))
TURNED = (("original", "translation"), ("input", "output"), ("source", "reference"))
SAMPLE = 1000  # rows by which columns are judged
LEAST_SHARE = 0.3  # of a column's texts have more than one word


def choose_filled_columns(
    rows: Sequence[Sequence[str]], wanted: Wanted, key: str | None, path: Path, has_header: bool | None = None
) -> FilledColumns:
    """The columns of source and translation in a table that has both; rows[0] may be a header.

    As told; else by the names of languages, by other usual names, or if just two columns hold text.
    """
    first = list(rows[0])
    told = [name for name in (wanted.source, wanted.target, key) if name is not None]
    if has_header is None:
        names = {_key(name) for name in first}
        is_numbers = bool(told) and all(name.isdecimal() for name in told) and not set(told) & set(first)
        known = bool(names & HEADER_WORDS) or sum(language_of_name(name) is not None for name in first) >= 2
        has_header = not is_numbers and (known or bool(set(told) & set(first)))
    header = first if has_header else None
    key_place = None if key is None else _place(key, header, len(first), path)
    if wanted.source is not None and wanted.target is not None:
        source, target = (_place(name, header, len(first), path) for name in (wanted.source, wanted.target))
        if source == target:
            raise Misuse("the source column and the target column are the same: give two names", path)
        return FilledColumns(source, target, key_place, header, None)
    source, target, why = _guess_filled(rows, header, wanted, key_place, path)
    shown = [repr(first[place]) if header else f"number {place + 1}" for place in (source, target)]
    head = "" if header or has_header is None else "; the first row is taken for data, since it names no columns"
    guess = f"source column {shown[0]}, target column {shown[1]} ({why}{head})"
    return FilledColumns(source, target, key_place, header, guess)


def _place(name: str, header: Sequence[str] | None, columns: int, path: Path) -> int:
    if header is not None and name in header:
        if header.count(name) > 1:
            raise Misuse(f"there are {header.count(name)} columns {name!r}: give each its own name", path)
        return header.index(name)
    if name.isdecimal() and 1 <= int(name) <= columns:
        return int(name) - 1
    there = f"there are {columns} columns" if header is None else f"there are: {', '.join(map(repr, header))}"
    raise Misuse(f"there is no column {name!r}; {there}", path)


def _guess_filled(
    rows: Sequence[Sequence[str]], header: Sequence[str] | None, wanted: Wanted, key: int | None, path: Path
) -> tuple[int, int, str]:
    columns = len(rows[0])
    free = [place for place in range(columns) if place != key]
    one_told = [
        None if name is None else _place(name, header, columns, path) for name in (wanted.source, wanted.target)
    ]
    if header is not None and one_told == [None, None]:
        languages = {place: language_of_name(header[place]) for place in free}
        named = [place for place in free if languages[place] is not None]
        by_code = {languages[place]: place for place in reversed(named)}
        if len(named) > 2 and all(code in by_code for code in wanted.languages):
            return by_code[wanted.languages[0]], by_code[wanted.languages[1]], "by the languages"
        if len(named) == 2:
            return named[0], named[1], "by the names of languages"
        by_key = {_key(header[place]): place for place in reversed(free)}
        for names in (*NAMES, *TURNED, *SUMMARIES):
            if names[0] in by_key and names[1] in by_key:
                return by_key[names[0]], by_key[names[1]], "by their names"
    texts = [place for place in free if place not in one_told and _holds_text(rows, place, header is not None)]
    if one_told != [None, None] and len(texts) == 1:
        source, target = (texts[0] if place is None else place for place in one_told)
        return source, target, "the other column that holds text"
    if one_told == [None, None] and len(texts) != 2 and len(free) == 2:
        texts = free
    if one_told == [None, None] and len(texts) == 2:
        return texts[0], texts[1], "the two columns that hold text"
    there = f"{columns} columns" if header is None else ", ".join(map(repr, header))
    told = "source_column and target_column (--source-column, --target-column)"
    raise Misuse(f"which columns hold source and translation is not clear: give {told}; there are: {there}", path)


def _holds_text(rows: Sequence[Sequence[str]], place: int, has_header: bool) -> bool:
    cells = [row[place] for row in rows[has_header:SAMPLE] if place < len(row) and row[place].strip()]
    return sum(" " in cell.strip() for cell in cells) >= LEAST_SHARE * max(1, len(cells))
