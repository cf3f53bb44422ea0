"""How far to trust a score: bootstrap intervals, and paired tests between two systems.

Every score is a `Measure`: a matrix (examples × numbers) and the function from the numbers' sums to the score. So a
resample is scored by adding rows up, never by looking at text again, and BLEU, ROUGE and copy metrics share the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.errors import Misuse

Floats = npt.NDArray[np.float64]

RESAMPLES, TRIALS = 1000, 10_000  # of the bootstrap and of approximate randomisation, as sacrebleu has them
SEED = 12345  # sacrebleu's, so that the same examples are drawn as by `sacrebleu --paired-bs`
CELLS = 1 << 22  # cells (resample, example) that are held at a time
ROUNDING = 1e-9  # what a sum in another order may differ by


@dataclass(frozen=True, eq=False)
class Measure:
    """A score over examples: what each example adds to it, and what the sums come to."""

    name: str
    signature: str  # how it was computed
    numbers: Floats  # (examples, K)
    of_sums: Callable[[Floats], Floats]  # (…, K) → (…), NaN where there is nothing to divide by

    def __post_init__(self) -> None:
        if not len(self.numbers):
            raise Misuse(f"there is nothing to score: {self.name} was given no example")

    @property
    def score(self) -> float | None:
        """None where it is not defined: the recall of words of which there are none."""
        value = float(self.of_sums(self.numbers.sum(0)))
        return None if math.isnan(value) else value


def ratio(sums: Floats) -> Floats:
    """(…, 2) → (…): the first sum in percent of the second."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = np.where(sums[..., 1] > 0, 100 * sums[..., 0] / sums[..., 1], np.nan)
    return share


class Interval(NamedTuple):
    """The middle `level` of the scores of the resamples: those of them where the score is defined."""

    low: float
    high: float
    level: float
    resamples: int
    seed: int


class Comparison(NamedTuple):
    """One system against a baseline on the same examples."""

    difference: float  # of the scores, system - baseline
    low: float  # the middle 95 % of the resamples' differences
    high: float
    better: float  # share of resamples in which the system scores higher (Koehn 2004); a tie is half a win
    p_value: float
    resamples: int
    seed: int


def bootstrap(measures: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED) -> list[Floats]:
    """For each measure its scores (resamples,); all measures, all systems, are scored on the same draws."""
    draws = _draws(_examples(measures), resamples, seed)
    numbers = np.hstack([measure.numbers for measure in measures])
    return _scores(measures, np.concatenate([drawn @ numbers for drawn in draws]))


def intervals(
    measures: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED, level: float = 0.95
) -> list[Interval | None]:
    """The percentile bootstrap's interval of each measure; None for a score that is not defined."""
    if not 0 < level < 1:
        raise Misuse(f"level is a share between 0 and 1, not {level}")
    found: list[Interval | None] = []
    for measure, scores in zip(measures, bootstrap(measures, resamples, seed), strict=True):
        if measure.score is None or np.isnan(scores).all():
            found.append(None)
        else:
            low, high = _middle(scores[~np.isnan(scores)], level)
            found.append(Interval(low, high, level, resamples, seed))
    return found


def paired_bootstrap(
    system: Sequence[Measure], baseline: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED
) -> list[Comparison | None]:
    """Paired bootstrap resampling (Koehn 2004) of each of the system's measures against the baseline's same one.

    The p-value is that of `sacrebleu --paired-bs`: the share of resamples whose absolute difference exceeds the mean of
    them by the difference observed. As the absolute value is taken before the mean, it is one-sided where one system
    leads: half of what `paired_randomisation` gives, which is two-sided throughout. None for a score not defined.

    A departure: sacrebleu asks for *more* than the difference observed, we for as much, so that a system against itself
    has p = 1 and not 0.001. Where scores do not tie, which is nearly always, the two agree.
    """
    _check_pairs(system, baseline)
    drawn = bootstrap([*system, *baseline], resamples, seed)
    ours_drawn, theirs_drawn = drawn[: len(system)], drawn[len(system) :]
    found: list[Comparison | None] = []
    for ours, theirs, scores, base in zip(system, baseline, ours_drawn, theirs_drawn, strict=True):
        differences = (scores - base)[~np.isnan(scores - base)]
        if ours.score is None or theirs.score is None or not len(differences):
            found.append(None)
            continue
        observed, sizes = ours.score - theirs.score, np.abs(differences)
        better = float(np.mean((differences > 0) + (differences == 0) / 2))
        p_value = _p_value(sizes - sizes.mean(), abs(observed))
        found.append(Comparison(observed, *_middle(differences, 0.95), better, p_value, resamples, seed))
    return found


