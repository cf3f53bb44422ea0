"""How a word is written: what stands before it, and its case. One number, its *form*, says both.

The model reads and chooses words in lower case. For each word that it writes it also predicts a form, so that the text
comes out as people write it. The form changes the word's *base*: the usual writing of a shortlist word in the training
text (`Daten`), or the characters of the source that are copied. A space is predicted and never computed from rules, so
this works in every language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
SPACES = (" ", "", "\u00a0", "\u202f")  # what may stand before a word; the last two: no-break space, a narrow one
SPACE, JOINED, NO_BREAK, NARROW = range(4)
AS_IT_IS, LOWER, CAPITAL, UPPER = range(4)  # how the base becomes the written word; CAPITAL: its first letter
FORMS = 16  # 4 · space + case
WITHIN_WORD = 4 * JOINED + AS_IT_IS  # of a further piece of a word
MIXED = LOWER  # of a source word, which has no base: capitals inside the word


def form(spaces: Ints, cases: Ints) -> Ints:
    """The forms of tokens from what stands before them and their cases."""
    return (4 * spaces + cases).astype(np.int32)


def write_word(base: str, number: int) -> str:
    """The base in the case that a form says."""
    case = number % 4
    if case == LOWER:
        return base.lower()
    if case == CAPITAL:
        return base[:1].upper() + base[1:]
    return base.upper() if case == UPPER else base


def space_before(number: int) -> str:
    """What stands before a word of this form."""
    return SPACES[number // 4]


def join(words: Iterable[tuple[str, int]]) -> str:
    """Written words with their forms as a line. Nothing stands before the first word."""
    return "".join((space_before(number) if place else "") + word for place, (word, number) in enumerate(words))


def case_between(base: str, written: str) -> int:
    """The case that turns the base into the written word; AS_IT_IS also if none does."""
    for case in (AS_IT_IS, LOWER, CAPITAL, UPPER):
        if write_word(base, case) == written:
            return case
    return AS_IT_IS


def case_of(word: str) -> int:
    """The case of a source word, as the encoder reads it: AS_IT_IS without capitals, CAPITAL, UPPER or MIXED."""
    lower = word.lower()
    if word == lower:
        return AS_IT_IS
    if word == write_word(lower, CAPITAL):
        return CAPITAL
    return UPPER if word == word.upper() else MIXED


def cases_between(bases: Sequence[str], base: Longs, surfaces: Sequence[str], surface: Ints) -> Ints:
    """`case_between` for each token, given as numbers of its base and of its writing; each pair is compared once."""
    pairs, inverse = np.unique(base * len(surfaces) + surface, return_inverse=True)
    each = [case_between(bases[pair // len(surfaces)], surfaces[pair % len(surfaces)]) for pair in pairs.tolist()]
    return np.array(each, np.int32)[inverse] if each else np.zeros(0, np.int32)


def usual_writings(counts: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, str]:
    """The usual writing of each word that is not simply the word itself.

    `counts` has how often each (word, writing) occurs, in all and *inside*: after another word, where a capital is not
    that of a sentence's first word. A capital that is never seen inside is taken for that of a sentence.
    """
    best: dict[str, tuple[tuple[int, int], str]] = {}
    for (word, writing), (count, inside) in counts.items():
        starts_sentences = writing != word and case_of(writing) == CAPITAL and not inside
        rank = (inside, 0 if starts_sentences else count)
        if word not in best or (rank, writing) > best[word]:
            best[word] = rank, writing
    return {word: writing for word, (rank, writing) in best.items() if writing != word and any(rank)}


def spaces_before(lines: Sequence[str], starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """What stands before each token of the lines, as a number of SPACES; SPACE before a line's first token."""
    is_first = np.zeros(len(starts), bool)
    is_first[(np.cumsum(counts) - counts)[counts > 0]] = True
    spaces = np.full(len(starts), SPACE, np.int32)
    spaces[1:][starts[1:] == ends[:-1]] = JOINED
    spaces[is_first] = SPACE
    text = "\n".join(lines)
    lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
    line_starts = np.repeat(np.cumsum(lengths) - lengths, counts)  # in the text, for each token
    for space in (NO_BREAK, NARROW):
        places = np.array([match.start() for match in re.finditer(SPACES[space], text)], np.int64)
        after = np.searchsorted(line_starts + starts, places)  # the token after each one
        places, after = places[after < len(starts)], after[after < len(starts)]
        is_between = ~is_first[after] & (places >= (line_starts + ends)[after - 1])
        spaces[after[is_between]] = space
    return spaces
