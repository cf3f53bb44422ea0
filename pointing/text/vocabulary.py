"""Shortlist words, or pieces, ↔ ids. The end of sentence, the unknown word and placeholders are ids, never words.

So a text may contain `</s>` or `<unk>` like any other word: it is on its own line of the file, with its own id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointing.errors import Misuse
from pointing.system.files import write_text
from pointing.text.entities import placeholder
from pointing.text.subwords import Merges, learn_merges

EOS, UNK = 0, 1
MERGES = ".merges"
FIRST = 2  # placeholders come next, then words, the most frequent first


class Vocabulary:
    def __init__(
        self, words: Sequence[str], counts: Sequence[int], placeholders: int = 0, merges: Merges | None = None
    ) -> None:
        """`words` from the most frequent down, each with its count; ids FIRST … are `placeholders` for entities.

        With `merges` they are pieces, into which these cut words.
        """
        self.words, self.counts, self.placeholders, self.merges = list(words), list(counts), placeholders, merges
        start = FIRST + placeholders
        self._ids = {word: start + rank for rank, word in enumerate(self.words)}
        self._ids |= {placeholder(number): FIRST + number - 1 for number in range(1, placeholders + 1)}

    def __len__(self) -> int:
        return FIRST + self.placeholders + len(self.words)

    def __getitem__(self, word: str) -> int:
        return self._ids.get(word, UNK)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def ids(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        return np.fromiter((self._ids.get(word, UNK) for word in words), dtype=np.int32)

    def word(self, number: int) -> str | None:
        """The word of an id; None for what is not a word."""
        rank = number - FIRST - self.placeholders
        return self.words[rank] if rank >= 0 else None

    def save(self, path: Path) -> None:
        """A word a line with its count, placeholders first: ids follow the lines. Merges are in a file beside it."""
        if self.merges is not None:
            self.merges.save(path.with_suffix(MERGES))
        listed = [(placeholder(number), 0) for number in range(1, self.placeholders + 1)]
        listed += zip(self.words, self.counts, strict=True)
        write_text(path, "".join(f"{word}\t{count}\n" for word, count in listed))

    @classmethod
    def load(cls, path: Path, unlisted_placeholders: int = 0) -> Vocabulary:
        """What `save` wrote. Files of earlier versions do not list their placeholders: the caller says how many."""
        try:
            whole = path.read_bytes().decode("utf-8")  # not by read_text: a first word may begin with U+FEFF
        except (OSError, UnicodeDecodeError) as error:
            raise Misuse(f"this vocabulary cannot be read ({error})", path) from None
        words, counts, placeholders = [], [], 0
        for line, text in enumerate(whole.removesuffix("\n").split("\n") if whole else [], 1):
            word, tab, count = text.partition("\t")
            if not word or not tab or not count.isdecimal():
                raise Misuse("not a word, a tab and its count", path, line)
            if word == placeholder(line) and placeholders == line - 1:
                placeholders = line
                continue
            words.append(word)
            counts.append(int(count))
        if len(set(words)) < len(words):
            raise Misuse("the same word stands on two lines", path)
        merges = path.with_suffix(MERGES)
        pieces = Merges.load(merges) if merges.exists() else None
        return cls(words, counts, placeholders or unlisted_placeholders, pieces)

    @classmethod
    def build(cls, counts: Mapping[str, int], size: int | None, min_count: int, placeholders: int = 0) -> Vocabulary:
        """The most frequent words, ties in the alphabet's order: `size` ids, EOS and UNK counted, placeholders not."""
        frequent = {word: n for word, n in counts.items() if n >= min_count and not word.startswith(" ")}
        ranked = _ranked(frequent)[: None if size is None else max(0, size - FIRST)]
        return cls(ranked, [counts[word] for word in ranked], placeholders)

    @classmethod
    def of_pieces(cls, counts: Mapping[str, int], size: int, min_count: int) -> Vocabulary:
        """All pieces that merges of the counted words make: `size` ids, EOS and UNK counted."""
        merges, pieces = learn_merges(counts, size - FIRST, min_count)
        ranked = _ranked(pieces)
        return cls(ranked, [pieces[piece] for piece in ranked], merges=merges)


def _ranked(counts: Mapping[str, int]) -> list[str]:
    """The words, the most frequent first; of equals in the alphabet's order."""
    return sorted(counts, key=lambda word: (-counts[word], word))
