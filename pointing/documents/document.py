"""What every kind of file looks like to the translator: units to fill, and a way to write itself with them filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

State = Literal["empty", "fuzzy", "translated", "locked"]
"""Of a unit's translation. fuzzy: a person has to look at it. locked: it may not be changed, whatever is asked for."""


@dataclass(frozen=True)
class Unit:
    """One entry of a document: a text to be translated, or the forms of a plural."""

    number: int  # its place among the document's units, counted from 0
    line: int  # in the file, from 1
    sources: tuple[str, ...]  # of each form that is to be written, the text that it translates; one if not a plural
    targets: tuple[str, ...]  # what stands there now; empty strings if it is untranslated
    state: State
    context: str | None = None
    flags: tuple[str, ...] = ()  # such as c-format
    trouble: str | None = None  # why nothing can be written here

    @property
    def format(self) -> str | None:
        """The kind of its placeholders, such as `c`, if the file says that it has some."""
        return next((flag.removesuffix("-format") for flag in self.flags if _is_format(flag)), None)


def _is_format(flag: str) -> bool:
    return flag.endswith("-format") and not flag.startswith(("no-", "possible-", "impossible-"))


@dataclass(frozen=True)
class Fill:
    """A translation of a unit: a text for each of its forms, and a comment for translators if there is one to write."""

    texts: tuple[str, ...]
    comment: str | None = None


class Document(Protocol):
    """A file that was read and understood; reading it again would give the same."""

    @property
    def path(self) -> Path: ...
    @property
    def data(self) -> bytes:
        """Its content, as it was read."""

    @property
    def kind(self) -> str: ...
    @property
    def units(self) -> Sequence[Unit]: ...
    @property
    def language(self) -> str | None:
        """Of its translations, if the file says it."""

    @property
    def notes(self) -> list[str]:
        """What the user should know: what was guessed, what is odd."""

    def problem(self, unit: Unit, text: str) -> str | None:
        """Why this file cannot hold a translation, such as a character that its encoding lacks."""

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        """The whole file with these units filled; `fuzzy`: they are marked for review."""
