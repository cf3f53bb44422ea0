"""Which column of a table to translate holds the source, and which the translation; guessed if there is no doubt."""

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
        needed = {"--source-column": wanted.source, "--target-column": wanted.target}
        told = " and ".join(option for option, name in needed.items() if name is None)
        raise Misuse(f"which columns hold source and translation is not clear: give {told}; there are: {there}", path)
    source, target = found[0]
    new = "" if target in names else ", which is new"
    return Columns(source, target, f"source column {source!r}, target column {target!r}{new}")


def _pairs(names: Sequence[str], wanted: Wanted) -> list[tuple[str, str]]:
    """Pairs of columns that may be meant, the most likely first."""
    by_key = {column_key(name): name for name in reversed(names)}
    pairs = []
    for source, target in [*NAMES, tuple(map(column_key, wanted.languages))]:
        if source in by_key and target in by_key:
            pairs.append((by_key[source], by_key[target]))
    pairs += _by_language(names, wanted.languages)
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


def _by_language(names: Sequence[str], languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The columns that are named after the languages, such as `Text (EN)` and `Text (DE)`; the second may be new."""
    source, target = (
        [name for name in names if language_of_name(name) == language_of_name(language)] for language in languages
    )
    if len(source) != 1 or len(target) > 1 or (not target and len(names) == 2):
        return []
    outer = source[0].rpartition(".")[0]  # of a member of an object inside another one
    return [(source[0], target[0] if target else f"{outer}.{languages[1]}" if outer else languages[1])]


def _sources(wanted: Wanted) -> list[str]:
    return [*(source for source, _ in NAMES), column_key(wanted.languages[0])]


def column_key(name: str) -> str:
    """A column's name as it is compared with usual names."""
    return name.strip().lower().replace("-", "_")
