"""What BLEU and ROUGE do not show: do the words outside the shortlist arrive, are copies right, is the switch?

Words are matched as bags, clipped as in BLEU: a word twice in the output and once in the reference is right once. All,
of source, reference and output, are in the form that the model sees (lower-cased, digits folded, as the settings say),
or else a copied name would not be found again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.significance import Floats, Measure, ratio

Origin = Literal["shortlist", "copied", "translated"]
BANDS = (0, 1, 10, 100, 1000)  # where bands of training frequency begin; the last has no end
BINS = 10  # of the reliability plot


@dataclass(frozen=True)
class Example:
    """One output beside its source and its reference; the origin of every word if a model of ours wrote it."""

    source: Sequence[str]
    reference: Sequence[str]
    output: Sequence[str]
    origins: Sequence[Origin] | None = None

    def __post_init__(self) -> None:
        if self.origins is not None and len(self.origins) != len(self.output):
            raise Misuse(f"an output of {len(self.output)} words has {len(self.origins)} origins")


@dataclass(frozen=True)
class CopyScores:
    """In percent, but for the two that count words. None where it takes origins and not every example has them."""

    recall: Measure  # of the reference's words outside the shortlist, those in the output
    precision: Measure  # of the output's words outside the shortlist, those in the reference
    right: Measure | None  # of the copied words, translated ones among them, those in the reference
    per_100: Measure | None  # copied words in 100 outputs
    share: Measure | None  # copied words among the output's words
    invented: Measure  # how many words are in neither the shortlist, the source nor its words' translations
    unknown: Measure  # how many markers of an unknown word the output still has
    bands: tuple[Band, ...]

    def measures(self) -> list[Measure]:
        """All that there are."""
        copies = [measure for measure in (self.right, self.per_100, self.share) if measure is not None]
        plain = [self.recall, self.precision, *copies, self.invented, self.unknown]
        return [*plain, *(band.recall for band in self.bands)]


class Band(NamedTuple):
    """The reference's words that were seen from `low` to `high` times in training."""

    low: int
    high: int | None  # None: or more often
    words: int  # in the references, repeated ones too
    recall: Measure  # of those words, the ones in the output


def copy_scores(
    examples: Iterable[Example],
    shortlist: Container[str],
    *,
    frequency: Mapping[str, int] | None = None,
    translations: Callable[[str], Iterable[str]] | None = None,
    unk: str = "<unk>",
    bands: Sequence[int] = BANDS,
) -> CopyScores:
    """Scores of out-of-shortlist words and copies.

    `shortlist` is the target vocabulary. `frequency` counts the target's words in training, of all and not just of the
    shortlist's; a word that it lacks was never seen, and without it there are no bands. `translations` is
    `Dictionary.translations`. `unk` in an output stands for an unknown word: it is never right, and on no side
    a word to be found.
    """
    if list(bands) != sorted(set(bands)) or not bands or bands[0] != 0:
        raise Misuse(f"bands of frequency begin at 0 and go up, unlike {list(bands)}")
    counts = _Counts(shortlist, frequency or {}, translations, unk, bands)
    examples = list(examples)
    if not examples:
        raise Misuse("there is nothing to score: no example")
    rows = np.array([counts.of(example) for example in examples], np.float64)
    kept = all(example.origins is not None for example in examples)

    size = f"|shortlist:{len(shortlist) if isinstance(shortlist, Sized) else 'given'}"

    def measure(name: str, *columns: int, of_sums: Callable[[Floats], Floats] = ratio, beside: str = "") -> Measure:
        signature = f"{name.replace(' ', '-')}|nrefs:1|match:clipped|unk:{unk}{beside}|version:{__version__}"
        return Measure(name, signature, rows[:, columns], of_sums)

    found: list[Band] = []
    for number, low in enumerate(bands if frequency is not None else ()):
        high = bands[number + 1] - 1 if number + 1 < len(bands) else None
        seen = f"{low}" if high == low else f"{low}–{high}" if high is not None else f"≥{low}"
        column = FIXED + 2 * number
        recall = measure(f"recall of words seen {seen} times", column, column + 1)
        found.append(Band(low, high, int(rows[:, column + 1].sum()), recall))
    return CopyScores(
        measure("out-of-shortlist recall", MATCHED, WANTED, beside=size),
        measure("out-of-shortlist precision", MATCHED, WRITTEN, beside=size),
        measure("copies right", RIGHT, COPIED) if kept else None,
        measure("copied words per 100 outputs", COPIED, ONE) if kept else None,
        measure("copied share of words", COPIED, WORDS) if kept else None,
        measure("words invented", INVENTED, of_sums=_total, beside=size),
        measure("UNKs left", UNKNOWN, of_sums=_total),
        tuple(found),
    )


# What an example adds: words outside the shortlist in both, in the reference, in the output; copies that are right, all
# copies; words of the output; words invented; UNKs; itself. Then for each band: words in both, words in the reference.
MATCHED, WANTED, WRITTEN, RIGHT, COPIED, WORDS, INVENTED, UNKNOWN, ONE = range(9)
FIXED = 9


