"""Messages of programs → pairs of lines to learn from, with a count of what is left out and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from pointing.data.filters import Pair, untranslated
from pointing.text.accelerators import without_accelerator
from pointing.text.protected import PRESETS, Protector, Span

LONGEST = 500  # characters of a line
INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
NO_BREAK = re.compile(r"[\u00a0\u202f\u2007]")
CREDITS = re.compile(r"translator[-_ ]credits|your (?:names|emails)|(?:name|email)s? of translators", re.IGNORECASE)
# How programs put a context into the text itself: "Menu|Open", "_: noun\nOpen"
CONTEXT_INSIDE = re.compile(r"_:|[\w :@/-]+\|[^|\s]")
NAME_WITH_MARK = re.compile(r"\w+[_&~]\w+|(?<!\w)_[a-z]\w+")
ENDS = (".", ":", ";", "!", "?", ")", ">")  # of a line that does not go on in the next one


class PairMaker:
    """Turns messages into pairs of lines; counts the messages and lines that it leaves out or changes."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self._protector = Protector(PRESETS["software"])

    def pairs(self, english: str, source: str, target: str) -> Iterator[Pair]:
        """The pairs of a message; `english` is its key."""
        if CREDITS.fullmatch(english.strip()):
            self.left_out["names of translators"] += 1
        elif CONTEXT_INSIDE.match(english) and ("|" in source) != ("|" in target):
            self.left_out["messages with a context inside the text"] += 1
        elif not source.strip() or not target.strip():
            self.left_out["messages with an empty side"] += 1
        else:
            yield from self._lines(source, target)

    def _lines(self, source: str, target: str) -> Iterator[Pair]:
        left, right = (text.strip().splitlines() for text in (source, target))
        pairs = [(self._clean(a), self._clean(b)) for a, b in zip(left, right, strict=False)]
        if len(left) != len(right) or any(bool(a) != bool(b) for a, b in pairs):
            self.left_out["messages whose lines do not match"] += 1
        elif len(left) > 1 and any(_is_wrapped(text) for text in (left, right)):
            self.left_out["messages of wrapped lines"] += 1
        else:
            for pair in pairs:
                if any(pair) and (made := self._line(pair, is_whole=len(left) == 1)):
                    yield made

    def _line(self, pair: Pair, is_whole: bool) -> Pair | None:
        if is_whole:
            unmarked = self._unmarked(pair)
            if unmarked is None:
                self.left_out["lines with an accelerator on one side only"] += 1
                return None
            pair = unmarked
        spans = [self._protector(text) for text in pair]
        rest = [_rest(text, found) for text, found in zip(pair, spans, strict=True)]
        if not all(any(character.isalpha() for character in text) for text in rest):
            self.left_out["lines without a letter"] += 1
        elif untranslated(pair):
            self.left_out["lines with the same text on both sides"] += 1
        elif max(map(len, pair)) > LONGEST:
            self.left_out[f"lines of more than {LONGEST} characters"] += 1
        else:
            bags = [Counter(text[s.start : s.end] for s in found) for text, found in zip(pair, spans, strict=True)]
            if bags[0] == bags[1]:
                return pair
            self.left_out["lines whose protected spans differ"] += 1
        return None

    def _unmarked(self, pair: Pair) -> Pair | None:
        """The pair without its accelerators; None if only one side has one."""
        sides = [without_accelerator(text) for text in pair]
        if all(accelerator is None for _, accelerator in sides):
            return pair
        if set.intersection(*(set(NAME_WITH_MARK.findall(text)) for text in pair)):
            return pair  # is_open, _start: the same on both sides, so it is a name
        sides = [without_accelerator(text, is_label=True) for text in pair]
        if any(accelerator is None for _, accelerator in sides):
            return None
        self.changed["labels whose accelerators were removed"] += 1
        return sides[0][0], sides[1][0]

    def _clean(self, line: str) -> str:
        if NO_BREAK.search(line):
            self.changed["lines with no-break spaces, which became spaces"] += 1
        return " ".join(INVISIBLE.sub("", line).split())


def _rest(text: str, spans: list[Span]) -> str:
    """The text without its protected spans."""
    for span in reversed(spans):
        text = text[: span.start] + " " + text[span.end :]
    return text


def _is_wrapped(lines: list[str]) -> bool:
    """True if a sentence goes on in the next line: it has no end, and the next line begins with a small letter."""
    return any(
        following[:1].islower() and line[:1].strip() and not line.rstrip().endswith(ENDS)
        for line, following in pairwise(lines)
    )
