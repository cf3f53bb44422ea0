"""The tokens of many lines at once, as arrays: each different chunk of text is tokenised once, wherever it occurs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain, count
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pointing.text.forms import spaces_before
from pointing.text.protected import Protector, is_protected, protected_text, protected_words
from pointing.text.tokenizer import Tokenizer, Tokens

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Value = TypeVar("Value", bound=Hashable)
WHITE_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # of code points; there is none behind U+3000
WritingCounts: TypeAlias = dict[tuple[str, str], tuple[int, int]]  # (word, writing) → in all, after another word


class Writing(NamedTuple):
    """How tokens are written in their raw lines."""

    surfaces: list[str]  # each is a writing of one word; another word may look the same
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
        surfaces, ids, _ = self.writing
        times, inside = np.bincount(ids, minlength=len(surfaces)), np.bincount(ids, after_word, len(surfaces))
        counted = zip(self.word_of_writing().tolist(), surfaces, times.tolist(), inside.tolist(), strict=True)
        return {
            (self.words[word], surface): (count, int(inside))
            for word, surface, count, inside in counted
            if count and is_word[word]
        }

    def word_of_writing(self) -> Ints:
        """(writings,) the word of each writing, as a place in `words`; 0 for a writing that no token has."""
        assert self.writing is not None
        words = np.zeros(len(self.writing.surfaces), np.int32)
        words[self.writing.ids] = self.ids
        return words

    def _of_tokens(self, keep: Bools, counts: Ints) -> TokenArrays:
        writing = None if self.writing is None else self.writing.select(keep)
        return TokenArrays(self.words, self.ids[keep], self.starts[keep], self.ends[keep], counts, writing)


def tokenize_lines(tokenizer: Tokenizer, lines: Sequence[str], writing: bool = False) -> TokenArrays:
    """The same tokens as tokenizer(line) for each line; with `writing`, also how they are written there."""
    if tokenizer.kind == "moses":  # needs the whole line: what is around a chunk decides how it is split
        return from_tokens([tokenizer(line) for line in lines], lines if writing else None)
    chunks, chunk_starts, per_line = _chunks(tokenizer.protector, lines)
    different, chunk = unique_numbers(chunks)

    # The pieces of all different chunks, one chunk after the other: which of the different pieces, and its characters.
    split = tokenizer.pieces(different)
    piece_counts = np.fromiter(map(len, split), np.int64, len(split))
    pieces, piece = unique_numbers(list(chain.from_iterable(split)))
    surfaces = pieces if tokenizer.protector is None else list(map(protected_text, pieces))
    length = np.fromiter(map(len, surfaces), np.int64, len(surfaces))[piece]
    offset = sums_within_groups(length, piece_counts)  # characters from the chunk's start

    # For each token: its place in that list of pieces.
    place = ranges(running_sums(piece_counts)[chunk], piece_counts[chunk])
    start = np.repeat(chunk_starts, piece_counts[chunk]) + offset[place]
    starts, ends = start.astype(np.int32), (start + length[place]).astype(np.int32)
    counts = np.diff(running_sums(piece_counts[chunk])[running_sums(per_line)]).astype(np.int32)
    words, word = unique_numbers(tokenizer.words_of_pieces(pieces))
    tokens = TokenArrays(words, word[piece[place]], starts, ends, counts)
    if not writing:
        return tokens
    return tokens._replace(writing=Writing(surfaces, piece[place], spaces_before(lines, starts, ends, counts)))


def _chunks(protector: Protector | None, lines: Sequence[str]) -> tuple[list[str], Longs, Longs]:
    """The chunks of all lines, where each begins in its line, and how many each line has.

    All lines are one text here: a line's end is white space, which ends a chunk.
    """
    text = "\n".join(lines)
    line_starts = running_sums(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)[:-1]
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    is_between = WHITE_SPACE[np.minimum(codes, len(WHITE_SPACE) - 1)]  # neither in a chunk nor in a span
    chunks: list[str] = []
    span_starts: list[int] = []
    end = 0
    for number, spans in () if protector is None else protector.in_lines(lines):
        line_start = int(line_starts[number])
        for span, word in zip(spans, protected_words(lines[number], spans), strict=True):
            start = line_start + span.start
            span_starts.append(start)
            chunks += text[end:start].split()
            chunks.append(word)
            end = line_start + span.end
            is_between[start:end] = True
    chunks += text[end:].split()
    is_start = ~is_between
    is_start[1:] &= is_between[:-1]
    is_start[span_starts] = True
    starts = np.flatnonzero(is_start)
    per_line = np.diff(np.searchsorted(starts, np.append(line_starts, len(text))))
    return chunks, starts - np.repeat(line_starts, per_line), per_line


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
    pairs, pair = unique_numbers(list(zip((words[word] for word in ids.tolist()), raw, strict=True)))
    writing = Writing([surface for _, surface in pairs], pair, spaces_before(texts, starts, ends, counts))
    return TokenArrays(words, ids, starts, ends, counts, writing)


def unique_numbers(values: Sequence[Value]) -> tuple[list[Value], Ints]:
    """The different values in the order of their first occurrence, and for each value its place among them."""
    numbers: dict[Value, int] = defaultdict(count().__next__)
    places = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
    return list(numbers), places


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
