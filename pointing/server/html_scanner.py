"""HTML in pieces: texts, tags, and what is not shown (comments, scripts, styles), as browsers cut it.

By the tokenization of the HTML standard (13.2.5). Pieces joined are the page, to the byte. What never ends (a tag, a
comment, a script) goes on to the page's end and is no text, so every character is read a few times at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

RAW = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes"))  # have no tags inside but their own end
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))

_MARKUP = re.compile(r"<(?=[A-Za-z!?]|/.)", re.DOTALL)  # any other "<" is text
_COMMENT_END = re.compile(r"--!?>")
_TAG_NAME = re.compile(r"</?([^\t\n\f\r />]+)")
_NOTHING = re.compile(r"[\t\n\f\r /]*")  # between attributes
_ATTRIBUTE_NAME = re.compile(r"[^\t\n\f\r />][^\t\n\f\r />=]*")
_EQUALS = re.compile(r"[\t\n\f\r ]*=[\t\n\f\r ]*")
_UNQUOTED = re.compile(r"[^\t\n\f\r >]*")


@dataclass(frozen=True)
class Piece:
    """A part of a page."""

    html: str
    kind: Literal["text", "start", "end", "hidden"]
    name: str = ""  # of a tag's element, in small letters
    attributes: Mapping[str, str] = field(default_factory=dict)  # of a start tag, names in small letters
    is_closed: bool = False  # True for a start tag after which no content follows: <br>, <x/>


def scan(html: str) -> Iterator[Piece]:
    """The pieces of a page, in its order. No text follows another."""
    at = 0
    while at < len(html):
        found = _MARKUP.search(html, at)
        start = len(html) if found is None else found.start()
        if start > at:
            yield Piece(html[at:start], "text")
        if start < len(html):
            piece = _markup(html, start)
            yield piece
            start += len(piece.html)
        at = start


def _markup(html: str, start: int) -> Piece:
    """The tag or what is hidden that begins here."""
    if html.startswith("<!--", start):
        return Piece(html[start : _comment_end(html, start)], "hidden")
    name = _TAG_NAME.match(html, start)
    if name is None or not (name[1][0].isascii() and name[1][0].isalpha()):  # a browser takes <!x>, <?x> for comments
        return Piece(html[start : _after(html, ">", start)], "hidden")
    end, attributes, is_closed = _attributes(html, name.end())
    if end is None:
        return Piece(html[start:], "hidden")
    element = name[1].lower()
    if html[start + 1] == "/":
        return Piece(html[start:end], "end", element)
    if element in RAW:
        return Piece(html[start : _raw_end(html, element, end)], "hidden")
    return Piece(html[start:end], "start", element, attributes, is_closed or element in VOID)


def _attributes(html: str, at: int) -> tuple[int | None, dict[str, str], bool]:
    """Of a tag, from its name on: where it ends (None: never), its attributes, and if it has a slash at its end."""
    attributes: dict[str, str] = {}
    while True:
        between = at
        at = _end_of(_NOTHING, html, at)
        if at == len(html):
            return None, attributes, False
        if html[at] == ">":
            return at + 1, attributes, html[at - 1] == "/" and at > between
        end = _end_of(_ATTRIBUTE_NAME, html, at)
        name, value = html[at:end].lower(), ""
        at = end
        if equals := _EQUALS.match(html, at):
            at = equals.end()
            quote = html[at : at + 1]
            if quote in ("'", '"'):
                end = html.find(quote, at + 1)
                if end < 0:
                    return None, attributes, False
                value, at = html[at + 1 : end], end + 1
            else:
                end = _end_of(_UNQUOTED, html, at)
                value, at = html[at:end], end
        attributes.setdefault(name, value)  # of two with the same name the first counts


def _comment_end(html: str, start: int) -> int:
    for empty in ("<!-->", "<!--->"):
        if html.startswith(empty, start):
            return start + len(empty)
    found = _COMMENT_END.search(html, start + len("<!--"))
    return len(html) if found is None else found.end()


def _raw_end(html: str, element: str, start: int) -> int:
    """Where an element ends whose content has no tags."""
    found = _end_tag(element).search(html, start)
    end = None if found is None else _attributes(html, found.end())[0]
    return len(html) if end is None else end


@cache
def _end_tag(element: str) -> re.Pattern[str]:
    return re.compile(rf"</{element}(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)


def _after(html: str, sign: str, start: int) -> int:
    end = html.find(sign, start)
    return len(html) if end < 0 else end + 1


def _end_of(pattern: re.Pattern[str], html: str, at: int) -> int:
    found = pattern.match(html, at)
    return at if found is None else found.end()
