"""Learns from dev lines how good outputs with certain features are: the run's confidence.json.

chrF of each output against its reference → ridge regression on the features → isotonic regression, so that the number
is right on average. Damaged lines, in which words are replaced by invented ones, show what foreign input looks like.
They count little, so that real lines stay calibrated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sacrebleu.metrics.chrf import CHRF

from pointing.config import Config
from pointing.corpus.encoding import decode_line
from pointing.errors import Failure, Misuse
from pointing.evaluation.evaluation_set import own_part
from pointing.generation.confidence import (
    CONFIDENCE,
    FEATURES,
    Bin,
    Confidence,
    Feature,
    Floats,
    calibrated,
    confidence_for,
    save_confidence,
    weights_id,
)
from pointing.generation.generator import Generator
from pointing.generation.reader import Line
from pointing.model.run import MODEL, load_lexicon, load_run, read_header
from pointing.system.files import keep_apart, read_lines
from pointing.system.locks import sole_writer
from pointing.system.progress import say, track
from pointing.system.world import processes

MOST_LINES, FEWEST_LINES = 500, 50
RATES = (0.3, 0.7)  # share of the words that are replaced, in every other line
WEIGHT_OF_DAMAGED = 0.2  # that of a real line is 1
RIDGE = 1.0
GROUPS = 20  # of equal weight, before the isotonic regression
BINS = 10
REVIEWED = 0.1  # share of the real lines that is to be reviewed
LINES_AT_A_TIME = 64  # that are searched, so that the bar moves
SEED = 1


class Scored(NamedTuple):
    """Outputs with what is known about them, and what they are worth."""

    features: Floats  # (N, 6)
    chrf: Floats  # (N,) from 0 to 1
    weights: Floats  # (N,)
    rows: npt.NDArray[np.int64]  # (N,) of the pairs: a damaged line has its original's

    def part(self, chosen: npt.NDArray[np.bool_]) -> Scored:
        return Scored(self.features[chosen], self.chrf[chosen], self.weights[chosen], self.rows[chosen])

    @property
    def is_real(self) -> npt.NDArray[np.bool_]:
        return np.equal(self.weights, 1.0)


class Fit(NamedTuple):
    """From features to a confidence."""

    means: Floats
    scales: Floats
    weights: Floats
    intercept: float
    knots: Floats  # (K, 2)

    def __call__(self, features: Floats) -> Floats:
        return calibrated(self.scores(features), *self.knots.T)

    def scores(self, features: Floats) -> Floats:
        scores: Floats = (features - self.means) / self.scales @ self.weights + self.intercept
        return scores


def calibrate_run(
    folder: Path, source: Path | None = None, reference: Path | None = None, device: str = "auto"
) -> Confidence:
    """`pointing calibrate`: writes the run's confidence.json, from its dev part or from other lines."""
    if (source is None) != (reference is None):
        raise Misuse("--source and --reference belong together: line n of both is one example")
    if source is None or reference is None:
        pairs = _dev_pairs(folder, load_lexicon(folder).config)
    else:
        sides = [[decode_line(line)[0] for line in read_lines(path)] for path in (source, reference)]
        if len(sides[0]) != len(sides[1]):
            raise Misuse(f"{len(sides[0]):,} lines, but {reference} has {len(sides[1]):,}", source)
        pairs = list(zip(*sides, strict=True))
    keep_apart([source, reference], [folder / CONFIDENCE])
    with processes(device) as here, sole_writer(folder):
        return _make(folder, pairs, here.device)


def calibrate_trained(folder: Path, config: Config, device: torch.device) -> None:
    """The same at the end of training, if it can be done and is not done yet; what is in the way is said."""
    try:
        if not _is_calibrated(folder):
            say(f"confidence: {sentence(_make(folder, _dev_pairs(folder, config), device))}")
    except Failure as problem:
        say(f"no {CONFIDENCE}, which `pointing calibrate` makes: {problem}")


