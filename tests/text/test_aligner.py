"""Word alignment: EM by hand and against a naive implementation of the same equations; the dictionary it gives."""

import math
import random
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.text import aligner as module
from pointing.text.aligner import DEFAULT, MODEL_1, Estimate, Prior, estimate, induce
from pointing.text.dictionary import Dictionary, Senses
from pointing.text.vocabulary import Vocabulary

THE_HOUSE = [(["the", "house"], ["das", "haus"]), (["the", "book"], ["das", "buch"])]


def table(found, values):
    """{(source word, target word): value}"""
    ids = zip(found.source, found.target, values, strict=True)
    return {(found.source_words[s], found.target_words[t]): float(value) for s, t, value in ids}


# EM by hand


def test_model_1_by_hand():
    # 1: every word explains half of each word it meets: the = das 1/2 + 1/2, haus 1/2, buch 1/2; house = 1/2 + 1/2
    once = estimate(THE_HOUSE, iterations=1, prior=MODEL_1)
    assert table(once, once.forward) == pytest.approx({
        ("the", "das"): 1 / 2, ("the", "haus"): 1 / 4, ("the", "buch"): 1 / 4,
        ("house", "das"): 1 / 2, ("house", "haus"): 1 / 2, ("book", "das"): 1 / 2, ("book", "buch"): 1 / 2,
    })  # fmt: skip
    # 2: das is halved again; of haus, house explains (1/2) / (1/4 + 1/2) = 2/3. the = 1 + 1/3 + 1/3, house = 1/2 + 2/3
    twice = estimate(THE_HOUSE, iterations=2, prior=MODEL_1)
    assert table(twice, twice.forward) == pytest.approx({
        ("the", "das"): 3 / 5, ("the", "haus"): 1 / 5, ("the", "buch"): 1 / 5,
        ("house", "das"): 3 / 7, ("house", "haus"): 4 / 7, ("book", "das"): 3 / 7, ("book", "buch"): 4 / 7,
    })  # fmt: skip
    # The corpus is its own mirror image, so backward is forward turned round, and a link is a posterior squared.
    assert table(twice, twice.backward)["the", "das"] == pytest.approx(3 / 5)
    assert table(twice, twice.backward)["the", "haus"] == pytest.approx(3 / 7)
    links = table(twice, twice.links)
    assert links["the", "das"] == pytest.approx(2 * (7 / 12) ** 2)  # (3/5) / (3/5 + 3/7), in both sentences
    assert links["house", "haus"] == pytest.approx((20 / 27) ** 2)  # (4/7) / (1/5 + 4/7)


def test_the_diagonal_by_hand():
    # 2 x 2 cells, centres at 1/4 and 3/4: off the diagonal a cell weighs exp(-4 / 2)
    found = estimate([(["a", "b"], ["x", "y"])], iterations=1, prior=MODEL_1._replace(diagonal=4.0))
    on = 1 / (1 + math.exp(-2))
    assert table(found, found.forward) == pytest.approx({
        ("a", "x"): on, ("a", "y"): 1 - on, ("b", "x"): 1 - on, ("b", "y"): on,
    })  # fmt: skip


def test_the_null_word_by_hand():
    # One word a side: it translates nothing with probability 1/5, in either direction.
    found = estimate([(["a"], ["x"])], iterations=3, prior=MODEL_1._replace(null=0.2))
    assert found.links == pytest.approx([0.8 * 0.8])


def test_a_word_at_first_translates_itself_by_hand():
    # Of the target's 7, the source's 7 explains 3/4 and b 1/4; of x, a half each. 7: 3/4 of 5/4; b: 1/4 of 3/4.
    found = estimate([(["7", "b"], ["x", "7"])], iterations=1, prior=MODEL_1._replace(same=3.0))
    assert table(found, found.forward) == pytest.approx({
        ("7", "x"): 2 / 5, ("7", "7"): 3 / 5, ("b", "x"): 2 / 3, ("b", "7"): 1 / 3,
    })  # fmt: skip


# EM against a naive implementation


