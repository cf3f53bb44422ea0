"""The bilingual word dictionary (paper §5.3): load it, look words up both ways.

In training a target word's senses are looked for in the source sentence; at test a copied source word becomes its best
translation.
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


class Dictionary:
    """Word pairs source <-> target, many to many, each with a weight (probability or 1.0)."""

    def __init__(self, pairs: Iterable[tuple[str, str, float]] = ()) -> None:
        """Of a pair given twice the larger weight counts; of equal weights the earlier pair is the better one."""
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
        """Lines of `source TAB target [TAB probability]`, or of OpenNMT's `source|||target`; plain or .gz.

        A third column that is no number, such as a part of speech, is ignored; so are more columns, and blank lines.
        """
        dictionary = cls(_read(path))
        if not len(dictionary):
            raise Misuse("this dictionary is empty: expected lines of source TAB target", path)
        return dictionary

    def save(self, path: str | Path) -> None:
        """`source TAB target TAB probability`, from which `load` makes the same dictionary, to the last digit."""
        if not len(self):
            raise Misuse("there is no word pair to save: give more text, or lower the thresholds", path)
        write_text(path, "".join(f"{source}\t{target}\t{weight!r}\n" for source, target, weight in self.pairs()))

    def senses(self, target_word: str) -> Sequence[str]:
        """The source words that it may stand for, best first."""
        return self._senses.get(target_word, ())

    def translations(self, source_word: str) -> Sequence[str]:
        """The target words that may stand for it, best first."""
        return self._translations.get(source_word, ())

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """(source, target, weight), in the order in which they were given."""
        return ((source, target, weight) for (source, target), weight in self._weights.items())

    def __len__(self) -> int:
        return len(self._weights)

    def normalized(self, source: Callable[[str], str], target: Callable[[str], str]) -> Dictionary:
        """The pairs with each side rewritten, as the corpus writes its words; an emptied word's pairs are dropped."""
        pairs = ((source(word), target(other), weight) for word, other, weight in self.pairs())
        return Dictionary(pair for pair in pairs if pair[0] and pair[1])


class Senses(dict[str, str | None]):
    """What a copied word becomes in the target language; None if it stays as it is.

    Training points only at words outside the shortlist (pointers.choose), so a sense from there comes first; then the
    likelier one, then the more frequent.
    """

    def __init__(self, dictionary: Dictionary, target: Vocabulary) -> None:
        super().__init__()
        found: dict[str, list[tuple[bool, float, int, str]]] = {}
        for word, other, weight in dictionary.pairs():
            found.setdefault(word, []).append((other in target, -weight, target[other], other))
        for word, senses in found.items():
            best = min(senses, key=lambda sense: sense[:3])[3]  # of equals the first
            self[word] = None if best == word else best

    def __missing__(self, word: str) -> None:
        return None


def _best_first(pairs: Iterable[tuple[str, str, float]]) -> dict[str, tuple[str, ...]]:
    found: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for word, other, weight in pairs:
        found[word].append((other, -weight))
    return {word: tuple(other for other, _ in sorted(others, key=itemgetter(1))) for word, others in found.items()}


def is_word(text: str) -> bool:
    """Whether a line of a dictionary file can hold it; around a word, `load` takes whitespace away."""
    return bool(text) and text == text.strip() and not re.search(r"[\t\n]", text)


def _read(path: str | Path) -> Iterator[tuple[str, str, float]]:
    for number, line in read_text(path):
        if not line.strip():
            continue
        columns = line.split("\t" if "\t" in line else "|||")
        if len(columns) < 2:
            raise Misuse("no tab: expected source TAB target, or source|||target", path, number)
        if not columns[0] or not columns[1]:
            raise Misuse(f"the {'target' if columns[0] else 'source'} word is missing", path, number)
        source, target, *more = (column.strip() for column in columns)
        weight = _number(more[0]) if more else None
        if weight is not None and not 0 <= weight <= 1:
            raise Misuse(f"{more[0]} is not a probability, which lies between 0 and 1", path, number)
        if source and target:  # exports of Wiktionary hold a blank here and there, which no word of a text can be
            yield source, target, 1.0 if weight is None else weight


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None  # `inf` may be an infinitive