def _is_calibrated(folder: Path) -> bool:
    """True if the confidence is that of the weights. A damaged one is made anew, which is said."""
    about = read_header(folder / MODEL)
    try:
        return confidence_for(folder, about) is not None
    except Misuse:
        say(f"{folder / CONFIDENCE}: damaged; it is made anew")
        return False


def sentence(learned: Confidence) -> str:
    """What was learned, for people."""
    return (
        f"learned from {learned.lines:,} lines; expected calibration error {learned.error:.3f} on lines held out; "
        f"outputs below {learned.review_below:.2f} are to be reviewed"
    )


def _dev_pairs(folder: Path, config: Config) -> list[tuple[str, str]]:
    dev = own_part({folder: config}, "dev")
    return list(zip(dev.source_texts, dev.references[0], strict=True))


def _make(folder: Path, pairs: Sequence[tuple[str, str]], device: torch.device) -> Confidence:
    run = load_run(folder)
    if run.config.pointers.needs_tags:
        raise Misuse("a run of tagged entities has no confidence: its lines need tags", folder)
    run.model.to(device)
    metric = CHRF()
    scored = score(Generator(run), sample(pairs), metric)
    confidence = learn(scored, f"chrF2|{metric.get_signature().format()}|sentence", weights_id(run.about))
    save_confidence(confidence, folder)
    return confidence


