"""The bilingual word dictionary (paper §5.3): load it, look words up both ways, decide how a copied word is written.

`Senses` decides it once for each source word, so that training and generation agree: a pointer at a source word is
taught for the very word that copying it writes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from pointing.errors import Misuse
from pointing.system.files import read_text, write_text
from pointing.text.vocabulary import Vocabulary

MIN_PROBABILITY = 0.15  # of a translation that is written instead of a copy; chosen on dev text (docs/data.md)


class Dictionary:
    """Word pairs (source, target), many to many. Each has a weight: p(target | source), or 1.0 if the file has none."""

    def __init__(self, pairs: Iterable[tuple[str, str, float]] = ()) -> None:
        """A pair given twice keeps its larger weight. Among equal weights the pair given first comes first."""
        self._weights: dict[tuple[str, str], float] = {}
        for source, target, weight in pairs:
            for word in (source, target):
                if not is_word(word):
                    raise Misuse(f"a dictionary cannot hold {word!r}: words have no tabs, line ends or outer spaces")
            self._weights[source, target] = max(weight, self._weights.get((source, target), 0.0))
        self._translations = _best_first(self.pairs())
        self._senses = _best_first((target, source, weight) for source, target, weight in self.pairs())

    @classmethod
    def load(cls, path: str | Path) -> Dictionary:
        """Read lines of `source TAB target [TAB probability]`, or of OpenNMT's `source|||target`; plain or .gz.

        A third column that is not a number, such as a part of speech, is ignored. So are further columns and blank
        lines.
        """
        dictionary = cls(_read_pairs(path))
        if not len(dictionary):
            raise Misuse("this dictionary is empty: expected lines of source TAB target", path)
        return dictionary

    def save(self, path: str | Path) -> None:
        """Write lines of `source TAB target TAB probability`; `load` reads the same dictionary back, to every digit."""
        if not len(self):
            raise Misuse("there is no word pair to save: give more text, or lower the thresholds", path)
        write_text(path, "".join(f"{source}\t{target}\t{weight!r}\n" for source, target, weight in self.pairs()))

    def senses(self, target_word: str) -> Sequence[str]:
        """The source words that the target word may translate, best first."""
        return self._senses.get(target_word, ())

    def translations(self, source_word: str) -> Sequence[str]:
        """The target words that may translate the source word, best first."""
        return self._translations.get(source_word, ())

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """All (source, target, weight), in the order in which they were given."""
        return ((source, target, weight) for (source, target), weight in self._weights.items())

    def __len__(self) -> int:
        return len(self._weights)

    def normalized(self, source: Callable[[str], str], target: Callable[[str], str]) -> Dictionary:
        """The pairs with each side written as the corpus writes its words; pairs with an empty side are dropped."""
        pairs = ((source(word), target(translation), weight) for word, translation, weight in self.pairs())
        return Dictionary(pair for pair in pairs if pair[0] and pair[1])


class Senses(dict[str, str | None]):
    """The translation that copying a source word writes, or None if the word is copied as it is.

    Copy and translation compete by probability: the pair of a word with itself stands for the copy. The most probable
    pair decides, if it reaches MIN_PROBABILITY. Pairs of equal weight, as in files without probabilities, are ordered
    by the target vocabulary: words outside the shortlist first, since only these are taught as pointers, then the more
    frequent word.
    """

    def __init__(self, dictionary: Dictionary, target: Vocabulary) -> None:
        candidates: defaultdict[str, list[tuple[float, bool, int, str]]] = defaultdict(list)
        for word, translation, weight in dictionary.pairs():
            candidates[word].append((-weight, translation in target, target[translation], translation))
        for word, ranked in candidates.items():
            weight, _, _, translation = min(ranked, key=itemgetter(0, 1, 2))  # the first of equals
            self[word] = translation if translation != word and -weight >= MIN_PROBABILITY else None

    def __missing__(self, word: str) -> None:
        return None


def _best_first(pairs: Iterable[tuple[str, str, float]]) -> dict[str, tuple[str, ...]]:
    """For each first word of a pair its second words, by falling weight."""
    candidates: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for first, second, weight in pairs:
        candidates[first].append((second, -weight))
    return {word: tuple(other for other, _ in sorted(ranked, key=itemgetter(1))) for word, ranked in candidates.items()}


def is_word(text: str) -> bool:
    """True if a line of a dictionary file can hold the text as one word; `load` strips whitespace around words."""
    return bool(text) and text == text.strip() and not re.search(r"[\t\n]", text)


def _read_pairs(path: str | Path) -> Iterator[tuple[str, str, float]]:
    for number, line in read_text(path):
        if not line.strip():
            continue
        columns = line.split("\t" if "\t" in line else "|||")
        if len(columns) < 2:
            raise Misuse("no tab: expected source TAB target, or source|||target", path, number)
        if not columns[0] or not columns[1]:
            raise Misuse(f"the {'target' if columns[0] else 'source'} word is missing", path, number)
        source, target, *more = (column.strip() for column in columns)
        weight = _finite_number(more[0]) if more else None
        if weight is not None and not 0 <= weight <= 1:
            raise Misuse(f"{more[0]} is not a probability, which lies between 0 and 1", path, number)
        if source and target:  # exports of Wiktionary have pairs with a blank side
            yield source, target, 1.0 if weight is None else weight


def _finite_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None  # `inf` may mean infinitive
