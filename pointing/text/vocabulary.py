"""Shortlist words, or pieces, ↔ ids. The end of sentence, the unknown word and placeholders are ids, never words.

So a text may contain `</s>` or `<unk>` like any other word: it is on its own line of the file, with its own id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointing.errors import Misuse, shown
from pointing.system.border import read_text_file
from pointing.system.files import write_text
from pointing.text.entities import placeholder
from pointing.text.protected import is_protected, kind_word
from pointing.text.subwords import Merges, learn_merges

EOS, UNK = 0, 1
MERGES = ".merges"
LONGEST_COUNT = 18  # digits
MOST_PLACEHOLDERS = 100_000
FIRST = 2  # placeholders come next, then words, the most frequent first


class Vocabulary:
    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int],
        placeholders: int = 0,
        merges: Merges | None = None,
        writings: Mapping[str, str] | None = None,
    ) -> None:
        """`words` from the most frequent down, each with its count; ids FIRST … are `placeholders` for entities.

        With `merges` they are pieces, into which these cut words. `writings` are how people usually write the words
        that they do not write as they are here: `daten`, `Daten`.
        """
        self.words, self.counts, self.placeholders, self.merges = list(words), list(counts), placeholders, merges
        self.writings = {word: writings[word] for word in self.words if writings and word in writings}
        if placeholders > MOST_PLACEHOLDERS:
            raise Misuse(f"a vocabulary has at most {MOST_PLACEHOLDERS:,} placeholders, not {shown(placeholders)}")
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
        """Their ids. All protected spans of a kind have one id, if the vocabulary has their kind."""
        names = (kind_word(word) if is_protected(word) else word for word in words)
        return np.fromiter((self._ids.get(name, UNK) for name in names), dtype=np.int32)

    def word(self, number: int) -> str | None:
        """The word of an id; None for what is not a word."""
        rank = number - FIRST - self.placeholders
        return self.words[rank] if rank >= 0 else None

    def writing(self, word: str) -> str:
        """How people usually write a word."""
        return self.writings.get(word, word)

    def written_as(self, writings: Mapping[str, str]) -> Vocabulary:
        """The same vocabulary, with how people usually write the words that they do not write as they are here."""
        return Vocabulary(self.words, self.counts, self.placeholders, self.merges, writings)

    def save(self, path: Path) -> None:
        """A word a line with its count, and its usual writing if that differs. Ids follow the lines.

        Placeholders come first. Merges are in a file beside it.
        """
        if self.merges is not None:
            self.merges.save(path.with_suffix(MERGES))
        listed = [(placeholder(number), 0) for number in range(1, self.placeholders + 1)]
        listed += zip(self.words, self.counts, strict=True)
        columns = (
            [word, str(count), *([self.writings[word]] if word in self.writings else [])] for word, count in listed
        )
        write_text(path, "".join("\t".join(line) + "\n" for line in columns))

    @classmethod
    def load(cls, path: Path, unlisted_placeholders: int = 0) -> Vocabulary:
        """What `save` wrote. Files of earlier versions do not list their placeholders: the caller says how many."""
        whole = read_text_file(path, "a vocabulary")  # not by read_text: a first word may begin with U+FEFF
        words, counts, writings, placeholders = [], [], {}, 0
        for line, text in enumerate(whole.removesuffix("\n").split("\n") if whole else [], 1):
            word, tab, rest = text.partition("\t")
            count, tab_again, writing = rest.partition("\t")
            is_count = count.isascii() and count.isdecimal() and len(count) <= LONGEST_COUNT
            if not word or not tab or not is_count or (tab_again and not writing):
                raise Misuse("not a word, a tab and its count", path, line)
            if word == placeholder(line) and placeholders == line - 1:
                placeholders = line
                continue
            words.append(word)
            counts.append(int(count))
            if writing:
                writings[word] = writing
        if len(set(words)) < len(words):
            raise Misuse("the same word stands on two lines", path)
        merges = path.with_suffix(MERGES)
        pieces = Merges.load(merges) if merges.exists() else None
        return cls(words, counts, placeholders or unlisted_placeholders, pieces, writings)

    @classmethod
    def build(
        cls, counts: Mapping[str, int], size: int | None, min_count: int, placeholders: int = 0, kinds: bool = False
    ) -> Vocabulary:
        """The most frequent words, ties in the alphabet's order: `size` ids, EOS and UNK counted, placeholders not.

        Protected spans are left out, since they are copied. With `kinds`, for the source side, each kind is a word.
        """
        frequent = {word: n for word, n in counts.items() if n >= min_count and not word.startswith(" ")}
        if kinds:
            frequent |= _counts_of_kinds(counts)
        ranked = _ranked(frequent)[: None if size is None else max(0, size - FIRST)]
        return cls(ranked, [frequent[word] for word in ranked], placeholders)

    @classmethod
    def of_pieces(cls, counts: Mapping[str, int], size: int, min_count: int, kinds: bool = False) -> Vocabulary:
        """All pieces that merges of the counted words make: `size` ids, EOS and UNK counted; no protected spans.

        With `kinds` each kind of protected spans is a word.
        """
        words = {word: count for word, count in counts.items() if not is_protected(word)}
        of_kinds = _counts_of_kinds(counts) if kinds else {}
        merges, pieces = learn_merges(words, max(1, size - FIRST - len(of_kinds)), min_count)
        pieces |= of_kinds
        ranked = _ranked(pieces)
        return cls(ranked, [pieces[piece] for piece in ranked], merges=merges)


def _counts_of_kinds(counts: Mapping[str, int]) -> Counter[str]:
    """How often each kind of protected spans occurs."""
    of_kinds: Counter[str] = Counter()
    for word, count in counts.items():
        if is_protected(word):
            of_kinds[kind_word(word)] += count
    return of_kinds


def _ranked(counts: Mapping[str, int]) -> list[str]:
    """The words, the most frequent first; of equals in the alphabet's order."""
    return sorted(sorted(counts), key=counts.__getitem__, reverse=True)