def digamma(x):
    shift = 0.0
    while x < 30:
        shift, x = shift - 1 / x, x + 1
    return shift + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def naive_posteriors(source, target, p, null, prior):
    """{(i, j): probability that target word j translates source word i}, p being {(source, target): p(t | s)}."""
    found = {}
    for j, t in enumerate(target):
        near = [
            math.exp(-prior.diagonal * abs((i + 0.5) / len(source) - (j + 0.5) / len(target)))
            for i in range(len(source))
        ]
        cells = [p[s, t] * weight for s, weight in zip(source, near, strict=True)]
        total = sum(cells) + null * sum(near)
        found.update({(i, j): cell / total for i, cell in enumerate(cells)})
    return found


def naive_direction(pairs, iterations, prior):
    """p(t | s), and for each sentence pair its posteriors under it."""
    words = len({t for _, target in pairs for t in target})
    null = prior.null / (1 - prior.null) / words
    p = {(s, t): (prior.same if s == t else 1.0) / words for source, target in pairs for s in source for t in target}
    for _ in range(iterations):
        counts = dict.fromkeys(p, prior.alpha)
        for source, target in pairs:
            for (i, j), posterior in naive_posteriors(source, target, p, null, prior).items():
                counts[source[i], target[j]] += posterior
        totals = defaultdict(float)
        for (s, _), count in counts.items():
            totals[s] += count
        for (s, t), count in counts.items():
            if prior.alpha:
                p[s, t] = math.exp(digamma(count) - digamma(totals[s]))
            else:
                p[s, t] = count / totals[s]
    return p, [naive_posteriors(source, target, p, null, prior) for source, target in pairs]


def naive(pairs, iterations, prior):
    forward, by_forward = naive_direction(pairs, iterations, prior)
    backward, by_backward = naive_direction([(target, source) for source, target in pairs], iterations, prior)
    links = dict.fromkeys(forward, 0.0)
    for (source, target), ahead, back in zip(pairs, by_forward, by_backward, strict=True):
        for (i, j), posterior in ahead.items():
            links[source[i], target[j]] += posterior * back[j, i]
    return forward, {(s, t): p for (t, s), p in backward.items()}, links


SENTENCE = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5)
CORPUS = st.lists(st.tuples(SENTENCE, st.lists(st.sampled_from("efgxyz"), min_size=1, max_size=4)), min_size=1)


@settings(max_examples=100, deadline=None)
@given(CORPUS, st.integers(1, 4), st.sampled_from([MODEL_1, DEFAULT, Prior(1.5, 0.4, 0.3, 2.0)]))
def test_arrays_and_loops_agree(pairs, iterations, prior):
    found = estimate(iter(pairs), iterations=iterations, prior=prior)
    forward, backward, links = naive(pairs, iterations, prior)
    assert table(found, found.forward) == pytest.approx(forward, rel=1e-6)
    assert table(found, found.backward) == pytest.approx(backward, rel=1e-6)
    assert table(found, found.links) == pytest.approx(links, rel=1e-6)


def random_text(pairs, seed=1):
    """Word-for-word translation in random order, of which the answer is known: w7 is W7."""
    rng = random.Random(seed)
    for _ in range(pairs):
        numbers = [min(int(rng.expovariate(0.05)), 99) for _ in range(rng.randint(1, 9))]
        yield [f"w{number}" for number in numbers], [f"W{number}" for number in rng.sample(numbers, len(numbers))]


def test_small_blocks_change_nothing(monkeypatch):
    pairs = list(random_text(200))
    whole = estimate(pairs)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 7)
    cut = estimate(pairs)
    np.testing.assert_array_equal(cut.source, whole.source)
    np.testing.assert_array_equal(cut.target, whole.target)
    np.testing.assert_allclose(cut.links, whole.links)


# inducing


def test_a_made_up_language_is_found_out_whatever_its_word_order():
    words = induce(random_text(1000), min_association=0.3)
    assert {target for _, target, _ in words.pairs()} >= {f"W{number}" for number in range(60)}
    assert all(target == source.upper() for source, target, _ in words.pairs())


