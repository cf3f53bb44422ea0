"""gettext PO and POT: entries are filled line by line of the file, so that nothing else in it changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from pointing.documents.document import Fill, State, Unit
from pointing.documents.plurals import plural_header, read_plurals
from pointing.documents.po_header import completed_header, declared_charset, header_fields
from pointing.documents.po_lines import WIDTH, Entry, changed_lines, columns, read_entries, split_lines, string_lines
from pointing.documents.raw_file import Edits, decoded, text_codec
from pointing.errors import Misuse
from pointing.text.protected import PRESETS, Protector

COMMENT = "# pointing: "  # begins a comment of ours


class Po:
    """A PO or POT file in the encoding that its header names; UTF-8 if it names none."""

    def __init__(self, path: Path, data: bytes, language: str) -> None:
        self.path, self.data, self.notes = path, data, list[str]()
        self.kind = "POT" if path.suffix.lower() == ".pot" else "PO"
        self.charset = declared_charset(data) or "UTF-8"
        if "msgid".encode(text_codec(path, self.charset)) != b"msgid":
            raise Misuse(f"the header names {self.charset}: a PO file needs an encoding that has ASCII in it", path)
        self.raw = decoded(path, data, self.charset, "which its header names")
        self.lines = split_lines(self.raw.text)
        self.starts = [0, *accumulate(map(len, self.lines))]  # of each line, and the end of the text
        entries = read_entries(self.lines, path)
        self.header = next((entry for entry in entries if entry.is_header), None)
        fields = header_fields("" if self.header is None else self.header.text("msgstr") or "")
        self.language = fields.get("Language") or None
        self.target_language = language
        self._choose_plurals(fields.get("Plural-Forms", ""), language)
        self.entries = [entry for entry in entries if not entry.obsolete and not entry.is_header]
        self.wrap = not any(_is_unwrapped(line) for line in self.lines)
        protect = Protector(PRESETS["software"])
        self.units = [self._unit(number, entry, protect) for number, entry in enumerate(self.entries)]
        self._note_duplicates()

    def _choose_plurals(self, header: str, language: str) -> None:
        """The forms that the header names; if nobody has filled it in, those of the language."""
        is_unset = not header or "INTEGER" in header
        self.plural_forms = plural_header(language) if is_unset else header
        self.plurals = None if self.plural_forms is None else read_plurals(self.plural_forms)
        self.no_plurals = (
            f"the plural forms of {language!r} are not in our table: write Plural-Forms into the header"
            if self.plural_forms is None
            else f"the header's Plural-Forms cannot be used: {header}"
        )

    def _unit(self, number: int, entry: Entry, protect: Protector) -> Unit:
        singular, plural = entry.text("msgid") or "", entry.text("msgid_plural")
        sources: tuple[str, ...] = (singular,)
        trouble: str | None = None
        targets = tuple(entry.translations)
        if plural is not None and self.plurals is None:
            sources, trouble = (singular, plural), self.no_plurals
        elif plural is not None and self.plurals is not None:
            spans = [sorted(text[span.start : span.end] for span in protect(text)) for text in (singular, plural)]
            sources = self.plurals.sources(singular, plural, spans[0] == spans[1])
            targets = tuple(entry.text(f"msgstr[{form}]") or "" for form in range(len(sources)))
        if entry.has_bytes:
            trouble = "has bytes written as numbers, which may be part of a character"
        if entry.is_on_one_line:
            trouble = "its msgid and msgstr stand on one line"
        is_empty = not all(targets)
        state: State = "empty" if not any(targets) else "fuzzy" if "fuzzy" in entry.flags else "translated"
        if is_empty and state == "translated":  # some forms of a plural are there: they stay, the others are filled
            state = "empty"
        flags = tuple(flag for flag in entry.flags if flag != "fuzzy")
        return Unit(number, entry.line, sources, targets, state, entry.text("msgctxt"), flags, trouble)

    def _note_duplicates(self) -> None:
        first: dict[tuple[str | None, str | None], Entry] = {}
        for entry in self.entries:
            other = first.setdefault((entry.text("msgctxt"), entry.text("msgid")), entry)
            if other is not entry:
                self.notes.append(
                    f"{self.path}:{entry.line}: the same message as in line {other.line}; msgfmt refuses such a file"
                )

    def unit_at(self, line: int) -> int | None:
        """The number of the unit in whose lines a line of the file is, counted from 1."""
        for number, entry in enumerate(self.entries):
            if entry.first < line <= entry.translation_lines.last + 1:
                return number
        return None

    def problem(self, unit: Unit, text: str) -> str | None:
        return None if self.raw.can_hold(text) else f"has characters that {self.charset} lacks"

    def written(self, fills: Mapping[int, Fill], fuzzy: bool) -> bytes:
        if not fills:
            return self.data
        edits = Edits(self.raw.text)
        self._write_header(edits)
        for number, fill in fills.items():
            self._write_entry(edits, self.entries[number], fill, fuzzy)
        return self.raw.bytes_of(edits.result())

    def _write_header(self, edits: Edits) -> None:
        old = "" if self.header is None else self.header.text("msgstr") or ""
        plural_forms = self.plural_forms if any("msgid_plural" in entry.strings for entry in self.entries) else None
        new = completed_header(old, self.target_language, plural_forms, self.charset)
        if new in (old, f"{old}\n") or (self.header is not None and self.header.is_on_one_line):
            return
        end = self._line_end(0)
        lines = changed_lines("msgstr", [] if self.header is None else self.header.strings["msgstr"], new)
        if self.header is None:
            edits.insert(0, "".join(f"{line}{end}" for line in ['msgid ""', *lines, ""]))
            return
        self._replace_lines(edits, *self.header.translation_lines, lines)
        if "YEAR-MO-DA" in old or "CHARSET" in old:  # a template's: msgfmt takes no notice of a fuzzy header
            self._write_flags(edits, self.header, fuzzy=False)

    def _write_entry(self, edits: Edits, entry: Entry, fill: Fill, fuzzy: bool) -> None:
        keywords = (
            [f"msgstr[{form}]" for form in range(len(fill.texts))] if "msgid_plural" in entry.strings else ["msgstr"]
        )
        lines = [
            line
            for keyword, text in zip(keywords, fill.texts, strict=True)
            for line in string_lines(keyword, text, self.wrap)
        ]
        self._replace_lines(edits, *entry.translation_lines, lines)
        for number in entry.previous:  # it told what the old translation was of
            self._replace_lines(edits, number, number, [])
        for number in entry.comments:
            if self.lines[number].startswith(COMMENT):
                self._replace_lines(edits, number, number, [])
        if fill.comment is not None:
            after = entry.comments[-1] + 1 if entry.comments else entry.first
            edits.insert(self.starts[after], f"{COMMENT}{fill.comment}{self._line_end(entry.first)}")
        self._write_flags(edits, entry, fuzzy)

    def _write_flags(self, edits: Edits, entry: Entry, fuzzy: bool) -> None:
        if fuzzy == ("fuzzy" in entry.flags):
            return
        if fuzzy and not entry.flag_lines:
            at = min([*entry.previous, *(place.first for place in entry.places.values())])
            edits.insert(self.starts[at], f"#, fuzzy{self._line_end(at)}")
            return
        for number in entry.flag_lines[:1] if fuzzy else entry.flag_lines:
            there = [flag.strip() for flag in self.lines[number].strip()[2:].split(",")]
            flags = ["fuzzy"] * fuzzy + [flag for flag in there if flag and flag != "fuzzy"]
            self._replace_lines(edits, number, number, [f"#, {', '.join(flags)}"] if flags else [])

    def _replace_lines(self, edits: Edits, first: int, last: int, lines: list[str]) -> None:
        end = self._line_end(first)
        text = end.join(lines) + (end if lines and self.lines[last].endswith("\n") else "")
        edits.replace(self.starts[first], self.starts[last + 1], text)

    def _line_end(self, number: int) -> str:
        line = self.lines[number] if self.lines else ""
        return "\r\n" if (line if line.endswith("\n") else self.raw.text).endswith("\r\n") else "\n"


def _is_unwrapped(line: str) -> bool:
    """True for a string's line that gettext's tools would have broken at one of its first spaces."""
    text = line.strip()
    if len(text) <= WIDTH + 8 or not text.startswith(('"', "msg")):
        return False
    return " " in text[8 : WIDTH - 1] and columns(text) > WIDTH + 8  # 8: a keyword, which has a space of its own
