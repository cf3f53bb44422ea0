"""What BLEU and ROUGE do not show: whether words outside the shortlist arrive, copies are right, the switch is right.

Words are matched without regard to their order, and clipped as in BLEU: a word that the output has twice and the
reference once is right once. The words of source, reference and output usually have the form that the model reads
(lower-cased, digits folded, as its settings say): in another form a name that was copied from the start of a sentence
would not match the reference.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.significance import Floats, Measure, ratio
from pointing.generation.output import WordOrigin

BAND_STARTS = (0, 1, 10, 100, 1000)  # the lowest training frequency of each band; the last band has no upper end
RELIABILITY_BINS = 10


@dataclass(frozen=True)
class Example:
    """The words of a source, its reference and an output; with the origin of each output word if our model wrote it."""

    source: Sequence[str]
    reference: Sequence[str]
    output: Sequence[str]
    origins: Sequence[WordOrigin] | None = None

    def __post_init__(self) -> None:
        if self.origins is not None and len(self.origins) != len(self.output):
            raise Misuse(f"an output of {len(self.output)} words has {len(self.origins)} origins")


@dataclass(frozen=True)
class CopyScores:
    """In percent, except `invented` and `unknown`. None: the measure needs origins, which some example lacks."""

    recall: Measure  # share of the reference's words outside the shortlist that the output has
    precision: Measure  # share of the output's words outside the shortlist that the reference has
    right: Measure | None  # share of the copied words, translated ones included, that the reference has
    per_100: Measure | None  # number of copied words in 100 outputs
    share: Measure | None  # share of the output's words that are copied
    invented: Measure  # number of words that are neither in the shortlist, nor in the source, nor a translation of it
    unknown: Measure  # number of markers of an unknown word in the outputs
    kept_recall: Measure | None  # share of the reference's never seen words that the source has which the output has
    kept_precision: Measure | None  # share of the output's never seen words that the source has which the reference has
    bands: tuple[Band, ...]

    def measures(self) -> list[Measure]:
        """All measures that are not None."""
        of_copies = [measure for measure in (self.right, self.per_100, self.share) if measure is not None]
        kept = [measure for measure in (self.kept_recall, self.kept_precision) if measure is not None]
        bands = [band.recall for band in self.bands]
        return [self.recall, self.precision, *of_copies, self.invented, self.unknown, *kept, *bands]


class Band(NamedTuple):
    """The reference's words that the training text has from `low` to `high` times."""

    low: int
    high: int | None  # None: no upper end
    words: int  # number of such words in all references, repetitions included
    recall: Measure  # share of these words that the output has


def copy_scores(
    examples: Iterable[Example],
    shortlist: Container[str],
    *,
    frequency: Mapping[str, int] | None = None,
    translations: Callable[[str], Iterable[str]] | None = None,
    unk: str = "<unk>",
    bands: Sequence[int] = BAND_STARTS,
    read: Callable[[str], str] | None = None,
) -> CopyScores:
    """Scores of out-of-shortlist words and of copies.

    `shortlist` is the target vocabulary. `frequency` is the number of times that each word, in the shortlist or not,
    occurs in the target side of the training text; other words were never seen. Without it there are no bands.
    `translations` gives the target words of a source word (`Dictionary.translations`). `unk` marks an unknown word:
    in an output it is never right, and in a reference it is no word to be found. `read` gives the form of a word in
    which shortlist, frequencies and translations have it, if the examples have another: words are then matched as they
    are, but known or unknown, and invented or not, in the form that is read.
    """
    if list(bands) != sorted(set(bands)) or not bands or bands[0] != 0:
        raise Misuse(f"bands of frequency begin at 0 and go up, unlike {list(bands)}")
    examples = list(examples)
    if not examples:
        raise Misuse("there is nothing to score: no example")
    counter = _Counter(shortlist, frequency or {}, translations, unk, bands, read or str)
    counts = [counter.counts(example) for example in examples]
    columns = {name: np.array([row[name] for row in counts], np.float64) for name in counts[0]}
    by_band = np.array([counter.band_counts(example) for example in examples], np.float64)  # (examples, bands, 2)
    has_counts = frequency is not None
    have_origins = all(example.origins is not None for example in examples)
    size = f"|shortlist:{len(shortlist) if isinstance(shortlist, Sized) else 'given'}"

    def measure(name: str, numbers: Floats, of_sums: Callable[[Floats], Floats] = ratio, more: str = "") -> Measure:
        signature = f"{name.replace(' ', '-')}|nrefs:1|match:clipped|unk:{unk}{more}|version:{__version__}"
        return Measure(name, signature, numbers, of_sums)

    def share(name: str, part: str, whole: str, more: str = "") -> Measure:
        return measure(name, np.stack([columns[part], columns[whole]], 1), more=more)

    def total(name: str, column: str, more: str = "") -> Measure:
        return measure(name, columns[column][:, None], _total, more)

    def band(number: int) -> Band:
        low, high = bands[number], bands[number + 1] - 1 if number + 1 < len(bands) else None
        seen = f"{low}" if high == low else f"{low}–{high}" if high is not None else f"≥{low}"
        numbers = by_band[:, number]
        return Band(low, high, int(numbers[:, 1].sum()), measure(f"recall of words seen {seen} times", numbers))

    return CopyScores(
        recall=share("out-of-shortlist recall", "both_outside", "reference_outside", size),
        precision=share("out-of-shortlist precision", "both_outside", "output_outside", size),
        right=share("copies right", "right_copies", "copies") if have_origins else None,
        per_100=share("copied words per 100 outputs", "copies", "outputs") if have_origins else None,
        share=share("copied share of words", "copies", "words") if have_origins else None,
        invented=total("words invented", "invented", size),
        unknown=total("UNKs left", "unknown"),
        kept_recall=share("source's unseen words: recall", "both_kept", "reference_kept") if has_counts else None,
        kept_precision=share("source's unseen words: precision", "both_kept", "output_kept") if has_counts else None,
        bands=tuple(map(band, range(len(bands)))) if has_counts else (),
    )


