"""JSON lines: one object a line. Only the target's value changes, or its key is added at the object's end.

A member of an object inside has a dotted name: `text.en` in {"text": {"en": …}}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pointing.documents.columns import Wanted, choose_columns
from pointing.documents.document import Fill, Unit
from pointing.documents.raw_file import Edits, decoded
from pointing.errors import Misuse

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r]*")


class JsonLines:
    kind, language = "JSONL", None

    def __init__(self, path: Path, data: bytes, wanted: Wanted) -> None:
        self.path, self.data, self.notes = path, data, list[str]()
        self.raw = decoded(path, data, "utf-8", "as JSON is read")
        self.units: list[Unit] = []
        self.objects: list[_Object] = []
        at = 0
        for number, line in enumerate(self.raw.text.split("\n"), 1):
            if line.strip():
                self.objects.append(_Object.read(line, at, path, number))
            at += len(line) + 1
        if self.objects:
            first = [item for each in self.objects[:100] for item in each.members.items()]
            names = list(dict.fromkeys(name for name, member in first if isinstance(member.value, str | None)))
            self.source, self.target, guess = choose_columns(names, wanted, path)
            self.notes += [] if guess is None else [f"{path}: {guess} (guessed from the keys)"]
            self.units = [self._unit(number, each) for number, each in enumerate(self.objects)]

    def _unit(self, number: int, each: _Object) -> Unit:
        source, target = (each.text(name) for name in (self.source, self.target))
        if source is None or target is None:
            odd = self.source if source is None else self.target
            return Unit(number, each.line, (source or "",), (target or "",), "locked", trouble=f"{odd!r} is no text")
        if self.target not in each.members and each.end_for(self.target) is None:
            trouble = f"there is no object to write {self.target!r} into"
            return Unit(number, each.line, (source,), (target,), "locked", trouble=trouble)
        return Unit(number, each.line, (source,), (target,), "translated" if target.strip() else "empty")

    def problem(self, unit: Unit, text: str) -> str | None:
        return None

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        edits = Edits(self.raw.text)
        for number, fill in fills.items():
            each = self.objects[number]
            value = json.dumps(fill.texts[0], ensure_ascii=each.is_ascii)
            if self.target in each.members:
                member = each.members[self.target]
                edits.replace(member.start, member.end, value)
            else:
                end = each.end_for(self.target)
                assert end is not None  # else it is locked
                name = json.dumps(self.target.rpartition(".")[2], ensure_ascii=each.is_ascii)
                edits.insert(end.place, ", " * end.has_members + f"{name}: {value}")
        return self.raw.bytes_of(edits.result())


def read_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """The object of a line; a line that is something else is refused."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"this line is no JSON: {error}", path, number) from None
    if not isinstance(value, dict):
        raise Misuse("this line is JSON, but no object: {…}", path, number)
    return value


def text_of(value: Any) -> str | None:
    """A member's text, "" if it is missing or null; None if it is no text."""
    return "" if value is None else value if isinstance(value, str) else None


class _Member(NamedTuple):
    value: Any
    start: int
    end: int


class _End(NamedTuple):
    """Where a new member of an object would be written: after the last one."""

    place: int
    has_members: bool


class _Object(NamedTuple):
    """A JSON object, and where in the file the values of its members stand."""

    line: int
    members: dict[str, _Member]  # also those of objects inside, by their dotted names
    ends: dict[str, _End]  # of the object itself, "", and of those inside, by their names
    is_ascii: bool  # it writes other characters as \\u…

    def text(self, name: str) -> str | None:
        """A member's text, "" if it is missing or null; None if it is no text."""
        return text_of(self.members[name].value if name in self.members else None)

    def end_for(self, name: str) -> _End | None:
        """Where a member of this name is added; None if there is no such object inside."""
        return self.ends.get(name.rpartition(".")[0])

    @classmethod
    def read(cls, line: str, offset: int, path: Path, number: int) -> _Object:
        read_object(line, path, number)  # what follows takes a whole object for granted
        found = cls(number, {}, {}, "\\u" in line and line.isascii())
        found._add_members(line, line.index("{"), offset)
        return found

    def _add_members(self, line: str, at: int, offset: int, outer: str = "") -> None:
        """Adds the members of the object whose brace stands at `at`; `outer` is its name, if it stands inside."""
        at += 1
        end, has_members = at, False
        while line[at := _skip(line, at)] != "}":
            if line[at] == ",":
                at = _skip(line, at + 1)
            name, at = _DECODER.raw_decode(line, at)
            at = _skip(line, _skip(line, at) + 1)
            value, end = _DECODER.raw_decode(line, at)
            self.members[f"{outer}.{name}" if outer else name] = _Member(value, offset + at, offset + end)
            if isinstance(value, dict) and not outer:
                self._add_members(line, at, offset, name)
            at, has_members = end, True
        self.ends[outer] = _End(offset + end, has_members)


def _skip(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    assert match is not None
    return match.end()
