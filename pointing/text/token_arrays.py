"""Many lines' tokens at once, as arrays: each different chunk of text is cut once, wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.text.tokenizer import Tokenizer, Tokens

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class TokenArrays(NamedTuple):
    """Lines of tokens laid end to end."""

    words: list[str]  # different ones
    ids: Ints  # (tokens,) which of the words
    starts: Ints  # (tokens,) characters of the raw line
    ends: Ints
    counts: Ints  # (lines,) tokens of each

    def select(self, keep: npt.NDArray[np.bool_]) -> TokenArrays:
        """Some of the lines."""
        tokens = np.repeat(keep, self.counts)
        return TokenArrays(self.words, self.ids[tokens], self.starts[tokens], self.ends[tokens], self.counts[keep])

    def positions(self) -> Longs:
        """(tokens,) the place of each token in its line."""
        return sums_within_groups(np.ones(len(self.ids), np.int64), self.counts.astype(np.int64))

    def truncate(self, longest: int) -> TokenArrays:
        """Each line's first tokens."""
        keep, counts = self.positions() < longest, np.minimum(self.counts, longest)
        return TokenArrays(self.words, self.ids[keep], self.starts[keep], self.ends[keep], counts)


def tokenize_lines(tokenizer: Tokenizer, lines: Sequence[str]) -> TokenArrays:
    """The same tokens as tokenizer(line) for each line."""
    if tokenizer.kind == "moses":  # looks beyond white space
        return from_tokens([tokenizer(line) for line in lines])
    chunks = [line.split() for line in lines]
    per_line = np.array([len(some) for some in chunks], np.int64)
    different, chunk = unique_numbers(list(chain.from_iterable(chunks)))

    # Of each different chunk: its words and their lengths, end to end.
    cut = [tokenizer.split_chunk(text) for text in different]
    pieces = np.array([len(words) for words, _ in cut], np.int64)
    words, word = unique_numbers(list(chain.from_iterable(words for words, _ in cut)))
    length = np.fromiter(chain.from_iterable(lengths for _, lengths in cut), np.int64)
    begin = sums_within_groups(length, pieces)  # characters from the chunk's start

    # Of each token: the place of its piece among those.
    piece = ranges(running_sums(pieces)[chunk], pieces[chunk])
    characters = np.array([len(text) for text in different], np.int64)
    starts = _chunk_starts(lines, chunks, per_line, characters[chunk])
    start = np.repeat(starts, pieces[chunk]) + begin[piece]
    return TokenArrays(
        words,
        word[piece],
        start.astype(np.int32),
        (start + length[piece]).astype(np.int32),
        np.diff(running_sums(pieces[chunk])[running_sums(per_line)]).astype(np.int32),
    )


def from_tokens(lines: Sequence[Tokens]) -> TokenArrays:
    """Tokens that were made line by line."""
    words, ids = unique_numbers(list(chain.from_iterable(line.words for line in lines)))
    return TokenArrays(
        words,
        ids,
        np.fromiter(chain.from_iterable(line.starts for line in lines), np.int32),
        np.fromiter(chain.from_iterable(line.ends for line in lines), np.int32),
        np.array([len(line.words) for line in lines], np.int32),
    )


def unique_numbers(texts: list[str]) -> tuple[list[str], Ints]:
    """The different texts in the order of their first places, and for each text which of them it is."""
    different = list(dict.fromkeys(texts))
    numbers = dict(zip(different, range(len(different)), strict=True))
    return different, np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts))


def _chunk_starts(lines: Sequence[str], chunks: Sequence[list[str]], per_line: Longs, length: Longs) -> Longs:
    """Where each chunk begins in its line: one space after the one before, as nearly everywhere; else looked for."""
    start = sums_within_groups(length + 1, per_line)
    first = running_sums(per_line)
    whole = running_sums(length + 1)[first[1:]] - running_sums(length + 1)[first[:-1]] - 1  # characters, if it were so
    for number in np.flatnonzero(whole != [len(line) for line in lines]).tolist():
        at = 0
        for place, chunk in enumerate(chunks[number], first[number]):
            start[place] = at = lines[number].find(chunk, at)
            at += len(chunk)
    return start


def running_sums(value: Longs) -> Longs:
    """0, and the sums of the first, the first two, … values."""
    return np.concatenate([[0], np.cumsum(value)])


def sums_within_groups(value: Longs, group: Longs) -> Longs:
    """The sum of the values before each one in its own group; `group` has the groups' sizes."""
    before = running_sums(value)
    return before[:-1] - np.repeat(before[running_sums(group)[:-1]], group)


def ranges(first: Longs, count: Longs) -> Longs:
    """first, first + 1, … (count of them) for each, end to end."""
    return np.repeat(first, count) + sums_within_groups(np.ones(count.sum(), np.int64), count)