def test_the_probability_of_a_pair_by_hand(monkeypatch):
    # `set` is linked 2.5 times of 5: (2.5 - 1) / 5; its copy keeps all its links: 2 / 5; `fixed` once: (1 - 1) / 1.
    # Associations: 2.5 / sqrt(5 * 4) = 0.56, 2 / sqrt(5 * 2) = 0.63, 1 / sqrt(1 * 4) = 0.5, 0.3 / sqrt(1 * 2) = 0.21.
    links = np.array([2.5, 2.0, 1.0, 0.3])
    pairs = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    nobody = np.zeros(0, np.int16)
    found = Estimate(
        ["set", "fixed"], ["ensemble", "set"], np.array([5, 1]), np.array([4, 2]), *pairs, links, links, links, nobody
    )
    monkeypatch.setattr(module, "estimate", lambda pairs, iterations: found)
    expected = [("set", "set", 0.4), ("set", "ensemble", 0.3), ("fixed", "ensemble", 0.0), ("fixed", "set", 0.0)]
    assert list(induce([]).pairs()) == expected
    assert list(induce([], min_association=0.55).pairs()) == expected[:2]
    assert list(induce([], min_association=0.6).pairs()) == expected[:1]


def test_an_induced_dictionary_holds_the_associated_words_most_probable_first(monkeypatch):
    # Under Model 1 by hand, above: (20/27)^2 links of words seen once, association 0.55; 2 (7/12)^2 links of words seen
    # twice, association 0.34. No pair has more than one link, so that none has any probability yet.
    monkeypatch.setattr(module, "estimate", lambda pairs, iterations: estimate(pairs, iterations=2, prior=MODEL_1))
    words = induce(THE_HOUSE, min_association=0.3)
    assert list(words.pairs()) == [("house", "haus", 0.0), ("book", "buch", 0.0), ("the", "das", 0.0)]
    # Three times the same text: each sentence has the same links: (3 (20/27)^2 - 1) / 3 and (6 (7/12)^2 - 1) / 6.
    words = induce(3 * THE_HOUSE, min_association=0.3)
    assert list(words.pairs()) == [("house", "haus", 0.2154), ("book", "buch", 0.2154), ("the", "das", 0.1736)]


def test_a_name_that_stands_on_both_sides_is_copied():
    # `java` is usually kept as it is; now and then a compound takes it in.
    kept = [(["a", "java", name], ["ein", "java", name]) for name in ("compiler", "applet", "archiv", "server")]
    compound = [(["a", "java", "tool"], ["ein", "java-werkzeug"])]
    text = [*kept, *compound, *compound, (["a", "tool"], ["ein", "werkzeug"]), (["a", "shop"], ["ein", "laden"])]
    senses = Senses(induce(text), Vocabulary(["ein", "java"], [8, 4]))
    assert senses["java"] is None


def test_a_word_that_is_translated_every_time_is_translated():
    text = [(["the", "lock", name], ["das", "schloss", name]) for name in "abcdef"] + [(["the"], ["das"])]
    senses = Senses(induce(text), Vocabulary(["das"], [7]))
    assert (senses["lock"], senses["the"], senses["a"]) == ("schloss", "das", None)


def test_words_below_min_count_stay_out_of_the_dictionary():
    assert list(induce(THE_HOUSE).translations("house")) == ["haus"]
    assert [pair[:2] for pair in induce(THE_HOUSE, min_count=2).pairs()] == [("the", "das")]
    a_word_with_two_translations = [(["a"], ["x"]), (["a"], ["y"])]
    assert len(induce(a_word_with_two_translations)) == 2
    assert len(induce(a_word_with_two_translations, min_count=2)) == 0
    assert len(induce([(target, source) for source, target in a_word_with_two_translations], min_count=2)) == 0


def test_an_induced_dictionary_can_always_be_saved(tmp_path):
    words = induce([(["a\tb", "c"], ["x", "y"]), (["c"], ["y"]), (["\n"], [" "])], min_association=0.0)
    words.save(tmp_path / "words.tsv")
    assert list(Dictionary.load(tmp_path / "words.tsv").pairs()) == list(words.pairs())
    assert words.translations("c")[0] == "y"


def test_pairs_that_are_empty_or_too_long_are_passed_over(monkeypatch):
    monkeypatch.setattr(module, "MAX_TOKENS", 3)
    words = induce([*THE_HOUSE, ([], ["x"]), (["a"], []), (["a"], ["x"] * 4), (["a"] * 4, ["x"])])
    assert list(words.pairs()) == list(induce(THE_HOUSE).pairs())
    assert len(induce([])) == 0


@pytest.mark.parametrize("setting", [{"iterations": 0}, {"min_count": 0}, {"min_association": 1.5}])
def test_impossible_thresholds_are_misuse(setting):
    with pytest.raises(Misuse, match=next(iter(setting))):
        induce(THE_HOUSE, **setting)
