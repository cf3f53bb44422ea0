"""Resampling: by hand, against sacrebleu with the same seed, and what must hold for any measure."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from pointing.errors import Misuse
from pointing.evaluation import significance
from pointing.evaluation.copy_metrics import Example, copy_scores
from pointing.evaluation.metrics import bleu, chrf, exact_match, rouge, tokenised_bleu
from pointing.evaluation.significance import (
    Measure,
    bootstrap,
    intervals,
    paired_bootstrap,
    paired_randomisation,
    ratio,
)


def mean(values, signature="mean"):
    return Measure("mean", signature, np.column_stack([values, np.ones(len(values))]), ratio)


def systems(lines=200, better=0.8, worse=0.6, seed=1):
    """References and two systems that get so many words of them right."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(200)]
    reference = [[rng.choice(words) for _ in range(rng.randint(4, 20))] for _ in range(lines)]

    def system(right):
        return [" ".join(word if rng.random() < right else rng.choice(words) for word in line) for line in reference]

    return [" ".join(line) for line in reference], system(better), system(worse)


# by hand


def test_the_bootstrap_by_hand():
    # Of two examples, 0 and 1, a resample's mean is 0, 1/2 or 1 with probabilities 1/4, 1/2, 1/4.
    (scores,) = bootstrap([mean([0, 1])], resamples=4000)
    shares = Counter(scores.tolist())
    assert shares.keys() == {0, 50, 100}
    assert shares[50] / 4000 == pytest.approx(1 / 2, abs=0.03)
    assert shares[0] / 4000 == pytest.approx(1 / 4, abs=0.03)
    (interval,) = intervals([mean([0, 1])])
    assert interval[:3] == (0, 100, 0.95)
    assert intervals([mean([0, 1])], level=0.4)[0][:2] == (50, 50)


def test_an_interval_is_as_wide_as_theory_says():
    values = np.random.default_rng(3).normal(50, 10, 400)
    (interval,) = intervals([mean(values / 100)], resamples=4000)
    width = 2 * 1.96 * values.std() / np.sqrt(400)
    assert interval.high - interval.low == pytest.approx(width, rel=0.06)
    assert (interval.high + interval.low) / 2 == pytest.approx(values.mean(), abs=0.1)


def test_the_randomisation_by_hand():
    # The system is better in all of three examples. Sides change in 8 ways, of which 2 differ as much as what was seen.
    (p,) = paired_randomisation([mean([1, 1, 1])], [mean([0, 0, 0])], trials=8000)
    assert p == pytest.approx(2 / 8, abs=0.02)
    # In one of three, and the others tie: every way differs as much.
    assert paired_randomisation([mean([1, 0, 1])], [mean([0, 0, 1])], trials=100) == [1]


def test_scores_that_some_resamples_do_not_define_are_taken_from_the_others():
    one_word = Measure("recall", "recall", np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), ratio)
    (scores,) = bootstrap([one_word])
    assert np.isnan(scores).mean() == pytest.approx((2 / 3) ** 3, abs=0.05)
    assert intervals([one_word])[0][:2] == (100, 100)
    assert paired_bootstrap([one_word], [one_word])[0].p_value == 1
    assert paired_randomisation([one_word], [one_word]) == [1]


# against sacrebleu


@pytest.mark.parametrize("worse", [0.6, 0.78, 0.8])
@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_values_are_sacrebleus_with_the_same_seed(kind, worse):
    reference, system, baseline = systems(lines=100, worse=worse)
    named = [("baseline", baseline), ("system", system)]
    metrics = {"bleu": BLEU(references=[reference]), "chrf": CHRF(references=[reference])}
    _, theirs = PairedTest(named, metrics, None, test_type=kind, n_samples=500)()
    for name, score in (("bleu", bleu), ("chrf", chrf)):
        expected = next(values for title, values in theirs.items() if title.lower().startswith(name))[1]
        ours, base = score(system, [reference]), score(baseline, [reference])
        assert ours.score == pytest.approx(expected.score)
        if kind == "ar":
            assert paired_randomisation([ours], [base], trials=500) == pytest.approx([expected.p_value])
        else:
            assert paired_bootstrap([ours], [base], resamples=500)[0].p_value == pytest.approx(expected.p_value)
            (scores,) = bootstrap([ours], resamples=500)
            assert scores.mean() == pytest.approx(expected.mean, rel=1e-5)
            (interval,) = intervals([ours], resamples=500)
            assert (interval.high - interval.low) / 2 == pytest.approx(expected.ci, rel=0.05)  # ours lies between two


def test_small_blocks_change_nothing(monkeypatch):
    reference, system, baseline = systems(lines=33, worse=0.79)  # p is nowhere near its ends
    ours, base = [bleu(system, [reference])], [bleu(baseline, [reference])]
    whole = paired_bootstrap(ours, base), paired_randomisation(ours, base, trials=200)
    monkeypatch.setattr(significance, "CELLS_IN_MEMORY", 33 * 40)
    assert (paired_bootstrap(ours, base), paired_randomisation(ours, base, trials=200)) == whole


