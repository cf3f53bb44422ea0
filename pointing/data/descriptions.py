"""Reads package descriptions, splits them into pieces, and pairs the pieces of a description and its translation.

Package: pear                                A title, then paragraphs; ` .` is an empty line.
Description-md5: 0a1b...                     Lines that begin with two spaces are not wrapped:
Description-en: tool for pears               lists are written so.
 It peels pears, and
 slices them.                                The md5 is that of the English text: a translation
 .                                           with the same md5 is of exactly this text.
 It has:
  * one blade;
  * no mercy.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pointing.system.files import read_text

BULLET = re.compile(r"(?:[-–—−]{1,2}|[*+•·・‣▪►]|o|\d{1,2}[.)]|[a-z]\))\s+")
CONJUNCTION = re.compile(r"(and|or|to|et|ou|und|oder|bzw|y|o|e|och|eller|en|of)\b")
NAME = re.compile(r"[A-Za-z0-9][\w.+/-]{2,}[A-Za-z0-9]", re.ASCII)
NO_BREAK_SPACE = "\u22c5"  # ⋅: Debian's translation pages show no-break spaces so, and thousands were saved so
INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b\ufeff]")  # stray control characters, soft hyphens


@dataclass
class Piece:
    """A part of a description: a paragraph, an item of a list, or a block of lines that are not wrapped."""

    kind: str  # "paragraph", "item" or "block"
    indent: int
    lines: list[str]
    bullet: str = ""

    @property
    def text(self) -> str:
        return unwrap(self.lines)


@dataclass(frozen=True)
class Description:
    package: str
    md5: str
    title: str
    body: list[list[Piece]]  # sections, which empty lines separate

    def texts(self) -> Iterator[str]:
        """The title and the text of each piece."""
        yield self.title
        for section in self.body:
            for piece in section:
                yield piece.text

    def long(self) -> str:
        """Everything but the title, as one line."""
        return as_line([piece for section in self.body for piece in section])


def read_descriptions(path: Path) -> Iterator[Description]:
    """The descriptions of one Translation file."""
    package = md5 = title = ""
    body: list[str] = []
    for _, line in read_text(path):
        if line.startswith(" "):
            body.append(line[1:])
            continue
        field, _, value = line.partition(":")
        if field == "Package":
            if md5 and title:
                yield Description(package, md5, title, sections(body))
            package, md5, title, body = value.strip(), "", "", []
        elif field == "Description-md5":
            md5 = value.strip()
        elif field.startswith("Description-"):
            title, body = unwrap([value]), []
    if md5 and title:
        yield Description(package, md5, title, sections(body))


def sections(lines: list[str]) -> list[list[Piece]]:
    """The sections of a description, each as its pieces; `lines` are without their first space."""
    result: list[list[Piece]] = [[]]
    for line in lines:
        text = line.replace(NO_BREAK_SPACE, " ").strip()
        if text in (".", ""):
            result.append([])
            continue
        indent = len(line) - len(line.lstrip(" "))
        section = result[-1]
        last = section[-1] if section else None
        bullet = BULLET.match(text)
        if bullet and (indent or _list_may_begin_after(last)):
            section.append(Piece("item", indent, [text[bullet.end() :]], bullet[0].strip()))
        elif last and _continues(last, indent):
            last.lines.append(text)
        else:
            section.append(Piece("block" if indent else "paragraph", indent, [text]))
    return [section for section in result if section]


def _list_may_begin_after(last: Piece | None) -> bool:
    """True if a dash that begins an unindented line can be a bullet; else it is a dash inside a wrapped sentence."""
    return last is None or last.lines[-1].endswith(":") or (last.kind == "item" and last.indent == 0)


def _continues(last: Piece, indent: int) -> bool:
    """True if a line with this indent belongs to the last piece."""
    if last.kind == "item":
        return indent > 0 or last.indent == 0
    return (last.kind == "block") == (indent > 0)


def unwrap(lines: list[str]) -> str:
    """Lines as one, with spaces between them, but not after a hyphen (cross-/platform) or in Chinese or Japanese."""
    text = ""
    for line in lines:
        line = " ".join(INVISIBLE.sub("", line.replace(NO_BREAK_SPACE, " ")).split())
        after_hyphen = re.search(r"\w-$", text) and re.match(r"\w", line) and not CONJUNCTION.match(line)
        text += line if not text or after_hyphen or (_unspaced(text[-1]) and _unspaced(line[:1])) else " " + line
    return text


def _unspaced(character: str) -> bool:
    wide = character != "" and unicodedata.east_asian_width(character) in "WF"
    return wide and not "\uac00" <= character <= "\ud7a3"  # Korean has spaces


def as_line(pieces: list[Piece]) -> str:
    """Pieces as one line; the items of a list keep their bullets, which separate them."""
    return " ".join(f"{piece.bullet} {piece.text}".strip() for piece in pieces)


def paired(source: Description, target: Description) -> Iterator[tuple[str, str]]:
    """Pairs the titles, then the pieces of each section if they match, else the whole sections.

    If the numbers of sections differ, all pieces are paired if they match, else only the titles are.
    """
    yield source.title, target.title
    if len(source.body) == len(target.body):
        for left, right in zip(source.body, target.body, strict=True):
            if _match(left, right):
                yield from _piecewise(left, right)
            else:
                yield as_line(left), as_line(right)
    else:
        left, right = ([piece for section in side.body for piece in section] for side in (source, target))
        if _match(left, right):
            yield from _piecewise(left, right)


def _piecewise(left: list[Piece], right: list[Piece]) -> Iterator[tuple[str, str]]:
    return ((a.text, b.text) for a, b in zip(left, right, strict=True))


def _match(left: list[Piece], right: list[Piece]) -> bool:
    """True if both have the same kinds of pieces in the same order, and no item of a list is in another place."""
    if [piece.kind for piece in left] != [piece.kind for piece in right]:
        return False
    places, others = _places_of_names(left), _places_of_names(right)
    return all(others.get(name, place) == place for name, place in places.items())


def _places_of_names(pieces: list[Piece]) -> dict[str, int]:
    """The place of each name that occurs in only one piece, if that piece is an item of a list."""
    places: dict[str, int] = {}
    repeated: set[str] = set()
    for place, piece in enumerate(pieces):
        for name in set(NAME.findall(piece.text)):
            repeated |= {name} & places.keys()
            places[name] = place
    return {name: place for name, place in places.items() if name not in repeated and pieces[place].kind == "item"}
