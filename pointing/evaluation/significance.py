"""How far a score can be trusted: bootstrap intervals, and paired tests between two systems.

Every score is a `Measure`: K numbers for each example, and a function that computes the score from their sums over the
examples. To score a resample, its rows are summed; the text is not read again. BLEU, ROUGE and the copy metrics all
share this code.
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

RESAMPLES, TRIALS = 1000, 10_000  # of the bootstrap and of approximate randomisation: sacreBLEU's defaults
SEED = 12345  # sacreBLEU's default, so that `sacrebleu --paired-bs` draws the same examples
CELLS_IN_MEMORY = 1 << 22  # the largest (resamples × examples) matrix that is computed at once
ROUNDING = 1e-9  # two differences are equal if they differ by less: sums in another order round differently


class Resampling(NamedTuple):
    """How often to draw, for intervals and tests."""

    resamples: int = RESAMPLES
    trials: int = TRIALS
    seed: int = SEED


@dataclass(frozen=True, eq=False)
class Measure:
    """A score over examples: the K numbers of each example, and the function from their sums to the score."""

    name: str
    signature: str  # how it was computed
    numbers: Floats  # (examples, K)
    of_sums: Callable[[Floats], Floats]  # (…, K) → (…), NaN where the score is not defined

    def __post_init__(self) -> None:
        if not len(self.numbers):
            raise Misuse(f"there is nothing to score: {self.name} was given no example")

    @property
    def score(self) -> float | None:
        """None where it is not defined, such as the recall of words that no reference has."""
        value = float(self.of_sums(self.numbers.sum(0)))
        return None if math.isnan(value) else value


def ratio(sums: Floats) -> Floats:
    """(…, 2) → (…): the first sum as a percentage of the second; NaN if the second is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = np.where(sums[..., 1] > 0, 100 * sums[..., 0] / sums[..., 1], np.nan)
    return share


class Interval(NamedTuple):
    """The central `level` of the scores of those resamples in which the score is defined."""

    low: float
    high: float
    level: float


class Comparison(NamedTuple):
    """A system against a baseline on the same examples."""

    difference: float  # score of the system - score of the baseline
    low: float  # low and high bound the central 95 % of the resamples' differences
    high: float
    better: float  # share of the resamples in which the system scores higher (Koehn 2004); a tie counts as half
    p_value: float


def bootstrap(measures: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED) -> list[Floats]:
    """The scores (resamples,) of each measure. Every measure of every system is scored on the same resamples."""
    draws = _draws(_examples(measures), resamples, seed)
    numbers = np.hstack([measure.numbers for measure in measures])
    return _scores(measures, np.concatenate([drawn @ numbers for drawn in draws]))


def intervals(
    measures: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED, level: float = 0.95
) -> list[Interval | None]:
    """The percentile bootstrap interval of each measure; None if its score is not defined."""
    if not 0 < level < 1:
        raise Misuse(f"level is a share between 0 and 1, not {level}")
    result: list[Interval | None] = []
    for measure, scores in zip(measures, bootstrap(measures, resamples, seed), strict=True):
        defined = scores[~np.isnan(scores)]
        known = measure.score is not None and len(defined) > 0
        result.append(Interval(*_central(defined, level), level) if known else None)
    return result


def paired_bootstrap(
    system: Sequence[Measure], baseline: Sequence[Measure], resamples: int = RESAMPLES, seed: int = SEED
) -> list[Comparison | None]:
    """Paired bootstrap resampling (Koehn 2004): each measure of the system against the same one of the baseline.

    The p-value is that of `sacrebleu --paired-bs`: the share of the resamples whose absolute difference is larger than
    the mean absolute difference by at least the observed difference. Absolute values are taken before the mean, so
    where one system leads in all resamples the p-value is one-sided: half of that of `paired_randomisation`, which is
    always two-sided. The result is None where a score is not defined.

    Departure: sacreBLEU counts the resamples that exceed the observed difference, we also those that equal it. So a
    system against itself has p = 1; with sacreBLEU it has 0.001. Without such ties, the usual case, the two agree.
    """
    _check_pairs(system, baseline)
    scores = bootstrap([*system, *baseline], resamples, seed)
    pairs = zip(system, baseline, scores[: len(system)], scores[len(system) :], strict=True)
    result: list[Comparison | None] = []
    for ours, theirs, our_scores, their_scores in pairs:
        differences = (our_scores - their_scores)[~np.isnan(our_scores - their_scores)]
        if ours.score is None or theirs.score is None or not len(differences):
            result.append(None)
            continue
        observed, sizes = ours.score - theirs.score, np.abs(differences)
        better = float(np.mean((differences > 0) + (differences == 0) / 2))
        p_value = _p_value(sizes - sizes.mean(), abs(observed))
        result.append(Comparison(observed, *_central(differences, 0.95), better, p_value))
    return result