# what must hold


def all_measures(lines, reference):
    words = [Example([], line.split(), output.split()) for line, output in zip(reference, lines, strict=True)]
    copies = copy_scores(words, {f"w{number}" for number in range(150)})
    texts = [score(lines, [reference]) for score in (bleu, tokenised_bleu, chrf, exact_match)]
    return [*texts, *rouge(lines, [reference]), copies.recall, copies.precision]


def test_a_clearly_better_system_is_better_by_every_measure():
    reference, system, baseline = systems()
    ours, base = (
        [m for m in all_measures(lines, reference) if m.name != "exact match"] for lines in (system, baseline)
    )
    chance = paired_randomisation(ours, base, trials=1000)
    both_ways = zip(paired_bootstrap(ours, base), paired_bootstrap(base, ours), strict=True)
    for one, other, p, (found, turned) in zip(ours, base, chance, both_ways, strict=True):
        assert found.difference == pytest.approx(one.score - other.score)
        assert max(found.p_value, p) < 0.01
        assert found.better > 0.99
        assert 0 < found.low < found.difference < found.high
        assert (turned.p_value, turned.difference) == (found.p_value, -found.difference)
        assert turned.better == pytest.approx(1 - found.better)


def test_a_system_is_not_better_than_itself():
    reference, system, _ = systems()
    measures = all_measures(system, reference)
    for found in paired_bootstrap(measures, measures):
        assert (found.difference, found.low, found.high, found.better, found.p_value) == (0, 0, 0, 0.5, 1)
    assert paired_randomisation(measures, measures, trials=100) == [1] * len(measures)


def test_chance_is_called_chance():
    """Two systems equally good on average: p below 5 % in about 5 % of the tests."""
    values = np.random.default_rng(5).random((2, 200, 50))
    ours, theirs = ([mean(one) for one in side] for side in values)
    tests = paired_randomisation(ours, theirs, trials=1000)
    assert 0.01 <= np.mean(np.array(tests) < 0.05) <= 0.09


def test_the_bootstraps_p_is_one_sided_where_one_system_leads():
    """As sacrebleu's: about half of what randomisation says, at two standard errors about 0.023 against 0.046."""
    noise = np.random.default_rng(6).normal(size=400)
    noise = (noise - noise.mean()) / noise.std()
    ours, theirs = [mean(0.5 + (noise + 2 / 20) / 100)], [mean(np.full(400, 0.5))]
    (found,), (two_sided,) = paired_bootstrap(ours, theirs, 10_000), paired_randomisation(ours, theirs)
    assert found.p_value == pytest.approx(0.023, abs=0.006)
    assert two_sided == pytest.approx(0.046, abs=0.008)


def test_intervals_hold_their_scores():
    reference, system, _ = systems()
    measures = all_measures(system, reference)
    for measure, interval in zip(measures, intervals(measures), strict=True):
        assert interval.low <= measure.score <= interval.high


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 5))
def test_the_interval_of_a_mean_holds_it(values, seed):
    measure = mean(values)
    (interval,) = intervals([measure], seed=seed)
    assert interval.low - 1e-9 <= measure.score <= interval.high + 1e-9


def test_measures_are_resampled_on_the_same_draws():
    reference, system, _ = systems(lines=20)
    measures = all_measures(system, reference)
    for measure, together in zip(measures, bootstrap(measures), strict=True):
        np.testing.assert_allclose(bootstrap([measure])[0], together)
    assert not np.array_equal(bootstrap(measures, seed=1)[0], bootstrap(measures, seed=2)[0])


# misuse


def test_what_cannot_be_resampled_is_misuse():
    with pytest.raises(Misuse, match="no example"):
        mean([])
    with pytest.raises(Misuse, match="no score"):
        bootstrap([])
    with pytest.raises(Misuse, match="a score of 2 examples, mean of 3"):
        bootstrap([mean([0, 1]), mean([0, 1, 1])])
    with pytest.raises(Misuse, match="at least one resample"):
        intervals([mean([0, 1])], resamples=0)
    with pytest.raises(Misuse, match="level"):
        intervals([mean([0, 1])], level=95)
    for test in (paired_bootstrap, paired_randomisation):
        with pytest.raises(Misuse, match="a score of 2 examples, mean of 3"):
            test([mean([0, 1])], [mean([0, 1, 1])])
        with pytest.raises(Misuse, match="the system has 1, the baseline 2"):
            test([mean([0, 1])], [mean([0, 1])] * 2)
        with pytest.raises(Misuse, match="this cannot be compared with that"):
            test([mean([0, 1], "this")], [mean([0, 1], "that")])
        with pytest.raises(Misuse, match="no score"):
            test([], [])