class _Counter(NamedTuple):
    shortlist: Container[str]
    frequency: Mapping[str, int]
    translations: Callable[[str], Iterable[str]] | None
    unk: str
    bands: Sequence[int]
    read: Callable[[str], str]

    def counts(self, example: Example) -> dict[str, int]:
        """What an example adds to the scores; `outside` counts words outside the shortlist."""
        reference, output, both = self._bags(example)
        held = set(example.source)
        origins = zip(example.output, example.origins or (), strict=False)
        copies = Counter(word for word, origin in origins if origin != "shortlist")
        return {
            "both_outside": self._outside(both),
            "reference_outside": self._outside(reference),
            "output_outside": self._outside(output),
            "right_copies": (copies & reference).total(),
            "copies": copies.total(),
            "words": len(example.output),
            "both_kept": self._kept(both, held),
            "reference_kept": self._kept(reference, held),
            "output_kept": self._kept(output, held),
            "invented": self._invented(output, example.source),
            "unknown": len(example.output) - output.total(),
            "outputs": 1,
        }

    def band_counts(self, example: Example) -> list[list[int]]:
        """For each band the number of words that both output and reference have, and that the reference has."""
        reference, _, both = self._bags(example)
        counts = [[0, 0] for _ in self.bands]
        for word, count in reference.items():
            band = bisect_right(self.bands, self.frequency.get(self.read(word), 0)) - 1
            counts[band][0] += both[word]
            counts[band][1] += count
        return counts

    def _bags(self, example: Example) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """The words of the reference, of the output, and in both, without the marker of unknown words."""
        reference, output = (
            Counter(w for w in words if w != self.unk) for words in (example.reference, example.output)
        )
        return reference, output, reference & output

    def _outside(self, words: Counter[str]) -> int:
        return sum(count for word, count in words.items() if not self._is_known(word))

    def _kept(self, words: Counter[str], held: Container[str]) -> int:
        """How many words the training text never has and the source holds."""
        return sum(count for word, count in words.items() if word in held and not self.frequency.get(self.read(word)))

    def _is_known(self, word: str) -> bool:
        return self.read(word) in self.shortlist

    def _invented(self, output: Counter[str], source: Sequence[str]) -> int:
        """Number of the output's words that neither the shortlist nor the source, translated or not, can explain."""
        unknown = [word for word in output if not self._is_known(word)]
        if not unknown:
            return 0
        explained = set(map(self.read, source))
        if self.translations is not None:
            explained.update(chain.from_iterable(map(self.translations, tuple(explained))))
        return sum(output[word] for word in unknown if self.read(word) not in explained)


def _total(sums: Floats) -> Floats:
    return sums[..., 0]


def closest(output: Sequence[str], references: Sequence[Sequence[str]]) -> Sequence[str]:
    """The reference whose words match the output's best (highest F1); of equally good ones the first."""
    bag = Counter(output)
    return max(references, key=lambda words: 2 * (bag & Counter(words)).total() / max(1, len(output) + len(words)))


