"""The tokens of many lines at once, as arrays: each different chunk of text is tokenised once, wherever it occurs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pointing.text.forms import spaces_before
from pointing.text.protected import is_protected, protected_text
from pointing.text.tokenizer import Tokenizer, Tokens

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
WritingCounts: TypeAlias = dict[tuple[str, str], tuple[int, int]]  # (word, writing) → in all, after another word


class Writing(NamedTuple):
    """How tokens are written in their raw lines."""

    surfaces: list[str]  # the different writings
    ids: Ints  # (tokens,) each token's place in `surfaces`
    spaces: Ints  # (tokens,) what stands before each token (forms.SPACES)

    def select(self, keep: Bools) -> Writing:
        """Only the tokens for which `keep` is True."""
        return Writing(self.surfaces, self.ids[keep], self.spaces[keep])


class TokenArrays(NamedTuple):
    """The tokens of all lines, one line after the other."""

    words: list[str]  # the different words
    ids: Ints  # (tokens,) each token's place in `words`
    starts: Ints  # (tokens,) where the token begins, in characters of its raw line
    ends: Ints
    counts: Ints  # (lines,) number of tokens
    writing: Writing | None = None  # if it was asked for

    def select(self, keep: Bools) -> TokenArrays:
        """Only the lines for which `keep` is True."""
        return self._of_tokens(np.repeat(keep, self.counts), self.counts[keep])

    def positions(self) -> Longs:
        """(tokens,) each token's position in its line, from 0."""
        return sums_within_groups(np.ones(len(self.ids), np.int64), self.counts.astype(np.int64))

    def truncate(self, longest: int) -> TokenArrays:
        """Only the first `longest` tokens of each line."""
        return self._of_tokens(self.positions() < longest, np.minimum(self.counts, longest))

    def count_writings(self) -> WritingCounts:
        """How often each word is written in which way, in all and after another word of its line."""
        if self.writing is None:
            return {}
        is_word = np.array([any(map(str.isalnum, word)) and not is_protected(word) for word in self.words], bool)
        after_word = np.append(False, is_word[self.ids[:-1]])[: len(self.ids)] & (self.positions() > 0)
        size = len(self.writing.surfaces)
        keys, inverse = np.unique(self.ids.astype(np.int64) * size + self.writing.ids, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(keys)), np.bincount(inverse, after_word, len(keys))
        return {
            (self.words[key // size], self.writing.surfaces[key % size]): (int(count), int(inside))
            for key, count, inside in zip(keys.tolist(), *(each.tolist() for each in counts), strict=True)
            if is_word[key // size]
        }

    def _of_tokens(self, keep: Bools, counts: Ints) -> TokenArrays:
        writing = None if self.writing is None else self.writing.select(keep)
        return TokenArrays(self.words, self.ids[keep], self.starts[keep], self.ends[keep], counts, writing)


def tokenize_lines(tokenizer: Tokenizer, lines: Sequence[str], writing: bool = False) -> TokenArrays:
    """The same tokens as tokenizer(line) for each line; with `writing`, also how they are written there."""
    if tokenizer.kind == "moses":  # needs the whole line: what is around a chunk decides how it is split
        return from_tokens([tokenizer(line) for line in lines], lines if writing else None)
    chunks = list(map(tokenizer.chunks, lines))
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
    characters = running_sums(length)[running_sums(word_counts)]
    characters = characters[1:] - characters[:-1]  # of each different chunk
    protected = np.zeros(len(lines), bool)
    if tokenizer.protector is not None:
        protected[:] = [any(map(is_protected, chunks_of_line)) for chunks_of_line in chunks]
    chunk_starts = _chunk_starts(lines, chunks, per_line, characters[chunk], protected)
    start = np.repeat(chunk_starts, word_counts[chunk]) + offset[place]
    starts, ends = start.astype(np.int32), (start + length[place]).astype(np.int32)
    counts = np.diff(running_sums(word_counts[chunk])[running_sums(per_line)]).astype(np.int32)
    tokens = TokenArrays(words, word[place], starts, ends, counts)
    if not writing:
        return tokens
    surfaces, surface = unique_numbers(
        list(chain.from_iterable(_surfaces(text, lengths) for text, (_, lengths) in zip(different, split, strict=True)))
    )
    return tokens._replace(writing=Writing(surfaces, surface[place], spaces_before(lines, starts, ends, counts)))


def _surfaces(chunk: str, lengths: list[int]) -> list[str]:
    """The raw words of a chunk, from their lengths."""
    if is_protected(chunk):
        return [protected_text(chunk)]
    return [chunk[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]


def from_tokens(lines: Sequence[Tokens], texts: Sequence[str] | None = None) -> TokenArrays:
    """Tokens of single lines as arrays; with the raw lines (`texts`) also how they are written there."""
    words, ids = unique_numbers(list(chain.from_iterable(line.words for line in lines)))
    starts = np.fromiter(chain.from_iterable(line.starts for line in lines), np.int32)
    ends = np.fromiter(chain.from_iterable(line.ends for line in lines), np.int32)
    counts = np.array([len(line.words) for line in lines], np.int32)
    if texts is None:
        return TokenArrays(words, ids, starts, ends, counts)
    raw = (
        text[start:end]
        for text, line in zip(texts, lines, strict=True)
        for start, end in zip(line.starts, line.ends, strict=True)
    )
    surfaces, surface = unique_numbers(list(raw))
    writing = Writing(surfaces, surface, spaces_before(texts, starts, ends, counts))
    return TokenArrays(words, ids, starts, ends, counts, writing)


def unique_numbers(texts: list[str]) -> tuple[list[str], Ints]:
    """The different texts in the order of their first occurrence, and for each text its place among them."""
    different = list(dict.fromkeys(texts))
    numbers = dict(zip(different, range(len(different)), strict=True))
    return different, np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts))


def _chunk_starts(
    lines: Sequence[str], chunks: Sequence[list[str]], per_line: Longs, length: Longs, protected: Bools
) -> Longs:
    """Where each chunk begins in its line.

    Nearly all lines have single spaces between their chunks: then the chunks' lengths give the answer. Lines of another
    length than that have other white space. Their chunks are searched for, and so are those of lines with `protected`
    spans, which need not have any white space around them.
    """
    start = sums_within_groups(length + 1, per_line)
    first = running_sums(per_line)
    sums = running_sums(length + 1)[first]
    line_length = sums[1:] - sums[:-1] - 1  # with single spaces
    for number in np.flatnonzero(protected | (line_length != [len(line) for line in lines])).tolist():
        end = 0
        for place, chunk in enumerate(chunks[number], first[number]):
            text = protected_text(chunk)
            start[place] = lines[number].find(text, end)
            end = start[place] + len(text)
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
