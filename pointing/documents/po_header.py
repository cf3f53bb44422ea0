"""The header of a PO file: its charset, and what a new file needs filled in; fields that say something are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from pointing import __version__

_HEADER = re.compile(rb'^[ \t]*msgid[ \t]+""[ \t]*\r?\n[ \t]*msgstr[^\n]*\n(?:[ \t]*"[^\n]*\n?)*', re.MULTILINE)
_CHARSET = re.compile(rb"charset=([\w.:+-]+)")
_UNSET = {  # what xgettext writes for somebody to fill in
    "Language": r"",
    "MIME-Version": r"",
    "Content-Type": r"|text/plain; charset=CHARSET",
    "Content-Transfer-Encoding": r"|ENCODING",
    "Plural-Forms": r"|nplurals=INTEGER; plural=EXPRESSION;",
    "PO-Revision-Date": r"YEAR-MO-DA HO:MI\+(?:ZONE|DIST)",
}


_NEEDED = {"Language", "Content-Type", "Plural-Forms"}  # are added to any header that lacks them
_OF_NEW = {*_NEEDED, "MIME-Version", "Content-Transfer-Encoding"}  # to one that is new


def declared_charset(data: bytes) -> str | None:
    """The charset that the header names; None if there is none, or only the template's word CHARSET."""
    for header in _HEADER.finditer(data):
        if match := _CHARSET.search(header[0]):
            name = match[1].decode("ascii")
            return None if name == "CHARSET" else name
    return None


def header_fields(header: str) -> dict[str, str]:
    """The fields by name; lines without a colon are left out."""
    fields = {}
    for line in header.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    return fields


def completed_header(header: str, language: str, plural_forms: str | None, charset: str) -> str:
    """The header with the fields filled in that a file in this language needs and that nobody has filled in yet."""
    values: Mapping[str, str | None] = {
        "PO-Revision-Date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M%z}",
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": f"text/plain; charset={charset}",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": plural_forms,
    }
    is_new = not header or "YEAR-MO-DA" in header or "CHARSET" in header
    there = header_fields(header)
    lines = header.split("\n")[:-1] if header.endswith("\n") else header.split("\n") if header else []
    for name, value in values.items():
        if value is None:
            continue
        if name not in there and name in (_OF_NEW if is_new else _NEEDED):
            lines.append(f"{name}: {value}")
        elif name in there and re.fullmatch(_UNSET[name], there[name]):
            lines = [f"{name}: {value}" if line.partition(":")[0].strip() == name else line for line in lines]
    if is_new and "X-Generator" not in there:
        lines.append(f"X-Generator: pointing {__version__}")
    return "".join(f"{line}\n" for line in lines)