class Bin(NamedTuple):
    """A point of the reliability plot: the steps whose d_t lies between `low` and `high`."""

    low: float
    high: float
    steps: int
    mean: float | None  # mean of d_t over these steps; None if there are none
    observed: float | None  # share of these steps whose word was chosen from the shortlist


@dataclass(frozen=True)
class SwitchScores:
    """In percent. The switch points at a step if d_t < 1/2; z_t says what was right."""

    accuracy: Measure  # share of the steps at which the switch agrees with z_t
    precision: Measure  # share of the steps at which the switch points where z_t is a pointer
    recall: Measure  # share of the steps at which z_t is a pointer where the switch points
    calibration: Measure  # expected calibration error: |mean of d_t - share of shortlist| of a bin, averaged over steps
    bins: tuple[Bin, ...]

    def measures(self) -> list[Measure]:
        return [self.accuracy, self.precision, self.recall, self.calibration]


def switch_scores(
    p: npt.ArrayLike,
    z: npt.ArrayLike,
    example: npt.ArrayLike | None = None,
    examples: int | None = None,
    bins: int = RELIABILITY_BINS,
) -> SwitchScores:
    """Scores of p (steps,) = d_t, the probability of the shortlist, given z (steps,): True if the shortlist is right.

    `example` (steps,) is the number of the example, from 0, that each step belongs to: an example is resampled as a
    whole. By default each step is an example of its own. `examples` is the number of examples, if the last ones may
    have no steps. An interval of the calibration error is too high: a resample is calibrated worse than the whole.
    """
    d, shortlist = np.asarray(p, np.float64), np.asarray(z, np.bool_)
    of = np.arange(len(d)) if example is None else np.asarray(example, np.int64)
    if not d.shape == shortlist.shape == of.shape == (d.size,):
        raise Misuse(
            f"a switch has one p, z and example a step, not {d.shape}, {shortlist.shape} and {of.shape} of them"
        )
    if not ((d >= 0) & (d <= 1)).all() or bins < 1 or (of < 0).any():
        raise Misuse("a switch has probabilities between 0 and 1, at least one bin, and examples that count from 0")
    points, every = d < 0.5, np.ones(len(d))
    bin_of = np.minimum((d * bins).astype(np.int64), bins - 1)  # 1 belongs to the last bin
    examples = int(of.max(initial=-1)) + 1 if examples is None else examples

    def add(value: npt.NDArray[Any]) -> Floats:
        """Sums over the steps of each example: (steps,) → (examples,)"""
        return np.bincount(of, value, examples).astype(np.float64)

    def add_by_bin(value: npt.NDArray[Any]) -> Floats:
        """Sums over the steps of each example and bin: (steps,) → (examples, bins)"""
        return np.bincount(of * bins + bin_of, value, examples * bins).reshape(examples, bins).astype(np.float64)

    def measure(name: str, *columns: Floats, of_sums: Callable[[Floats], Floats] = ratio) -> Measure:
        binned = f"|bins:{bins}" if of_sums is _calibration else ""
        signature = f"{name.replace(' ', '-')}|points:d<0.5{binned}|version:{__version__}"
        return Measure(name, signature, np.column_stack(columns), of_sums)

    by_bin = [add_by_bin(value) for value in (every, d, shortlist)]
    sums = zip(*(value.sum(0).tolist() for value in by_bin), strict=True)  # of each bin: steps, d_t, z_t
    right = add(points & ~shortlist)
    return SwitchScores(
        measure("switch accuracy", add(points != shortlist), add(every)),
        measure("pointing precision", right, add(points)),
        measure("pointing recall", right, add(~shortlist)),
        measure("calibration error", *by_bin, of_sums=_calibration),
        tuple(
            Bin(
                k / bins, (k + 1) / bins, int(steps), d_sum / steps if steps else None, z_sum / steps if steps else None
            )
            for k, (steps, d_sum, z_sum) in enumerate(sums)
        ),
    )


def _calibration(sums: Floats) -> Floats:
    """Sum over bins of |Σ d_t - Σ z_t|, as a percentage of the steps: (…, 3 bins) → (…)."""
    steps, d_sums, z_sums = np.split(sums, 3, axis=-1)
    return ratio(np.stack([np.abs(d_sums - z_sums).sum(-1), steps.sum(-1)], -1))
