"""The tokens of many lines at once, as arrays: each different chunk of text is tokenised once, wherever it occurs."""

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
    """The tokens of all lines, one line after the other."""

    words: list[str]  # the different words
    ids: Ints  # (tokens,) each token's place in `words`
    starts: Ints  # (tokens,) where the token begins, in characters of its raw line
    ends: Ints
    counts: Ints  # (lines,) number of tokens

    def select(self, keep: npt.NDArray[np.bool_]) -> TokenArrays:
        """Only the lines for which `keep` is True."""
        tokens = np.repeat(keep, self.counts)
        return TokenArrays(self.words, self.ids[tokens], self.starts[tokens], self.ends[tokens], self.counts[keep])

    def positions(self) -> Longs:
        """(tokens,) each token's position in its line, from 0."""
        return sums_within_groups(np.ones(len(self.ids), np.int64), self.counts.astype(np.int64))

    def truncate(self, longest: int) -> TokenArrays:
        """Only the first `longest` tokens of each line."""
        keep, counts = self.positions() < longest, np.minimum(self.counts, longest)
        return TokenArrays(self.words, self.ids[keep], self.starts[keep], self.ends[keep], counts)


def tokenize_lines(tokenizer: Tokenizer, lines: Sequence[str]) -> TokenArrays:
    """The same tokens as tokenizer(line) for each line."""
    if tokenizer.kind == "moses":  # needs the whole line: what is around a chunk decides how it is split
        return from_tokens([tokenizer(line) for line in lines])
    chunks = [line.split() for line in lines]
    per_line = np.array([len(chunks_of_line) for chunks_of_line in chunks], np.int64)
    different, chunk = unique_numbers(list(chain.from_iterable(chunks)))

    # The words of all different chunks, one chunk after the other, with their lengths in characters.
    split = [tokenizer.split_chunk(text) for text in different]
    word_counts = np.array([len(words) for words, _ in split], np.int64)
    words, word = unique_numbers(list(chain.from_iterable(words for words, _ in split)))
    length = np.fromiter(chain.from_iterable(lengths for _, lengths in split), np.int64)
    offset = sums_within_groups(length, word_counts)  # characters from the chunk's start

    # For each token: its place in that list of words.
    place = ranges(running_sums(word_counts)[chunk], word_counts[chunk])
    characters = np.array([len(text) for text in different], np.int64)
    chunk_starts = _chunk_starts(lines, chunks, per_line, characters[chunk])
    start = np.repeat(chunk_starts, word_counts[chunk]) + offset[place]
    return TokenArrays(
        words,
        word[place],
        start.astype(np.int32),
        (start + length[place]).astype(np.int32),
        np.diff(running_sums(word_counts[chunk])[running_sums(per_line)]).astype(np.int32),
    )


def from_tokens(lines: Sequence[Tokens]) -> TokenArrays:
    """Tokens of single lines as arrays."""
    words, ids = unique_numbers(list(chain.from_iterable(line.words for line in lines)))
    return TokenArrays(
        words,
        ids,
        np.fromiter(chain.from_iterable(line.starts for line in lines), np.int32),
        np.fromiter(chain.from_iterable(line.ends for line in lines), np.int32),
        np.array([len(line.words) for line in lines], np.int32),
    )


def unique_numbers(texts: list[str]) -> tuple[list[str], Ints]:
    """The different texts in the order of their first occurrence, and for each text its place among them."""
    different = list(dict.fromkeys(texts))
    numbers = dict(zip(different, range(len(different)), strict=True))
    return different, np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts))


def _chunk_starts(lines: Sequence[str], chunks: Sequence[list[str]], per_line: Longs, length: Longs) -> Longs:
    """Where each chunk begins in its line.

    Nearly all lines have single spaces between their chunks: then the chunks' lengths give the answer. Lines of another
    length than that have other white space, and their chunks are searched for.
    """
    start = sums_within_groups(length + 1, per_line)
    first = running_sums(per_line)
    sums = running_sums(length + 1)[first]
    line_length = sums[1:] - sums[:-1] - 1  # with single spaces
    for number in np.flatnonzero(line_length != [len(line) for line in lines]).tolist():
        end = 0
        for place, chunk in enumerate(chunks[number], first[number]):
            start[place] = lines[number].find(chunk, end)
            end = start[place] + len(chunk)
    return start


def running_sums(value: Longs) -> Longs:
    """0, then the sum of the first value, of the first two, …: one number more than there are values."""
    return np.concatenate([[0], np.cumsum(value)])


def sums_within_groups(value: Longs, group: Longs) -> Longs:
    """For each value the sum of the values before it in its own group; `group` has the sizes of the groups."""
    before = running_sums(value)
    return before[:-1] - np.repeat(before[running_sums(group)[:-1]], group)


def ranges(first: Longs, count: Longs) -> Longs:
    """The numbers first, first + 1, …, first + count - 1, for each pair of first and count, one after the other."""
    return np.repeat(first, count) + sums_within_groups(np.ones(count.sum(), np.int64), count)
