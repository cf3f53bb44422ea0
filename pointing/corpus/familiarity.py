"""How familiar a source word is: how often the training text has it, and how often it was copied there.

A word that the training text has never had may be a name. One that it has had ten times, and that was translated each
time, is none, however seldom it is. The encoder reads pieces and cannot tell the two apart; so it is told, by one of
FAMILIARITIES numbers for each word.

In training, a pair does not count for its own words: else each of them would have been seen before, and the model
would never learn what to do with one that has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointing.errors import Misuse
from pointing.system.border import read_text_file
from pointing.system.files import write_text
from pointing.text.protected import is_protected
from pointing.text.token_arrays import Ints, TokenArrays

Longs = npt.NDArray[np.int64]
SEEN = (1, 3, 10)  # occurrences at which a word is seen, known, well known
MIXED, COPIED = 0.05, 0.5  # shares of its occurrences that were copied, from which on a word is so
NEVER_SEEN = 0
FAMILIARITIES = 1 + 3 * len(SEEN)
LONGEST_COUNT = 12  # digits


@dataclass(frozen=True)
class Familiar:
    """The words of the training text's source, with their occurrences, and those of copies of them."""

    counts: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, source: Mapping[str, int], copied: Mapping[str, int]) -> Familiar:
        """From occurrences in the source, and in the targets of pairs whose source has the word; no protected spans."""
        words = (word for word in source if not is_protected(word))
        return cls({word: (source[word], copied.get(word, 0)) for word in words})

    def with_text(self, other: Familiar) -> Familiar:
        """Of both training texts together."""
        words = {**self.counts, **other.counts}
        pairs = ((self.counts.get(word, (0, 0)), other.counts.get(word, (0, 0))) for word in words)
        return Familiar({word: (a + c, b + d) for word, ((a, b), (c, d)) in zip(words, pairs, strict=True)})

    def numbers(self, source: TokenArrays, target: TokenArrays | None = None) -> Ints:
        """(N,) how familiar each source token is. `target`, with the same word list, is given for training pairs."""
        known = np.array([self.counts.get(word, (0, 0)) for word in source.words], np.int64).reshape(-1, 2)
        seen, copied = known[source.ids].T
        if target is not None:
            of_pair, of_target = _occurrences(source, target, len(source.words))
            seen, copied = seen - of_pair, copied - of_target
        share = copied / np.maximum(seen, 1)
        kept = np.digitize(share, (MIXED, COPIED))
        number = 1 + 3 * (np.digitize(seen, SEEN) - 1) + kept
        return np.where(seen < SEEN[0], NEVER_SEEN, number).astype(np.int32)

    def save(self, path: Path) -> None:
        """Writes lines of a word, its occurrences, and those of its copies, with tabs between them."""
        write_text(path, "".join(f"{word}\t{seen}\t{copied}\n" for word, (seen, copied) in self.counts.items()))

    @classmethod
    def load(cls, path: Path) -> Familiar:
        """What `save` wrote."""
        whole = read_text_file(path, "familiar words")
        counts = {}
        for line, text in enumerate(whole.removesuffix("\n").split("\n") if whole else [], 1):
            word, *numbers = text.split("\t")
            is_line = len(numbers) == 2 and all(n.isascii() and n.isdecimal() for n in numbers)
            if not word or word in counts or not is_line or max(map(len, numbers)) > LONGEST_COUNT:
                raise Misuse("not a new word with its two counts", path, line)
            counts[word] = int(numbers[0]), int(numbers[1])
        return cls(counts)


def _occurrences(source: TokenArrays, target: TokenArrays, words: int) -> tuple[Longs, Longs]:
    """How often each source token's word stands in its own source line, and in the target line beside it."""
    keys, of_targets = (
        np.repeat(np.arange(len(side.counts)), side.counts) * words + side.ids for side in (source, target)
    )
    different, place, in_source = np.unique(keys, return_inverse=True, return_counts=True)
    in_target = np.searchsorted(np.sort(of_targets), [different, different + 1])
    return in_source[place], (in_target[1] - in_target[0])[place]
