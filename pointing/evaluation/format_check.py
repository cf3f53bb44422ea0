"""Whether msgfmt --check-format accepts outputs as translations of their sources, as in the catalogs of programs.

Lines are written as a PO file whose entries say what kind of format they are. Only lines count whose source is such a
format to msgfmt itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from pointing import __version__
from pointing.documents import msgfmt
from pointing.documents.po_lines import escape
from pointing.evaluation.significance import Measure, ratio
from pointing.text.protected import Protector

C, PYTHON, BRACES = "c-format", "python-format", "python-brace-format"
INVALID = {C: "%", PYTHON: "%", BRACES: "{"}  # texts that are no format of the kind
_HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
_LINES_OF_ENTRY = 5
_find = Protector(("printf", "braces"))


class Entry(NamedTuple):
    """A message of a PO file with its translation and its flags."""

    source: str
    output: str
    flags: Sequence[str]


def format_lines(sources: Sequence[str]) -> Mapping[int, list[str]] | None:
    """The lines that are formats, by their numbers from 0, with their kinds; None if msgfmt cannot be asked.

    msgfmt does not say of which kind a text is. But it compares only translations of valid formats: if a text that is
    no format is refused as a translation of the line, then the line is one.
    """
    candidates = [(line, flag) for line, source in enumerate(sources) for flag in _possible_kinds(source)]
    refused = _refused([Entry(sources[line], INVALID[flag], [flag]) for line, flag in candidates])
    if refused is None:
        return None
    kinds: dict[int, list[str]] = {}
    for number in sorted(refused):
        line, flag = candidates[number]
        kinds.setdefault(line, []).append(flag)
    return kinds


def format_measure(sources: Sequence[str], outputs: Sequence[str], formats: Mapping[int, list[str]]) -> Measure | None:
    """Share of the `formats` whose outputs msgfmt accepts, in percent; None if it cannot be asked.

    An empty output, which msgfmt takes for a message that is not translated yet, is not accepted.
    """
    lines = [line for line in formats if outputs[line].strip()]
    refused = _refused([Entry(sources[line], outputs[line], formats[line]) for line in lines])
    if refused is None:
        return None
    numbers = np.zeros((len(sources), 2))
    numbers[list(formats), 1] = 1
    numbers[[line for number, line in enumerate(lines) if number not in refused], 0] = 1
    how = f"flags:{'+'.join(INVALID)}|text:delivered|msgfmt:{msgfmt.version()}|version:{__version__}"
    return Measure("lines that msgfmt accepts", f"lines-that-msgfmt-accepts|{how}", numbers, ratio)


def _possible_kinds(line: str) -> list[str]:
    """The kinds of format that a line looks like.

    A percent sign that a reader would not take for the beginning of an argument (`100% sure`) says that it is no format
    of C or Python, although `% s` is an argument there.
    """
    spans = [(line[span.start : span.end], span.kind) for span in _find(line)]
    arguments = [text for text, kind in spans if kind == "printf"]
    kinds = []
    if arguments and sum(text.count("%") for text, _ in spans) == line.count("%"):
        kinds.append(PYTHON if any(text.startswith("%(") for text in arguments) else C)
    if any(kind == "braces" and not text.startswith("{{") for text, kind in spans):
        kinds.append(BRACES)
    return kinds


def _refused(entries: Sequence[Entry]) -> set[int] | None:
    """The numbers of the entries that msgfmt refuses, from 0; None if it cannot be asked."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines.po"
        text = _HEADER + "".join(map(_written, range(len(entries)), entries))
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        complaints = msgfmt.complaints(path)
    if complaints is None:
        return None
    first = _HEADER.count("\n") + 1
    return {(line - first) // _LINES_OF_ENTRY for line, _ in complaints}


def _written(number: int, entry: Entry) -> str:
    """An entry of the file; its number makes it differ from others with the same source."""
    flags, source, output = ", ".join(entry.flags), escape(entry.source), escape(entry.output)
    return f'#, {flags}\nmsgctxt "{number}"\nmsgid "{source}"\nmsgstr "{output}"\n\n'
