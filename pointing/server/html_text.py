"""HTML as texts to translate: what stands between tags, and back.

The text of a paragraph goes to the model as one text. Tags inside it (`<b>`, `<a href=…>`) stay there if the model
keeps them as protected spans; else a text ends at the tag. Scripts, styles, comments and elements with
`translate="no"` stay as they are, and so does every tag, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape, unescape
from typing import TypeAlias

from pointing.generation.output import Output, parts
from pointing.generation.reader import Line
from pointing.server.html_scanner import Piece, scan

INLINE = frozenset(  # elements that stand inside a paragraph
    re.findall(
        r"\w+",
        "a abbr b bdi bdo big br cite code data del dfn em font i img ins kbd mark q s samp small span strike strong "
        "sub sup time tt u var wbr",
    )
)


@dataclass(frozen=True)
class Segment:
    """A text to translate."""

    text: str = ""  # without character references
    tags: Sequence[tuple[int, int]] = field(default_factory=list)  # characters of `text` that are tags

    @classmethod
    def of_pieces(cls, pieces: Sequence[Piece]) -> Segment:
        """Texts and the tags between them as one text."""
        texts, tags, at = [], [], 0
        for piece in pieces:
            texts.append(unescape(piece.html) if piece.kind == "text" else piece.html)
            if piece.kind != "text":
                tags.append((at, at + len(piece.html)))
            at += len(texts[-1])
        return cls("".join(texts), tags)

    @property
    def core(self) -> str:
        """The text without white space around it, which stays as it is."""
        return self.text.strip()

    @property
    def core_start(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @cached_property
    def has_words(self) -> bool:
        return any(char.isalnum() for start, end in self._between_tags() for char in self.text[start:end])

    def translated(self, output: Output) -> str:
        """The output as HTML. Its tags are those that it copied; all else in it is text."""
        first, own_tags = self.core_start, set(self.tags)
        at, tags = 0, []
        for text, token in parts(output):
            if token is not None and token.span is not None:
                span = token.span[0] + first, token.span[1] + first
                if span in own_tags and text == self.text[slice(*span)]:
                    tags.append((at, at + len(text)))
            at += len(text)
        return self.text[:first] + _escaped(output.text, tags) + self.text[first + len(self.core) :]

    def as_it_was(self) -> str:
        return _escaped(self.text, self.tags)

    def split(self, tags: Sequence[tuple[int, int]]) -> list[str | Segment]:
        """The text as several that end at these tags."""
        page: list[str | Segment] = []
        inside: list[tuple[int, int]] = []  # tags of the present text
        at, ends = 0, set(tags)
        for start, end in self.tags:
            if (start, end) in ends:
                page += [Segment(self.text[at:start], inside), self.text[start:end]]
                at, inside = end, []
            else:
                inside.append((start - at, end - at))
        return [*page, Segment(self.text[at:], inside)]

    def _between_tags(self) -> list[tuple[int, int]]:
        starts = [0, *(end for _, end in self.tags)]
        ends = [*(start for start, _ in self.tags), len(self.text)]
        return list(zip(starts, ends, strict=True))


Page: TypeAlias = list[str | Segment]  # markup as it is, and texts
Reader: TypeAlias = Callable[[Sequence[str]], Sequence[Line]]  # a model's way from texts to what it reads


def read_html(html: str, keeps_tags: bool) -> Page:
    """A page in its order. With `keeps_tags`, tags inside a paragraph are part of its text."""
    page: Page = []
    text: list[Piece] = []  # the pieces of the present text
    kept, depth = "", 0  # the element whose content stays as it is, and how many of this name are open

    def end_text() -> None:
        if text:
            page.append(Segment.of_pieces(text))
            text.clear()

    for piece in scan(html):
        begins_kept = piece.kind == "start" and piece.attributes.get("translate", "").lower() == "no"
        is_inline_tag = piece.name in INLINE and keeps_tags and not begins_kept
        if not depth and (piece.kind == "text" or is_inline_tag):
            text.append(piece)
            continue
        end_text()
        page.append(piece.html)
        if piece.kind == "start" and not piece.is_closed and (piece.name == kept if depth else begins_kept):
            kept, depth = piece.name, depth + 1
        elif piece.kind == "end" and depth and piece.name == kept:
            depth -= 1
    end_text()
    return page


def split_at_lost_tags(page: Page, read: Reader) -> Page:
    """The page with texts that have only tags that the model reads as protected spans, each of which it copies once.

    `read` is the model's reader. It may take a tag for something else (`<a download>`), or not read so far. A text ends
    at such a tag. What a tag is taken for can depend on the others, so the new texts are read again, and those that
    still have such a tag end at every tag.
    """
    split = _split_once(page, read, at_every_tag=False)
    return page if len(split) == len(page) else _split_once(split, read, at_every_tag=True)


def _split_once(page: Page, read: Reader, at_every_tag: bool) -> Page:
    tagged = [part for part in page if isinstance(part, Segment) and part.tags and part.has_words]
    lines = read([segment.core for segment in tagged]) if tagged else []
    lost = {id(segment): _lost_tags(segment, line) for segment, line in zip(tagged, lines, strict=True)}
    new: Page = []
    for part in page:
        if isinstance(part, str) or not lost.get(id(part)):
            new.append(part)
        else:
            new += part.split(part.tags if at_every_tag else lost[id(part)])
    return new


def _lost_tags(segment: Segment, line: Line) -> list[tuple[int, int]]:
    """The tags of a text that are no protected span of the line as the model reads it."""
    first = segment.core_start
    places = zip((line.starts + first).tolist(), (line.ends + first).tolist(), strict=True)
    spans = {place for position, place in enumerate(places) if line.is_span(position)}
    return [tag for tag in segment.tags if tag not in spans]


def write_html(page: Sequence[str | Segment], output_of: Callable[[Segment], Output | None]) -> str:
    """The page with its texts translated; a text without an output stays as it was."""
    written = []
    for part in page:
        if isinstance(part, str):
            written.append(part)
        else:
            output = output_of(part)
            written.append(part.as_it_was() if output is None else part.translated(output))
    return "".join(written)


def _escaped(text: str, tags: Sequence[tuple[int, int]]) -> str:
    """A text as HTML, its tags as they are."""
    html, at = [], 0
    for start, end in tags:
        html += [escape(text[at:start], quote=False), text[start:end]]
        at = end
    return "".join([*html, escape(text[at:], quote=False)])
