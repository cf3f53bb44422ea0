"""Which kind of document a file is, by the end of its name."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pointing.documents.columns import Wanted
from pointing.documents.document import Document
from pointing.documents.json_lines import JsonLines
from pointing.documents.plain import PlainText
from pointing.documents.po import Po
from pointing.documents.tables import DelimitedTable
from pointing.documents.xliff import Xliff
from pointing.errors import Misuse
from pointing.system.border import read_bytes

SUFFIXES = {
    "gettext": (".po", ".pot"),
    "XLIFF": (".xlf", ".xliff"),
    "tables": (".csv", ".tsv", ".tab"),
    "JSON lines": (".jsonl", ".ndjson"),
    "text": (".txt", ".text"),
}


class Reading(NamedTuple):
    """How files are read: the language that is written into them, the columns of tables, the encoding of text."""

    language: str
    wanted: Wanted
    encoding: str = "utf-8"


def check_kind(path: Path) -> None:
    """Refuses a file of a kind that is not known, before anything is read."""
    if not any(path.suffix.lower() in suffixes for suffixes in SUFFIXES.values()):
        known = "; ".join(f"{kind} ({' '.join(suffixes)})" for kind, suffixes in SUFFIXES.items())
        name = f"files named *{path.suffix}" if path.suffix else "files without an ending"
        raise Misuse(f"{name} are of no kind that can be translated; there are: {known}", path)


def open_document(path: Path, how: Reading) -> Document:
    """The file, read whole and understood."""
    check_kind(path)
    data, suffix = read_bytes(path), path.suffix.lower()
    if suffix in SUFFIXES["gettext"]:
        return Po(path, data, how.language)
    if suffix in SUFFIXES["XLIFF"]:
        return Xliff(path, data, how.language)
    if suffix in SUFFIXES["tables"]:
        return DelimitedTable(path, data, how.wanted, how.encoding)
    if suffix in SUFFIXES["JSON lines"]:
        return JsonLines(path, data, how.wanted)
    return PlainText(path, data, how.encoding)
