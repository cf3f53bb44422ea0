"""A gettext PO file as entries that know their lines, and strings as PO writes them.

polib reads such files too, but what it writes is not what it read: escapes such as \\a become \\\\a, comments are put
into another order, `#~|` lines and comments at the end are lost, and a message of 10 MB takes half a minute. Here an
entry keeps the lines that it was read from; the tests hold what is read against polib.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from unicodedata import category, east_asian_width

from pointing.errors import Misuse

WIDTH = 79  # columns of a line, at most, as gettext's own tools wrap
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr|domain)(?:\[(\d{1,3})\])?\s*(?=\"|$)")
_OBSOLETE = re.compile(r'#~[ \t]*(?=msg|"|domain)')
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\\"'?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2}))")
_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LETTERS = {character: f"\\{letter}" for letter, character in _CHARACTERS.items()} | {"\\": "\\\\", '"': '\\"'}
_TO_ESCAPE = re.compile(r"[\x00-\x1f\x7f\\\"]")
_NO_WIDTH = {"Mn", "Me", "Cf"}  # categories of Unicode
_WORD = re.compile(r"[^ ]*(?: +|$)")


class Lines(NamedTuple):
    """Lines `first` to `last` of the file, counted from 0; `last` is one of them."""

    first: int
    last: int


@dataclass
class Entry:
    """One message with its comments, and where in the file each part stands; lines are counted from 0."""

    first: int  # its first line, which may be a comment
    obsolete: bool = False
    strings: dict[str, list[str]] = field(default_factory=dict)  # of msgctxt, msgid, msgstr, msgstr[0], …: escaped
    places: dict[str, Lines] = field(default_factory=dict)  # of the same
    flags: list[str] = field(default_factory=list)
    flag_lines: list[int] = field(default_factory=list)
    previous: list[int] = field(default_factory=list)  # lines `#| …`: what the message was before
    comments: list[int] = field(default_factory=list)  # lines of translators, `# …`

    def text(self, name: str) -> str | None:
        """The string after a keyword, such as `msgid`; None if the entry has none."""
        return unescape("".join(self.strings[name])) if name in self.strings else None

    @property
    def line(self) -> int:
        """The line of its msgid, from 1: where msgfmt says that an error is."""
        return self.places["msgid"].first + 1

    @property
    def is_header(self) -> bool:
        return self.text("msgid") == "" and "msgctxt" not in self.strings and not self.obsolete

    @property
    def is_complete(self) -> bool:
        return any(name.startswith("msgstr") for name in self.strings)

    @property
    def translations(self) -> list[str]:
        return [self.text(name) or "" for name in self.strings if name.startswith("msgstr")]

    @property
    def translation_lines(self) -> Lines:
        places = [place for name, place in self.places.items() if name.startswith("msgstr")]
        return Lines(min(place.first for place in places), max(place.last for place in places))

    @property
    def is_on_one_line(self) -> bool:
        """True if the translation begins on a line on which the message ends."""
        message = [place.last for name, place in self.places.items() if not name.startswith("msgstr")]
        return self.translation_lines.first <= max(message)

    @property
    def has_bytes(self) -> bool:
        """True if an escape writes a byte that is no character by itself, such as \\303."""
        return any(_is_byte(match) for part in self.strings.values() for match in _ESCAPE.finditer("".join(part)))


def split_lines(text: str) -> list[str]:
    """The lines with their ends. Only \\n ends a line: other separators may stand inside of strings."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:] * bool(parts[-1])


def read_entries(lines: list[str], path: Path) -> list[Entry]:
    """The entries of a PO file; what is no PO is refused with its line."""
    entries: list[Entry] = []
    name = ""  # the keyword whose strings are being read
    for number, raw in enumerate(lines):
        line = raw.strip()
        obsolete = _OBSOLETE.match(line)
        rest = line[obsolete.end() :] if obsolete else line
        if rest and not rest.startswith('"'):
            _check_has_string(entries, name, path, number)
        if rest.startswith("#"):
            if not entries or entries[-1].is_complete:
                entries.append(Entry(number))
                name = ""
            _read_comment(entries[-1], rest, number)
            continue
        while rest:
            if keyword := _KEYWORD.match(rest):
                rest = rest[keyword.end() :]
                if not entries or (entries[-1].is_complete and keyword[1] in ("msgctxt", "msgid")):
                    if entries and entries[-1].translation_lines.last == number:
                        raise Misuse("two entries on one line", path, number + 1)
                    entries.append(Entry(number))
                name = _checked_name(entries[-1], keyword, path, number)
                entries[-1].obsolete = entries[-1].obsolete or obsolete is not None
                if name != "domain":
                    entries[-1].places[name] = Lines(number, number)
                if not rest:  # its string begins on the next line
                    break
            string = _STRING.match(rest)
            if string is None or not name:
                raise Misuse(_what_is_wrong(rest), path, number + 1)
            if name != "domain":
                entries[-1].strings.setdefault(name, []).append(string[1])
                entries[-1].places[name] = entries[-1].places[name]._replace(last=number)
            rest = rest[string.end() :].lstrip()
    _check_has_string(entries, name, path, len(lines))
    for entry in entries:
        if entry.strings and not entry.is_complete:
            raise Misuse("an entry without msgstr", path, next(iter(entry.places.values())).first + 1)
    return [entry for entry in entries if entry.strings]  # the others are comments after the last entry


