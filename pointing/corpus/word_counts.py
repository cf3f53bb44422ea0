"""How often each word of the training text occurs, and how often it is copied: what vocabularies are chosen by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.text.protected import is_protected

Ints = npt.NDArray[np.int32]
MOSTLY = 0.9  # of its occurrences in the target, so many stand in the source too: then a word is copied, as names are


class WordCounts(NamedTuple):
    """Occurrences of each word in the training text."""

    source: Mapping[str, int]
    target: Mapping[str, int]
    copied: Mapping[str, int]  # occurrences in the target in a pair whose source has the word too

    def copied_words(self) -> dict[str, int]:
        """The words that the target nearly always copies from the source, with their counts there.

        Names, numbers and words that both languages spell alike; no punctuation and no protected spans.
        """
        return {
            word: count
            for word, count in self.target.items()
            if self.copied.get(word, 0) >= MOSTLY * count and not is_protected(word) and any(map(str.isalnum, word))
        }

    def without_rare_copies(self, least: int) -> WordCounts:
        """The counts without copied words that the target has less than `least` times."""
        rare = {word for word, count in self.copied_words().items() if count < least}
        source, target = (
            {word: count for word, count in side.items() if word not in rare} for side in (self.source, self.target)
        )
        return WordCounts(source, target, self.copied)


class Tally:
    """Counts of texts, several for each text, that are added up from block to block."""

    def __init__(self, per_text: int) -> None:
        self.numbers: dict[str, int] = defaultdict(count().__next__)  # of the texts, in the order of first occurrence
        self.counts = np.zeros((per_text, 0), np.int64)

    def add(self, texts: Sequence[str], counts: Ints) -> None:
        """`counts` (per_text, texts) of different texts."""
        places = np.fromiter(map(self.numbers.__getitem__, texts), np.int64, len(texts))
        self.counts = np.pad(self.counts, ((0, 0), (0, len(self.numbers) - self.counts.shape[1])))
        self.counts[:, places] += counts

    def of_texts(self) -> list[dict[str, int]]:
        """Each kind of count by itself: text → count, without zeros."""
        return [
            {text: number for text, number in zip(self.numbers, row, strict=True) if number}
            for row in self.counts.tolist()
        ]
