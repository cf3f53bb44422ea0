"""Accelerators: the mark in a label (`_Open`, `E&xit`, `~File`) before the letter that chooses it on the keyboard.

Translation works on the label without it; afterwards a mark is put before a letter of the translation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from pointing.text.protected import PRESETS, Protector

LONGEST = 80  # characters; a longer text is no label
IDENTIFIER_PART = 3  # letters; `file_name` has at least so many on both sides of its _, `a_ll` has not
_MARK = re.compile(r"[_&~](?=[^\W_])")
_BEHIND = re.compile(r"\s?[(（]([_&~])([A-Za-z0-9])[)）]")  # 開く(_O): languages without Latin letters
_LITERAL = re.compile(r"&&|__|~~")  # how labels write the mark itself
_PROTECTOR = Protector(PRESETS["software"])


class Accelerator(NamedTuple):
    """The mark (_, & or ~) and the letter or digit behind it, as it is written."""

    mark: str
    letter: str


def without_accelerator(text: str, is_label: bool = False) -> tuple[str, Accelerator | None]:
    """The text without its mark, and what it was; the text as it is, and None, unless there is exactly one mark.

    A letter that was added only for the mark, as in 開く(_O), goes with it. If the text is known to be a label with an
    accelerator, because its translation is one, then `rec_urs` has a mark; otherwise it is taken for an identifier.
    """
    if len(text) > LONGEST or "\n" in text or not _MARK.search(text):
        return text, None
    places = list(_places(text, is_label))
    if len(places) != 1:
        return text, None
    place = places[0]
    accelerator = Accelerator(text[place], text[place + 1])
    added = next((match for match in _BEHIND.finditer(text) if match.start(1) == place), None)
    if added and any(map(_is_wide, text)):
        return text[: added.start()] + text[added.end() :], accelerator
    return text[:place] + text[place + 1 :], accelerator


def with_accelerator(text: str, mark: str, letter: str) -> str:
    """The text with a mark: before a word that begins with the letter, else inside one, else before the first letter.

    Text in Chinese, Japanese or Korean gets the letter in brackets at its end, before a colon or three dots.
    """
    covered = _covered(text)
    free = [place for place, character in enumerate(text) if character.isalnum() and place not in covered]
    if not free:
        return text
    same = [place for place in free if text[place].casefold() == letter.casefold()]
    begins = [place for place in same if place == 0 or not text[place - 1].isalnum()]
    if not same and any(map(_is_wide, text)):
        end = re.search(r"\s*(?:[:：…]|\.\.\.)?\s*\Z", text)
        place = end.start() if end else len(text)
        return f"{text[:place]}({mark}{letter.upper()}){text[place:]}"
    place = (begins or same or free)[0]
    return text[:place] + mark + text[place:]


def _places(text: str, is_label: bool) -> Iterator[int]:
    """Where the text has marks: not in protected spans, not in identifiers, not where the mark means itself."""
    covered = _covered(text)
    for match in _LITERAL.finditer(text):
        covered.update(range(*match.span()))
    for match in _MARK.finditer(text):
        place = match.start()
        if place not in covered and _is_accelerator(text, place, is_label):
            yield place


def _is_accelerator(text: str, place: int, is_label: bool) -> bool:
    mark, letter = text[place], text[place + 1]
    before, after = re.search(r"\w*\Z", text[:place]), re.match(r"\w*", text[place + 1 :])
    assert before is not None
    assert after is not None
    if mark == "~" and letter.isdigit():
        return False  # about 10 minutes: ~10
    if not before[0]:
        return place == 0 or text[place - 1] not in "=?/.:\\&~@#-"  # not in ?a=1&b=2 or a path
    if not letter.islower() or not before[0].isalpha():
        return False  # AT&T, R&D, MAX_SIZE, x2_y
    is_capitalised = before[0][0].isupper() and before[0][1:] == before[0][1:].lower()
    if "_" in before[0] + after[0] or not after[0].isalpha() or not (before[0].islower() or is_capitalised):
        return False
    return mark != "_" or is_capitalised or is_label or min(len(before[0]), len(after[0])) < IDENTIFIER_PART


def _covered(text: str) -> set[int]:
    return {place for span in _PROTECTOR(text) for place in range(span.start, span.end)}


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
