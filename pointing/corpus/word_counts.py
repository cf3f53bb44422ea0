"""How often each word of the training text occurs, and how often it is copied: what vocabularies are chosen by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pointing.text.protected import is_protected

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
