"""The keywords of `Generator.generate` and `stream`, and their lines: what is wrong is said before any work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

from pointing.config import Search, checked
from pointing.errors import Misuse


class SearchOptions(TypedDict, total=False):
    """The settings of `Search` as keywords, for editors and type checkers."""

    beam: int
    nbest: int
    ranking: Literal["joint", "marginal"]
    normalize: Literal["none", "dl4mt", "gnmt"]
    alpha: float
    coverage: float
    min_length: int
    max_length: int
    max_ratio: float | None
    block_ngrams: int | None
    allow_unk: bool
    unk_replace: bool
    large_vocabulary: int | None


class _Keywords(Search):
    """All keywords: a misspelled one is compared with each of them."""

    locations: Any = None
    choices: Any = None
    tags: Any = None
    glossary: Any = None
    keep: Any = None
    dictionary: Any = None
    window: Any = None
    min_confidence: Any = None


def search_settings(settings: Search | None, changes: Mapping[str, Any]) -> Search:
    """The settings with the changes that were given as keywords."""
    if settings is not None and not isinstance(settings, Search):
        what = f"the second argument is a Search, not {_described(settings)}"
        raise Misuse(f"{what}: give its settings by name, such as beam=5")
    if not changes:
        return settings or Search()
    values = {**({} if settings is None else settings.model_dump(exclude_unset=True)), **changes}
    checked(_Keywords, values)
    return checked(Search, values)


def each_line(lines: Iterable[str | bytes] | str | bytes) -> Iterator[str | bytes]:
    """The lines one by one, without line ends. A string is one line."""
    if isinstance(lines, str | bytes | bytearray):
        return _each([lines])
    if isinstance(lines, Path):
        raise Misuse(f"lines are strings, not a path: give open({str(lines)!r}, encoding='utf-8')")
    if isinstance(lines, Mapping) or not isinstance(lines, Iterable):
        raise Misuse(f"give a line, or a list of lines, not {_described(lines)}")
    return _each(lines)


def _each(lines: Iterable[Any]) -> Iterator[str | bytes]:
    for number, line in enumerate(lines, 1):
        if isinstance(line, str):
            yield line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
        elif isinstance(line, bytes | bytearray):
            yield bytes(line)
        else:
            raise Misuse(f"line {number:,} is {_described(line)}, not a string")


def _described(value: object) -> str:
    """None as it is; of other values their type and the beginning of how Python writes them."""
    if value is None:
        return "None"
    written = repr(value)
    return f"{written if len(written) <= 40 else written[:40] + '…'} (of type {type(value).__name__})"