def sample(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """At most MOST_LINES pairs without empty sides, the same ones every time."""
    full = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    if len(full) < FEWEST_LINES:
        raise Misuse(f"{len(full)} pairs of lines are too few to learn a confidence from: {FEWEST_LINES} are needed")
    rows = range(len(full)) if len(full) <= MOST_LINES else random.Random(SEED).sample(range(len(full)), MOST_LINES)
    return [full[row] for row in sorted(rows)]


def score(generator: Generator, pairs: Sequence[tuple[str, str]], metric: CHRF) -> Scored:
    """Outputs of the pairs' sources and of the damaged ones, each against its reference."""
    rng = random.Random(SEED)
    lines = [source for source, _ in pairs]
    read = generator.read(lines)
    vocabulary = generator.lexicon.source
    damaged = [damage(line, RATES[row % 2], rng, vocabulary.__contains__) for row, line in enumerate(read)]
    rows = [*range(len(pairs)), *(row for row, line in enumerate(damaged) if line != lines[row])]
    texts = [*lines, *(line for row, line in enumerate(damaged) if line != lines[row])]
    features, chrf, kept = [], [], []
    outputs = generator.stream(texts, window=LINES_AT_A_TIME)
    for number, output in enumerate(track(outputs, "learning how sure to be", len(texts), "lines")):
        if output.features is not None:  # a line without words has none
            features.append(output.features)
            chrf.append(metric.sentence_score(output.text, [pairs[rows[number]][1]]).score / 100)
            kept.append(number)
    weights = np.where(np.array(kept) < len(pairs), 1.0, WEIGHT_OF_DAMAGED)
    return Scored(np.array(features), np.array(chrf), weights, np.array(rows)[kept])


def damage(line: Line, rate: float, rng: random.Random, is_known: Callable[[str], bool]) -> str:
    """The line with a share of its words replaced by words that nobody knows; spans that are protected stay."""
    words = line.in_words
    parts, done = [], 0
    for position, (start, end) in enumerate(zip(words.starts.tolist(), words.ends.tolist(), strict=True)):
        word = words.raw(position)
        if word.isalpha() and not words.is_span(position) and rng.random() < rate:
            parts += [words.text[done:start], _invented(word[0].isupper(), rng, is_known)]
            done = end
    return "".join([*parts, words.text[done:]])


def _invented(capital: bool, rng: random.Random, is_known: Callable[[str], bool]) -> str:
    while True:
        syllables = rng.randint(2, 4)
        word = "".join(rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(syllables))
        written = word.capitalize() if capital else word
        if not is_known(word) and not is_known(written):
            return written


def learn(scored: Scored, signature: str, weights: dict[str, float | None]) -> Confidence:
    """The confidence that all lines teach. How well that works is measured on halves that were held out."""
    is_real = scored.is_real
    if is_real.sum() < FEWEST_LINES:
        raise Misuse(f"{is_real.sum()} lines with words are too few to learn a confidence from")
    fit = _fit(scored)
    held_out = np.empty(len(scored.rows))
    half = np.array(random.Random(SEED).choices((False, True), k=int(scored.rows.max()) + 1))[scored.rows]
    for other in (half, ~half):
        held_out[~other] = _fit(scored.part(other))(scored.features[~other])
    bins = reliability(held_out[is_real], scored.chrf[is_real])
    confidences = fit(scored.features[is_real])
    features = zip(FEATURES, fit.means.tolist(), fit.scales.tolist(), fit.weights.tolist(), strict=True)
    return Confidence(
        features=tuple(Feature(name=name, mean=mean, scale=scale, weight=w) for name, mean, scale, w in features),
        intercept=fit.intercept,
        knots=tuple((x, y) for x, y in fit.knots.tolist()),
        review_below=float(np.quantile(confidences, REVIEWED)),
        lines=int(is_real.sum()),
        damaged_lines=int((~is_real).sum()),
        error=calibration_error(bins),
        bins=tuple(bins),
        signature=signature,
        weights=weights,
    )


def _fit(scored: Scored) -> Fit:
    """Weighted ridge regression on scaled features, then isotonic regression of chrF on its score."""
    x, y, w, _ = scored
    means = np.average(x, axis=0, weights=w)
    scales = np.sqrt(np.average((x - means) ** 2, axis=0, weights=w))
    scales[scales < 1e-6] = 1.0  # a feature that is always the same
    z, intercept = (x - means) / scales, float(np.average(y, weights=w))
    moments = (z * w[:, None]).T @ z + RIDGE * np.eye(z.shape[1])
    weights: Floats = np.linalg.solve(moments, (z * w[:, None]).T @ (y - intercept)).astype(np.float64)
    fit = Fit(means, scales, weights, intercept, np.zeros((1, 2)))
    return fit._replace(knots=isotonic(fit.scores(x), y, w))


def isotonic(x: Floats, y: Floats, w: Floats, groups: int = GROUPS) -> Floats:
    """(K, 2) the increasing steps that fit y best, as the centre of each step, by pooling adjacent violators.

    Points are first put into groups of equal weight: a step of a few points would say little.
    """
    order = np.argsort(x, kind="stable")
    x, y, w = x[order], y[order], w[order]
    group = np.minimum(((np.cumsum(w) - w / 2) / w.sum() * groups).astype(int), groups - 1)
    group[1:] = np.where(np.diff(x) > 0, group[1:], 0)  # equal points stay together
    group = np.maximum.accumulate(group)
    steps: list[Floats] = []  # of each: weight, weighted sum of x, weighted sum of y
    for number in np.unique(group):
        of = group == number
        step = np.array([w[of].sum(), w[of] @ x[of], w[of] @ y[of]])
        while steps and steps[-1][2] / steps[-1][0] >= step[2] / step[0]:
            step = step + steps.pop()
        steps.append(step)
    return np.array([step[1:] / step[0] for step in steps])


def reliability(confidences: Floats, chrf: Floats) -> list[Bin]:
    """What lines were told against what they are, in bins of equal width."""
    number = np.minimum((confidences * BINS).astype(int), BINS - 1)
    bins = []
    for k in range(BINS):
        of = number == k
        told, found = (float(each[of].mean()) if of.any() else None for each in (confidences, chrf))
        bins.append(Bin(low=k / BINS, high=(k + 1) / BINS, lines=int(of.sum()), confidence=told, chrf=found))
    return bins


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance between what lines were told and what they are."""
    distances = [abs(b.confidence - b.chrf) * b.lines for b in bins if b.confidence is not None and b.chrf is not None]
    return sum(distances) / sum(b.lines for b in bins)