class _Counts(NamedTuple):
    shortlist: Container[str]
    frequency: Mapping[str, int]
    translations: Callable[[str], Iterable[str]] | None
    unk: str
    bands: Sequence[int]

    def of(self, example: Example) -> list[int]:
        reference, output = Counter(example.reference), Counter(example.output)
        unknown = output.pop(self.unk, 0)
        reference.pop(self.unk, None)
        both = reference & output
        copied: Counter[str] = Counter()
        if example.origins is not None:
            origins = zip(example.output, example.origins, strict=True)
            copied.update(word for word, origin in origins if origin != "shortlist")
        outside = [self._outside(words) for words in (both, reference, output)]
        copies = [(copied & reference).total(), copied.total()]
        bands = [0] * (2 * len(self.bands))
        for word, count in reference.items():
            band = bisect_right(self.bands, self.frequency.get(word, 0)) - 1
            bands[2 * band] += both[word]
            bands[2 * band + 1] += count
        return [*outside, *copies, len(example.output), self._invented(output, example.source), unknown, 1, *bands]

    def _outside(self, words: Counter[str]) -> int:
        return sum(count for word, count in words.items() if word not in self.shortlist)

    def _invented(self, output: Counter[str], source: Sequence[str]) -> int:
        """How many of the output's words outside the shortlist nothing in the source accounts for."""
        left = {word for word in output if word not in self.shortlist}.difference(source)
        if left and self.translations is not None:
            for word in source:
                left.difference_update(self.translations(word))
        return sum(output[word] for word in left)


def _total(sums: Floats) -> Floats:
    return sums[..., 0]


def closest(output: Sequence[str], references: Sequence[Sequence[str]]) -> Sequence[str]:
    """Of several references the one with which the output shares the most of its words (F1); of equals the first."""
    bag = Counter(output)
    return max(references, key=lambda words: 2 * (bag & Counter(words)).total() / max(1, len(output) + len(words)))


class Bin(NamedTuple):
    """One point of the reliability plot: how often the shortlist was right where the switch said about `mean`."""

    low: float
    high: float
    steps: int
    mean: float | None  # of d_t; None without a step
    observed: float | None  # share of those steps whose choice was the shortlist


@dataclass(frozen=True)
class SwitchScores:
    """In percent. The switch points where d_t < 1/2."""

    accuracy: Measure
    precision: Measure  # of the steps that it points at, those where the observed choice was a pointer
    recall: Measure  # of the steps where the observed choice was a pointer, those that it points at
    calibration: Measure  # expected calibration error: |mean of d_t - share of shortlist|, averaged over steps
    bins: tuple[Bin, ...]

    def measures(self) -> list[Measure]:
        return [self.accuracy, self.precision, self.recall, self.calibration]


def switch_scores(
    p: npt.ArrayLike, z: npt.ArrayLike, example: npt.ArrayLike | None = None, bins: int = BINS
) -> SwitchScores:
    """Scores of p (steps,) = d_t, the probability of the shortlist, where z (steps,) is True if it was the choice.

    `example` (steps,) numbers the example of each step, from 0: what is resampled as one; by default each step is one.
    An interval of the calibration error is too high: a resample is calibrated worse than the whole.
    """
    d, shortlist = np.asarray(p, np.float64), np.asarray(z, np.bool_)
    of = np.arange(len(d)) if example is None else np.asarray(example, np.int64)
    if not d.shape == shortlist.shape == of.shape == (d.size,):
        raise Misuse(
            f"a switch has one p, z and example a step, not {d.shape}, {shortlist.shape} and {of.shape} of them"
        )
    if not ((d >= 0) & (d <= 1)).all() or bins < 1 or (of < 0).any():
        raise Misuse("a switch has probabilities between 0 and 1, at least one bin, and examples that count from 0")
    points = d < 0.5
    number = np.minimum((d * bins).astype(np.int64), bins - 1)  # the last bin has 1 in it
    examples = int(of.max(initial=-1)) + 1

    def add(value: npt.NDArray[Any]) -> Floats:
        """(examples,)"""
        return np.bincount(of, value, examples).astype(np.float64)

    def add_by_bin(value: npt.NDArray[Any]) -> Floats:
        """(examples, bins)"""
        return np.bincount(of * bins + number, value, examples * bins).reshape(examples, bins).astype(np.float64)

    def measure(name: str, *columns: Floats, of_sums: Callable[[Floats], Floats] = ratio) -> Measure:
        binned = f"|bins:{bins}" if of_sums is _calibration else ""
        signature = f"{name.replace(' ', '-')}|points:d<0.5{binned}|version:{__version__}"
        return Measure(name, signature, np.column_stack(columns), of_sums)

    steps, mean, observed = add_by_bin(np.ones(len(d))), add_by_bin(d), add_by_bin(shortlist)
    right = add(points & ~shortlist)
    return SwitchScores(
        measure("switch accuracy", add(points != shortlist), add(np.ones(len(d)))),
        measure("pointing precision", right, add(points)),
        measure("pointing recall", right, add(~shortlist)),
        measure("calibration error", steps, mean, observed, of_sums=_calibration),
        tuple(
            Bin(k / bins, (k + 1) / bins, int(n), m / n if n else None, o / n if n else None)
            for k, (n, m, o) in enumerate(
                zip(*(value.sum(0).tolist() for value in (steps, mean, observed)), strict=True)
            )
        ),
    )


def _calibration(sums: Floats) -> Floats:
    """Σ over bins of |Σ d_t - Σ z_t|, in percent of the steps: (…, 3 bins) → (…)."""
    steps, mean, observed = np.split(sums, 3, axis=-1)
    return ratio(np.stack([np.abs(mean - observed).sum(-1), steps.sum(-1)], -1))