def _check_has_string(entries: list[Entry], name: str, path: Path, number: int) -> None:
    """Refuses a keyword after which no string has come."""
    if name not in ("", "domain") and name not in entries[-1].strings:
        raise Misuse(f"{name} without a string after it", path, number)


def _checked_name(entry: Entry, keyword: re.Match[str], path: Path, number: int) -> str:
    """The keyword with the number of its plural form; refused if it may not stand here."""
    name, form = keyword[1], keyword[2]
    full = name if form is None else f"{name}[{int(form)}]"
    before = {"msgid_plural": "msgid", "msgstr": "msgid" if form is None else "msgid_plural"}.get(name)
    if full in entry.strings:
        raise Misuse(f"{full} for the second time in one entry", path, number + 1)
    if form is not None and name != "msgstr":
        raise Misuse(f"{name} cannot have a number", path, number + 1)
    if before is not None and before not in entry.strings:
        raise Misuse(f"{full} without {before} before it", path, number + 1)
    if name == "msgstr" and form is None and "msgid_plural" in entry.strings:
        raise Misuse("the msgstr of a plural needs the number of its form: msgstr[0]", path, number + 1)
    if (name == "msgid_plural" and entry.is_complete) or (name == "msgctxt" and entry.strings):
        raise Misuse(f"{name} in the wrong place of an entry", path, number + 1)
    return full


def _read_comment(entry: Entry, comment: str, number: int) -> None:
    if comment.startswith("#,"):
        entry.flags += [flag for part in comment[2:].split(",") if (flag := part.strip())]
        entry.flag_lines.append(number)
    elif comment.startswith("#="):  # flags of gettext 0.25, among which is never fuzzy
        entry.flags += [flag for part in comment[2:].split(",") if (flag := part.strip())]
    elif comment.startswith("#|"):
        entry.previous.append(number)
    elif comment == "#" or comment.startswith(("# ", "#\t")):
        entry.comments.append(number)


def _what_is_wrong(rest: str) -> str:
    if not rest.startswith('"'):
        return (
            f"this is not PO: {rest[:30]!r}; a comment, msgid, msgstr or a string in quotation marks should stand here"
        )
    if _STRING.match(rest):
        return "a string without msgid or msgstr before it"
    return "a string without an end: its closing quotation mark is missing"


def unescape(string: str) -> str:
    return _ESCAPE.sub(_character, string)


def _character(match: re.Match[str]) -> str:
    if match[1] is not None:
        return _CHARACTERS.get(match[1], match[1])
    return match[0] if _is_byte(match) else chr(int(match[2], 8) if match[2] else int(match[3], 16))


def _is_byte(match: re.Match[str]) -> bool:
    return match[1] is None and (int(match[2], 8) if match[2] else int(match[3], 16)) > 0x7F


def escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: _LETTERS.get(match[0], f"\\{ord(match[0]):03o}"), text)


def string_lines(keyword: str, text: str, wrap: bool) -> list[str]:
    """A keyword and its string as lines of the file, without line ends: broken after each \\n, and if they are long."""
    parts = [escape(part) for part in re.split(r"(?<=\n)", text) if part]
    if len(parts) < 2 and (not wrap or not parts or len(keyword) + 3 + columns(parts[0]) <= WIDTH):
        return [f'{keyword} "{"".join(parts)}"']
    lines = [line for part in parts for line in (_wrapped(part) if wrap else [part])]
    return [f'{keyword} ""', *(f'"{line}"' for line in lines)]


def changed_lines(keyword: str, old: list[str], new: str) -> list[str]:
    """A string of many \\n as lines; a part up to \\n that stands in `old`, escaped, is written as there."""
    before: dict[str, list[str]] = {}
    pieces: list[str] = []
    for piece in old:
        pieces.append(piece)
        if piece.endswith("\\n"):
            before[unescape("".join(pieces))] = [piece for piece in pieces if piece]
            pieces = []
    parts = [part for part in re.split(r"(?<=\n)", new) if part]
    return [f'{keyword} ""', *(f'"{line}"' for part in parts for line in before.get(part, [escape(part)]))]


def _wrapped(text: str) -> list[str]:
    """Pieces of a string that fit on lines, broken after spaces."""
    lines, used = [""], 0
    for word in _WORD.findall(text):
        width = columns(word)
        if used and used + width + 2 > WIDTH:
            lines.append("")
            used = 0
        lines[-1] += word
        used += width
    return lines


def columns(text: str) -> int:
    """Columns on a terminal: characters of East Asia take two, marks on other characters none."""
    return sum(0 if category(each) in _NO_WIDTH else 1 + (east_asian_width(each) in "WF") for each in text)