def paired_randomisation(
    system: Sequence[Measure], baseline: Sequence[Measure], trials: int = TRIALS, seed: int = SEED
) -> list[float | None]:
    """Two-sided p-values of approximate randomisation; None where a score is not defined.

    In each trial, the two outputs of each example are exchanged with probability 1/2. The p-value is the share of the
    trials whose absolute difference is at least the observed one: `sacrebleu --paired-ar`, with the same departure as
    in `paired_bootstrap`.
    """
    _check_pairs(system, baseline)
    examples = _examples([*system, *baseline])
    rng = np.random.default_rng(seed)
    ours, theirs = (np.hstack([measure.numbers for measure in side]) for side in (system, baseline))
    sums = []
    # numpy draws 32 random bits at a time: with blocks of a multiple of 32 trials the draws do not depend on the blocks
    for rows in _blocks(trials, max(32, CELLS_IN_MEMORY // examples // 32 * 32)):
        stays = rng.integers(2, size=(rows, examples), dtype=np.bool_)
        sums.append(theirs.sum(0) + stays.astype(np.float64) @ (ours - theirs))
    first_sums = np.concatenate(sums)  # (trials, all K)
    second_sums = ours.sum(0) + theirs.sum(0) - first_sums
    result: list[float | None] = []
    trial_scores = zip(_scores(system, first_sums), _scores(system, second_sums), strict=True)
    for measure, base, (first, second) in zip(system, baseline, trial_scores, strict=True):
        sizes = np.abs(first - second)[~np.isnan(first - second)]
        if measure.score is None or base.score is None:
            result.append(None)
        else:
            result.append(_p_value(sizes, abs(measure.score - base.score)))
    return result


def _draws(examples: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample holds each example, in blocks of shape (resamples of the block, examples)."""
    rng = np.random.default_rng(seed)
    for rows in _blocks(resamples, max(1, CELLS_IN_MEMORY // examples)):
        drawn = rng.choice(examples, size=(rows, examples), replace=True)
        drawn += np.arange(rows)[:, None] * examples  # index of the cell (resample, example)
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(rows, examples).astype(np.float64)


def _blocks(total: int, largest: int) -> Iterator[int]:
    """Sizes of blocks that add up to the total."""
    if total < 1:
        raise Misuse(f"at least one resample must be drawn, not {total}")
    for start in range(0, total, largest):
        yield min(largest, total - start)


def _scores(measures: Sequence[Measure], sums: Floats) -> list[Floats]:
    """The scores (resamples,) of each measure from the sums (resamples, all K) of all of them."""
    ends = np.cumsum([measure.numbers.shape[1] for measure in measures])
    own_sums = np.split(sums, ends[:-1], axis=1)
    return [measure.of_sums(columns) for measure, columns in zip(measures, own_sums, strict=True)]


def _central(scores: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _p_value(sizes: Floats, observed: float) -> float:
    """Share of the sizes that are at least the observed one, which counts as one of them: so p is never 0."""
    return float((np.sum(sizes >= observed - ROUNDING) + 1) / (len(sizes) + 1))


def _examples(measures: Sequence[Measure]) -> int:
    """The number of examples of the measures, which must be the same for all."""
    if not measures:
        raise Misuse("there is no score to resample")
    names = {len(measure.numbers): measure.name for measure in measures}
    if len(names) > 1:
        (count, name), (other_count, other), *_ = names.items()
        raise Misuse(f"{name} is a score of {count} examples, {other} of {other_count}: they cannot be drawn together")
    return len(measures[0].numbers)


def _check_pairs(system: Sequence[Measure], baseline: Sequence[Measure]) -> None:
    if len(system) != len(baseline):
        raise Misuse(f"a paired test needs the same scores: the system has {len(system)}, the baseline {len(baseline)}")
    for ours, theirs in zip(system, baseline, strict=True):
        if ours.signature != theirs.signature:
            raise Misuse(f"{ours.signature} cannot be compared with {theirs.signature}")
