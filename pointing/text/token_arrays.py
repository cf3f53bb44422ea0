"""The tokens of many lines at once, as arrays: each different chunk of text is tokenised once, wherever it occurs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pointing.text.forms import spaces_before
from pointing.text.protected import Protector, is_protected, protected_text, protected_words
from pointing.text.tokenizer import Tokenizer, Tokens

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Value = TypeVar("Value", bound=Hashable)
NOWHERE = -1  # the position of what stands nowhere
WHITE_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # of code points; there is none behind U+3000


class Writing(NamedTuple):
    """How tokens are written in their raw lines."""

    surfaces: list[str]  # each is a writing of one word; another word may look the same
    ids: Ints  # (tokens,) each token's place in `surfaces`
    spaces: Ints  # (tokens,) what stands before each token (forms.SPACES)

    def select(self, keep: Bools) -> Writing:
        """Only the tokens for which `keep` is True."""
        return Writing(self.surfaces, self.ids[keep], self.spaces[keep])


class WritingCounts(NamedTuple):
    """How often words are written in which way."""

    pairs: list[str]  # different ones: a word, a tab, and its writing
    counts: Ints  # (2, pairs): in all, and after another word


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
            return WritingCounts([], np.zeros((2, 0), np.int32))
        surfaces, ids, _ = self.writing
        is_word = np.bincount(self.ids, minlength=len(self.words)) > 0
        is_word[is_word] = [_is_word(self.words[place]) for place in np.flatnonzero(is_word).tolist()]
        after_word = np.append(False, is_word[self.ids[:-1]])[: len(self.ids)] & (self.positions() > 0)
        counts = np.stack([np.bincount(ids[some], minlength=len(surfaces)) for some in (slice(None), after_word)])
        word = self.word_of_writing()
        kept = np.flatnonzero((counts[0] > 0) & is_word[word])
        pairs = [
            f"{self.words[place]}\t{surfaces[number]}"
            for number, place in zip(kept.tolist(), word[kept].tolist(), strict=True)
        ]
        return WritingCounts(pairs, counts[:, kept].astype(np.int32))

    def word_of_writing(self) -> Ints:
        """(writings,) the word of each writing, as a place in `words`; 0 for a writing that no token has."""
        assert self.writing is not None
        words = np.zeros(len(self.writing.surfaces), np.int32)
        words[self.writing.ids] = self.ids
        return words

    def _of_tokens(self, keep: Bools, counts: Ints) -> TokenArrays:
        writing = None if self.writing is None else self.writing.select(keep)
        return TokenArrays(self.words, self.ids[keep], self.starts[keep], self.ends[keep], counts, writing)


def _is_word(word: str) -> bool:
    """True for a word with a letter or digit that is no protected span."""
    return any(map(str.isalnum, word)) and not is_protected(word)


def tokenize_lines(tokenizer: Tokenizer, lines: Sequence[str], writing: bool = False) -> TokenArrays:
    """The same tokens as tokenizer(line) for each line; with `writing`, also how they are written there."""
    if tokenizer.kind == "moses":  # needs the whole line: what is around a chunk decides how it is split
        return from_tokens([tokenizer(line) for line in lines], lines if writing else None)
    text = _Text.of(lines)
    if tokenizer.protector is None:
        pieces = _cut_into_pieces(tokenizer, text)
        surfaces = pieces.words
    else:
        spans = _Spans.of(tokenizer.protector, lines)
        pieces = _with_spans(_cut_into_pieces(tokenizer, text.without(spans)), spans, text)
        surfaces = list(map(protected_text, pieces.words))
    words, word = unique_numbers(tokenizer.words_of_pieces(pieces.words))
    tokens = pieces._replace(words=words, ids=word[pieces.ids])
    if not writing:
        return tokens
    spaces = spaces_before(lines, tokens.starts, tokens.ends, tokens.counts)
    return tokens._replace(writing=Writing(surfaces, pieces.ids, spaces))


class _Spans(NamedTuple):
    """The protected spans of many lines, in their order."""

    words: list[str]
    lines: Longs  # (spans,) the number of each one's line
    starts: Longs  # (spans,) in characters of its line
    ends: Longs

    @classmethod
    def of(cls, protector: Protector, lines: Sequence[str]) -> _Spans:
        spans = protector.in_lines(lines)
        numbers, starts, ends = (np.array([span[column] for span in spans], np.int64) for column in range(3))
        return cls(protected_words(lines, spans), numbers, starts, ends)


class _Text(NamedTuple):
    """Many lines as one text, with a line feed between two of them."""

    codes: npt.NDArray[np.uint32]  # (characters,) code points
    line_starts: Longs  # (lines,)

    @classmethod
    def of(cls, lines: Sequence[str]) -> _Text:
        codes = np.frombuffer("\n".join(lines).encode("utf-32-le", "surrogatepass"), np.uint32)
        return cls(codes, running_sums(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)[:-1])

    def without(self, spans: _Spans) -> _Text:
        """The text with spaces in the place of the spans."""
        codes = self.codes.copy()
        codes[ranges(self.line_starts[spans.lines] + spans.starts, spans.ends - spans.starts)] = ord(" ")
        return _Text(codes, self.line_starts)

    def chunks(self) -> tuple[list[str], Longs, Longs]:
        """The texts between white space, where each begins in its line, and how many each line has."""
        is_space = WHITE_SPACE[np.minimum(self.codes, len(WHITE_SPACE) - 1)]
        starts = np.flatnonzero(~is_space & np.append(True, is_space[:-1])[: len(is_space)])
        per_line = np.diff(np.searchsorted(starts, np.append(self.line_starts, len(self.codes))))
        chunks = self.codes.tobytes().decode("utf-32-le", "surrogatepass").split()
        return chunks, starts - np.repeat(self.line_starts, per_line), per_line


def _cut_into_pieces(tokenizer: Tokenizer, text: _Text) -> TokenArrays:
    """The tokens of a text without protected spans, as they are written in it."""
    chunks, chunk_starts, per_line = text.chunks()
    different, chunk = unique_numbers(chunks)

    # The pieces of all different chunks, one chunk after the other, with their lengths in characters.
    split = tokenizer.pieces(different)
    piece_counts = np.fromiter(map(len, split), np.int64, len(split))
    pieces, piece = unique_numbers(list(chain.from_iterable(split)))
    length = np.fromiter(map(len, pieces), np.int64, len(pieces))[piece]
    offset = sums_within_groups(length, piece_counts)  # characters from the chunk's start

    # For each token: its place in that list of pieces.
    place = ranges(running_sums(piece_counts)[chunk], piece_counts[chunk])
    start = np.repeat(chunk_starts, piece_counts[chunk]) + offset[place]
    starts, ends = start.astype(np.int32), (start + length[place]).astype(np.int32)
    counts = np.diff(running_sums(piece_counts[chunk])[running_sums(per_line)]).astype(np.int32)
    return TokenArrays(pieces, piece[place], starts, ends, counts)


def _with_spans(tokens: TokenArrays, spans: _Spans, text: _Text) -> TokenArrays:
    """The tokens, and among them the protected spans, each as one token in its place."""
    words, span = unique_numbers(spans.words)
    token_starts = np.repeat(text.line_starts, tokens.counts) + tokens.starts
    place = np.searchsorted(token_starts, text.line_starts[spans.lines] + spans.starts)
    return TokenArrays(
        tokens.words + words,
        np.insert(tokens.ids, place, len(tokens.words) + span),
        np.insert(tokens.starts, place, spans.starts),
        np.insert(tokens.ends, place, spans.ends),
        tokens.counts + np.bincount(spans.lines, minlength=len(tokens.counts)).astype(np.int32),
    )


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
    numbers: dict[Value, int] = defaultdict(count().__next__)  # a new value gets the next number
    places = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
    return list(numbers), places


def running_sums(value: npt.NDArray[Any]) -> Longs:
    """0, then the sum of the first value, of the first two, …: one number more than there are values."""
    return np.concatenate([[0], np.cumsum(value, dtype=np.int64)])


def sums_of_groups(value: npt.NDArray[Any], group: Ints) -> Longs:
    """The sum of each group's values; `group` has the sizes of the groups."""
    return np.diff(running_sums(value)[running_sums(group)])


def sums_within_groups(value: Longs, group: Longs) -> Longs:
    """For each value the sum of the values before it in its own group; `group` has the sizes of the groups."""
    before = running_sums(value)
    return before[:-1] - np.repeat(before[running_sums(group)[:-1]], group)


def ranges(first: Longs, count: Longs) -> Longs:
    """The numbers first, first + 1, …, first + count - 1, for each pair of first and count, one after the other."""
    return np.repeat(first, count) + sums_within_groups(np.ones(count.sum(), np.int64), count)
