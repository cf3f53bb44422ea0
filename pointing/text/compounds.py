"""Hyphenated words → their parts, so that a name inside a compound can be pointed at: Tango-Geräte, from Tango.

The parts are tokens with nothing between them, which a model with forms (text/forms.py) writes as one word again.
"""

from __future__ import annotations

import re
from itertools import chain

import numpy as np

from pointing.text.forms import JOINED
from pointing.text.protected import is_protected
from pointing.text.token_arrays import (
    Bools,
    TokenArrays,
    Writing,
    ranges,
    running_sums,
    sums_of_groups,
    sums_within_groups,
    unique_numbers,
)

HYPHENS = ("-", "‐", "‑")
_HYPHEN = re.compile(rf"(?<=\w)([{''.join(HYPHENS)}])(?=\w)")


def cut_compounds(tokens: TokenArrays, whole: Bools) -> TokenArrays:
    """The same lines, in which all hyphenated words but those that are to stay `whole` (tokens,) are cut.

    The tokens have to know how they are written. Protected spans stay whole.
    """
    assert tokens.writing is not None
    surfaces, surface, spaces = tokens.writing
    parts, surface_parts = _parts(tokens)
    is_cut = np.array([len(texts) > 1 for texts in parts], bool)[surface] & ~whole
    if not is_cut.any():
        return tokens

    # All writings, first whole ones and then the parts of each; a token is one of the former or all of the latter.
    words = [tokens.words[word] for word in tokens.word_of_writing().tolist()] + list(chain.from_iterable(parts))
    written = surfaces + list(chain.from_iterable(surface_parts))
    pairs, pair = unique_numbers(list(zip(words, written, strict=True)))
    part_count = np.fromiter(map(len, parts), np.int64, len(parts))
    first_part = len(surfaces) + running_sums(part_count)[:-1]
    count = np.where(is_cut, part_count[surface], 1)
    place = ranges(np.where(is_cut, first_part[surface], surface), count)
    token = np.repeat(np.arange(len(surface)), count)

    length = np.fromiter(map(len, written), np.int64, len(written))[place]
    offset = np.where(is_cut[token], sums_within_groups(length, count), 0)
    starts = tokens.starts[token] + offset
    ends = np.where(is_cut[token], starts + length, tokens.ends[token])
    goes_on = np.append(False, token[1:] == token[:-1])
    words, word = unique_numbers([word for word, _ in pairs])
    return TokenArrays(
        words,
        word[pair[place]],
        starts.astype(np.int32),
        ends.astype(np.int32),
        sums_of_groups(count, tokens.counts).astype(np.int32),
        Writing([text for _, text in pairs], pair[place], np.where(goes_on, JOINED, spaces[token]).astype(np.int32)),
    )


def _parts(tokens: TokenArrays) -> tuple[list[list[str]], list[list[str]]]:
    """Of each writing the parts of its word, and those of the writing itself; one part where it cannot be cut."""
    assert tokens.writing is not None
    parts, surface_parts = [], []
    for text, number in zip(tokens.writing.surfaces, tokens.word_of_writing().tolist(), strict=True):
        word = tokens.words[number]
        cut, written = _HYPHEN.split(word), _HYPHEN.split(text)
        if len(cut) != len(written) or is_protected(word):
            cut, written = [word], [text]
        parts.append(cut)
        surface_parts.append(written)
    return parts, surface_parts