def paired_randomisation(
    system: Sequence[Measure], baseline: Sequence[Measure], trials: int = TRIALS, seed: int = SEED
) -> list[float | None]:
    """Two-sided p-values of approximate randomisation: each example's outputs change sides with probability 1/2.

    As `sacrebleu --paired-ar`, with the same departure as above.
    """
    _check_pairs(system, baseline)
    examples = _examples([*system, *baseline])
    rng = np.random.default_rng(seed)
    ours, theirs = (np.hstack([measure.numbers for measure in side]) for side in (system, baseline))
    sums = []
    # Whole words of 32 random bits at a time, so that the blocks draw what one draw of them all would.
    for rows in _blocks(trials, max(32, CELLS // examples // 32 * 32)):
        stays = rng.integers(2, size=(rows, examples), dtype=np.bool_)
        sums.append(theirs.sum(0) + stays.astype(np.float64) @ (ours - theirs))
    left = np.concatenate(sums)  # (trials, all K)
    right = ours.sum(0) + theirs.sum(0) - left
    found: list[float | None] = []
    for one, other, a, b in zip(system, baseline, _scores(system, left), _scores(system, right), strict=True):
        sizes = np.abs(a - b)[~np.isnan(a - b)]
        if one.score is None or other.score is None:
            found.append(None)
        else:
            found.append(_p_value(sizes, abs(one.score - other.score)))
    return found


def _draws(examples: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample holds each example (some of the resamples, examples), a block at a time."""
    rng = np.random.default_rng(seed)
    for rows in _blocks(resamples, max(1, CELLS // examples)):
        drawn = rng.choice(examples, size=(rows, examples), replace=True)
        drawn += np.arange(rows)[:, None] * examples  # the cell to be counted up
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(rows, examples).astype(np.float64)


def _blocks(total: int, most: int) -> Iterator[int]:
    """Sizes that add up to the total."""
    if total < 1:
        raise Misuse(f"at least one resample must be drawn, not {total}")
    for start in range(0, total, most):
        yield min(most, total - start)


def _scores(measures: Sequence[Measure], sums: Floats) -> list[Floats]:
    """Of sums (resamples, all K) the scores (resamples,) of each measure."""
    ends = np.cumsum([measure.numbers.shape[1] for measure in measures])
    pieces = np.split(sums, ends[:-1], axis=1)
    return [measure.of_sums(piece) for measure, piece in zip(measures, pieces, strict=True)]


def _middle(scores: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _p_value(sizes: Floats, observed: float) -> float:
    """Share of sizes at least as large, the observed one counted among them so that it is never 0."""
    return float((np.sum(sizes >= observed - ROUNDING) + 1) / (len(sizes) + 1))


def _examples(measures: Sequence[Measure]) -> int:
    """How many examples they are scores of, which must be one number."""
    if not measures:
        raise Misuse("there is no score to resample")
    counts = {len(measure.numbers): measure.name for measure in measures}
    if len(counts) > 1:
        (one, name), (other, another), *_ = counts.items()
        raise Misuse(f"{name} is a score of {one} examples, {another} of {other}: they cannot be drawn together")
    return len(measures[0].numbers)


def _check_pairs(system: Sequence[Measure], baseline: Sequence[Measure]) -> None:
    if len(system) != len(baseline):
        raise Misuse(f"a paired test needs the same scores: the system has {len(system)}, the baseline {len(baseline)}")
    for ours, theirs in zip(system, baseline, strict=True):
        if ours.signature != theirs.signature:
            raise Misuse(f"{ours.signature} cannot be compared with {theirs.signature}")
        if len(ours.numbers) != len(theirs.numbers):
            counts = f"{len(ours.numbers)} examples, the baseline {len(theirs.numbers)}"
            raise Misuse(f"a paired test needs the same examples: of {ours.name}, the system has {counts}")
