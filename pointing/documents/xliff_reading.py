"""XLIFF as expat meets it: segments with their places in the file's text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from pointing.errors import Misuse

AROUND = {"g", "mrk", "pc"}  # inline elements around text that is translated
INSTEAD = {"x", "bx", "ex", "ph", "bpt", "ept", "it", "cp", "sc", "ec", "sm", "em"}  # that stand for something
IN_ORDER = {"bx", "ex", "bpt", "ept", "it", "sc", "ec", "sm", "em"}  # beginnings and ends that are written apart
DEEPEST = 200  # elements inside of one another
_START_TAG = re.compile(r"""<[^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*>""")
_STATE = re.compile(r"""\sstate\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_LOOKS_LIKE_OURS = re.compile(r'<g id="|</g>|<x id="')


@dataclass
class Inline:
    """An inline element as it stands in the source: its two tags, or all of it in `start` if no text is in it."""

    start: str
    end: str | None = None
    keeps_place: bool = False  # among the others that do


@dataclass
class Content:
    """The text of a source or a target, its inline elements written as tags."""

    begin: int
    element: tuple[int, int] = (0, 0)  # its characters in the file, with its own tags
    parts: list[str] = field(default_factory=list)
    literal: list[str] = field(default_factory=list)  # the parts without the inline elements
    inlines: list[Inline] = field(default_factory=list)
    trouble: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass
class Segment:
    """A source with its target: a trans-unit of XLIFF 1.2, a segment of 2.x."""

    line: int
    name: str | None  # the id of its unit
    prefix: str  # of its elements' names, such as `xlf:`
    is_translatable: bool
    name_end: int  # the place after the segment's name, where an attribute can be added
    state: str | None = None
    state_value: tuple[int, int] | None = None  # the characters of its state, if it has that attribute
    source: Content | None = None
    target: Content | None = None
    trouble: str | None = None
    unit: XliffUnit | None = None  # of XLIFF 2


@dataclass
class XliffUnit:
    """A unit of XLIFF 2, which may have several segments."""

    name: str | None
    notes_at: int | None = None  # where a note can be added
    has_notes: bool = False  # that place is inside of its <notes>


class _Open(NamedTuple):
    """An element that is open."""

    name: str  # without prefix
    begin: int
    tag_end: int
    is_empty: bool  # <x/>
    is_translatable: bool


class Reading:
    """One pass over the file. `segments` are in its order."""

    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path
        self.version = ""
        self.languages: list[str] = []
        self.without_language: list[tuple[int, str]] = []  # where a target language is to be added, and its attribute
        self.segments: list[Segment] = []
        self._data = text.encode("utf-8", "surrogatepass")
        self._bytes = self._characters = 0  # the parser's place at the last look
        self._stack: list[_Open] = []
        self._unit: XliffUnit | None = None
        self._segment: Segment | None = None
        self._content: Content | None = None
        self._around: list[int] = []  # the numbers of the inline elements that are open around text
        self._code = 0  # how many elements are open that stand for something: what is in them is no text

    def parse(self) -> None:
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._comment
        parser.Parse(self._data, True)

    def _refuse(self, *_: object) -> None:
        what = "this file declares a document type or entities, which may be a trap: remove the <!DOCTYPE …>"
        raise Misuse(what, self.path, self._parser.CurrentLineNumber)

    def _here(self) -> int:
        """The character of the text at which the parser is."""
        at = self._parser.CurrentByteIndex
        self._characters += len(self._data[self._bytes : at].decode("utf-8", "surrogatepass"))
        self._bytes = at
        return self._characters

    def _start(self, full_name: str, attributes: dict[str, str]) -> None:
        prefix, _, name = full_name.rpartition(":")
        begin = self._here()
        tag = _START_TAG.match(self.text, begin)
        if tag is None or len(self._stack) >= DEEPEST:
            raise Misuse("elements are nested too deep to be a file of translations", self.path, self._line)
        parent = self._stack[-1] if self._stack else None
        inherited = parent is None or parent.is_translatable
        is_translatable = {"yes": True, "no": False}.get(attributes.get("translate", ""), inherited)
        opened = _Open(name, begin, tag.end(), tag[0].endswith("/>"), is_translatable)
        self._stack.append(opened)
        if self._content is not None:
            self._start_inline(opened, tag[0], attributes)
        else:
            self._start_structure(opened, prefix and f"{prefix}:", begin + 1 + len(full_name), attributes)

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _start_structure(self, opened: _Open, prefix: str, name_end: int, attributes: dict[str, str]) -> None:
        name, parent = opened.name, self._stack[-2].name if len(self._stack) > 1 else ""
        if name == "xliff":
            self.version = attributes.get("version", "")
        if name == ("file" if self.version.startswith("1.") else "xliff"):
            attribute = "target-language" if name == "file" else "trgLang"
            if attribute in attributes:
                self.languages.append(attributes[attribute])
            else:
                self.without_language.append((name_end, attribute))
        elif name == "unit":
            self._unit = XliffUnit(attributes.get("id"))
        elif parent == "unit" and self._unit is not None and self._unit.notes_at is None:
            if name == "notes" and not opened.is_empty:
                self._unit.notes_at, self._unit.has_notes = opened.tag_end, True
            elif name in ("originalData", "segment", "ignorable"):
                self._unit.notes_at = opened.begin
        if name in ("trans-unit", "segment"):
            unit_name = attributes.get("id") if self._unit is None else self._unit.name
            self._segment = Segment(self._line, unit_name, prefix, opened.is_translatable, name_end, unit=self._unit)
            if name == "segment":
                self._read_state(self._segment, opened)
        elif name in ("source", "target") and parent in ("trans-unit", "segment") and self._segment is not None:
            self._content = Content(opened.begin)
            if name == "target" and parent == "trans-unit":
                self._segment.state = attributes.get("state")
        elif name == "seg-source" and self._segment is not None:
            self._segment.trouble = "is cut into segments (seg-source), which are not read"

    def _read_state(self, segment: Segment, opened: _Open) -> None:
        match = _STATE.search(self.text, opened.begin, opened.tag_end)
        if match is not None:
            group = 1 if match[1] is not None else 2
            segment.state, segment.state_value = match[group], match.span(group)

    def _start_inline(self, opened: _Open, tag: str, attributes: dict[str, str]) -> None:
        content = self._content
        assert content is not None
        is_protected = not opened.is_translatable or attributes.get("mtype") == "protected"
        if self._code:
            self._code += 1
        elif opened.name in AROUND and not opened.is_empty and not is_protected:
            content.inlines.append(Inline(tag))
            content.parts.append(f'<g id="{len(content.inlines)}">')
            self._around.append(len(content.inlines))
        else:
            self._code = 1
            if opened.name not in AROUND | INSTEAD:
                content.trouble = f"has an element <{opened.name}>, which is not known inside of a text"

    def _end(self, _: str) -> None:
        here, opened = self._here(), self._stack.pop()
        end = opened.tag_end if opened.is_empty else self.text.index(">", here) + 1
        content = self._content
        if content is None:
            if opened.name in ("trans-unit", "segment") and self._segment is not None:
                if self._segment.source is not None:
                    self.segments.append(self._segment)
                self._segment = None
            elif opened.name == "unit":
                self._unit = None
        elif opened.begin == content.begin:
            self._end_content(content, opened, end)
        elif self._code:
            self._code -= 1
            if not self._code:
                whole = self.text[opened.begin : end]
                content.inlines.append(Inline(whole, keeps_place=opened.name in IN_ORDER))
                content.parts.append(f'<x id="{len(content.inlines)}"/>')
        else:
            content.inlines[self._around.pop() - 1].end = self.text[here:end]
            content.parts.append("</g>")

    def _end_content(self, content: Content, opened: _Open, end: int) -> None:
        content.element = content.begin, end
        if _LOOKS_LIKE_OURS.search("".join(content.literal)):
            content.trouble = "has text that looks like our names of inline elements"
        assert self._segment is not None
        if opened.name == "source":
            self._segment.source = content
        else:
            self._segment.target = content
        self._content = None

    def _text(self, text: str) -> None:
        if self._content is not None and not self._code:
            self._content.parts.append(text)
            self._content.literal.append(text)

    def _comment(self, *_: str) -> None:
        if self._content is not None and not self._code:
            self._content.trouble = "has a comment or an instruction inside of its text"
