"""XLIFF 1.2 and 2.x: targets are written between the bytes of the file, so that nothing else in it changes.

An inline element is a tag to the translator: <g id="1">…</g> for one around text, <x id="1"/> for one that stands for
something. In the target each is written as it stands in the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from pointing.documents.document import Fill, State, Unit
from pointing.documents.raw_file import MARKS, Edits, decoded, text_codec
from pointing.documents.xliff_reading import Content, Inline, Reading, Segment
from pointing.errors import Misuse

_DECLARED = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
_STAND_IN = re.compile(r'<(/?)([gx])(?: id="(\d+)"(/?))?>')
_NEW = {"new", "needs-translation", "initial"}  # states of what nobody has translated


class Xliff:
    kind = "XLIFF"

    def __init__(self, path: Path, data: bytes, language: str) -> None:
        self.path, self.data, self.notes = path, data, list[str]()
        declared = _DECLARED.match(data.removeprefix(next((mark for mark in MARKS if data.startswith(mark)), b"")))
        encoding = declared[1].decode("ascii") if declared else "utf-8"
        self.raw = decoded(path, data, text_codec(path, encoding), "which its first line names")
        self.reading = _read(self.raw.text, path)
        self.version = self.reading.version[:1]
        self.target_language = language
        self.language = next(iter(self.reading.languages), "") or None
        self.units = [self._unit(number, segment) for number, segment in enumerate(self.reading.segments)]

    def _unit(self, number: int, segment: Segment) -> Unit:
        source = _content(segment.source)
        target = "" if segment.target is None else segment.target.text
        state: State = "translated"
        if not segment.is_translatable:
            state = "locked"
        elif not target.strip() or (segment.state in _NEW and target == source.text):
            state, target = "empty", ""
        elif segment.state in _NEW or (segment.state or "").startswith("needs-"):
            state = "fuzzy"
        trouble = segment.trouble or source.trouble
        return Unit(number, segment.line, (source.text,), (target,), state, segment.name, trouble=trouble)

    def problem(self, unit: Unit, text: str) -> str | None:
        if any(not _is_xml(character) for character in text):
            return "has a character that XML cannot hold"
        inlines = _content(self.reading.segments[unit.number].source).inlines
        numbers = [int(match[3]) for match in _STAND_IN.finditer(text) if match[3]]
        in_order = [number for number in numbers if number <= len(inlines) and inlines[number - 1].keeps_place]
        return None if in_order == sorted(in_order) else "has inline elements in another order"

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        if not fills:
            return self.data
        edits = Edits(self.raw.text)
        for at, name in self.reading.without_language:
            edits.insert(at, f" {name}={quoteattr(self.target_language)}")
        for number, fill in fills.items():
            self._write(edits, self.reading.segments[number], fill, fuzzy)
        if self.version == "2":
            self._add_notes(edits, fills)
        return self.raw.bytes_of(edits.result(), "xmlcharrefreplace")

    def _write(self, edits: Edits, segment: Segment, fill: Fill, fuzzy: bool) -> None:
        source, prefix = _content(segment.source), segment.prefix
        content = _expanded(fill.texts[0], source.inlines)
        indent = self._indent(source.begin)
        if self.version == "1":
            state = "needs-review-translation" if fuzzy else "translated"
            qualifier = ' state-qualifier="mt-suggestion"' if fuzzy else ""
            element = f'<{prefix}target state="{state}"{qualifier}>{content}</{prefix}target>'
            if fill.comment is not None:
                element += f'{indent}<{prefix}note from="pointing">{escape(fill.comment)}</{prefix}note>'
        else:
            element = f"<{prefix}target>{content}</{prefix}target>"
            self._set_state(edits, segment, "initial" if fuzzy else "translated")
        if segment.target is not None:
            edits.replace(*segment.target.element, element)
        else:
            edits.insert(source.element[1], indent + element)

    def _set_state(self, edits: Edits, segment: Segment, state: str) -> None:
        """Of XLIFF 2 the segment has the state, not its target."""
        if segment.state_value is not None:
            edits.replace(*segment.state_value, state)
        else:
            edits.insert(segment.name_end, f' state="{state}"')

    def _add_notes(self, edits: Edits, fills: Mapping[int, Fill]) -> None:
        """XLIFF 2: into the notes of the units, which stand before their segments."""
        notes: dict[int, list[str]] = {}
        for number, fill in fills.items():
            unit, prefix = self.reading.segments[number].unit, self.reading.segments[number].prefix
            if fill.comment is not None and unit is not None and unit.notes_at is not None:
                note = f'<{prefix}note category="pointing">{escape(fill.comment)}</{prefix}note>'
                notes.setdefault(unit.notes_at, [prefix, "yes" * unit.has_notes]).append(note)
        for at, (prefix, has_notes, *texts) in notes.items():
            text = "".join(texts)
            edits.insert(at, text if has_notes else f"<{prefix}notes>{text}</{prefix}notes>{self._indent(at)}")

    def _indent(self, at: int) -> str:
        """The white space before a place."""
        before = self.raw.text[max(0, at - 200) : at]
        return before[len(before.rstrip()) :]


def _content(content: Content | None) -> Content:
    assert content is not None  # a segment without a source is not kept
    return content


def _read(text: str, path: Path) -> Reading:
    """The file as expat reads it; document types and entities of its own are refused."""
    reading = Reading(text, path)
    try:
        reading.parse()
    except expat.ExpatError as error:
        raise Misuse(f"this is no XML: {expat.ErrorString(error.code)}", path, error.lineno) from None
    if not reading.version.startswith(("1.", "2.")):
        known = f"version {reading.version}" if reading.version else "no <xliff> with a version"
        raise Misuse(f"XLIFF 1.2 and 2.x can be read; this is {known}", path)
    return reading


def _expanded(text: str, inlines: list[Inline]) -> str:
    """A translation as XML: its tags are the inline elements of the source again."""
    parts, done = [], 0
    is_open: list[Inline] = []
    for match in _STAND_IN.finditer(text):
        inline: Inline | None = None
        if match[1]:
            inline = is_open.pop() if is_open and match[2] == "g" else None
            raw = None if inline is None else inline.end
        else:
            number = int(match[3] or 0)
            inline = inlines[number - 1] if 0 < number <= len(inlines) else None
            raw = None if inline is None else inline.start
            if inline is not None and inline.end is not None:
                is_open.append(inline)
        if raw is not None:
            parts += [escape(text[done : match.start()]), raw]
            done = match.end()
    return "".join([*parts, escape(text[done:])])


def _is_xml(character: str) -> bool:
    code = ord(character)
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
