"""Copies and the switch, by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.evaluation.copy_metrics import Example, closest, copy_scores, switch_scores
from pointing.evaluation.significance import intervals, paired_bootstrap, paired_randomisation
from pointing.text.dictionary import Dictionary
from pointing.text.vocabulary import Vocabulary

SHORTLIST = {"the", "a", "wins", "record", "in"}
EXAMPLES = [
    # tang is copied once too often, gonghong is missing; record is copied although the shortlist has it
    Example(
        ["chinas", "tang", "gonghong", "wins", "record", "in", "paris"],
        ["tang", "gonghong", "wins", "a", "record", "in", "paris"],
        ["tang", "tang", "wins", "the", "record", "in", "paris"],
        ["copied", "copied", "shortlist", "shortlist", "copied", "shortlist", "translated"],
    ),
    Example(["foo"], ["the", "foo", "bar", "<unk>"], ["the", "<unk>", "zork", "<unk>"], ["shortlist"] * 4),
]


def test_copies_by_hand():
    scores = copy_scores(EXAMPLES, SHORTLIST)
    assert scores.recall.score == pytest.approx(100 * 2 / 5)  # tang, paris of tang gonghong paris foo bar
    assert scores.precision.score == pytest.approx(100 * 2 / 4)  # of tang tang paris zork
    assert scores.right.score == pytest.approx(100 * 3 / 4)  # tang, record, paris of tang tang record paris
    assert scores.per_100.score == pytest.approx(100 * 4 / 2)
    assert scores.share.score == pytest.approx(100 * 4 / 11)
    assert scores.invented.score == 1  # zork
    assert scores.unknown.score == 2
    assert scores.bands == ()


def test_unseen_words_of_the_source_by_hand():
    # Of the first source tang, gonghong, chinas, paris, wins were never seen; foo of the second; record and in were.
    scores = copy_scores(EXAMPLES, SHORTLIST, frequency={"record": 3, "in": 1})
    assert scores.kept_recall.score == pytest.approx(100 * 3 / 5)  # tang, wins, paris of tang gonghong wins paris foo
    assert scores.kept_precision.score == pytest.approx(100 * 3 / 4)  # of tang tang wins paris; bar is not in a source
    assert [m.name for m in scores.measures() if "unseen" in m.name] == [
        "source's unseen words: recall",
        "source's unseen words: precision",
    ]
    assert copy_scores(EXAMPLES, SHORTLIST).kept_recall is None


def test_what_a_dictionary_translates_is_not_invented():
    output = Example(["house", "dog"], ["maison"], ["maison", "maison", "demeure", "chat"])
    words = Dictionary([("house", "maison", 0.5), ("house", "demeure", 0.5), ("cat", "chat", 1.0)])
    assert copy_scores([output], set()).invented.score == 4
    assert copy_scores([output], set(), translations=words.translations).invented.score == 1  # there is no cat
    assert copy_scores([output], {"chat"}, translations=words.translations).invented.score == 0


def test_words_are_matched_as_they_are_and_known_as_they_are_read():
    # Zoe is written with a capital too much, House is known, Maison a translation of it; only Zork is invented
    output = Example(["House", "zoe"], ["zoe", "house"], ["Zoe", "House", "Maison", "Zork"], ["copied"] * 4)
    words = Dictionary([("house", "maison", 1.0)])
    how = {"frequency": {"house": 1}, "translations": words.translations}
    plain, read = copy_scores([output], {"house"}, **how), copy_scores([output], {"house"}, **how, read=str.lower)
    assert (plain.recall.score, read.recall.score) == (0, 0)  # zoe is missing
    assert [band.words for band in read.bands] == [1, 1, 0, 0, 0]
    assert plain.precision.numbers.tolist() == [[0, 4]]
    assert read.precision.numbers.tolist() == [[0, 3]]
    assert (plain.invented.score, read.invented.score) == (3, 1)


def test_recall_by_frequency_by_hand():
    frequency = {"the": 1000, "a": 999, "wins": 10, "record": 9, "in": 1}
    scores = copy_scores(EXAMPLES, SHORTLIST, frequency=frequency)
    found = [(band.low, band.high, band.words, band.recall.score) for band in scores.bands]
    assert found == [
        (0, 0, 5, pytest.approx(100 * 2 / 5)),  # tang gonghong paris foo bar
        (1, 9, 2, 100),  # record, in
        (10, 99, 1, 100),  # wins
        (100, 999, 1, 0),  # a
        (1000, None, 1, 100),  # the
    ]
    names = [band.recall.name for band in scores.bands]
    assert names[:2] == ["recall of words seen 0 times", "recall of words seen 1–9 times"]
    assert names[-1] == "recall of words seen ≥1000 times"
    two = copy_scores(EXAMPLES, SHORTLIST, frequency=frequency, bands=[0, 10])
    assert [(band.low, band.high, band.words) for band in two.bands] == [(0, 9, 7), (10, None, 3)]


def test_without_origins_what_needs_them_is_none():
    plain = [Example(one.source, one.reference, one.output) for one in EXAMPLES]
    for examples in (plain, [EXAMPLES[0], plain[1]]):
        scores = copy_scores(examples, SHORTLIST)
        assert scores.right is scores.per_100 is scores.share is None
        assert scores.recall.score == pytest.approx(40)
        assert [measure.name for measure in scores.measures()] == [
            "out-of-shortlist recall", "out-of-shortlist precision", "words invented", "UNKs left",
        ]  # fmt: skip


def test_a_score_of_nothing_is_none():
    scores = copy_scores([Example([], [], [], [])], SHORTLIST, frequency={})
    assert scores.recall.score is scores.precision.score is scores.right.score is scores.share.score is None
    assert scores.per_100.score == scores.invented.score == scores.unknown.score == 0
    assert intervals([scores.recall, scores.per_100])[0] is None
    assert paired_bootstrap([scores.recall], [scores.recall]) == [None]
    assert paired_randomisation([scores.recall], [scores.recall], trials=9) == [None]


def test_a_vocabulary_is_a_shortlist():
    scores = copy_scores(EXAMPLES, Vocabulary(sorted(SHORTLIST), [1] * 5))
    assert scores.recall.score == pytest.approx(40)
    assert "|shortlist:7|" in scores.recall.signature
    assert "|unk:UNK|" in copy_scores(EXAMPLES, SHORTLIST, unk="UNK").recall.signature


def test_another_marker_of_unknown_words():
    scores = copy_scores([Example(["x"], ["UNK", "b"], ["UNK", "<unk>", "b"])], {"b"}, unk="UNK")
    assert scores.unknown.score == scores.invented.score == 1  # <unk> is a word like any other, then
    assert scores.recall.score is None


def test_of_several_references_the_closest_is_taken():
    references = [["a"], ["a", "b", "c"], ["c", "b", "a"], []]
    assert closest(["a", "b"], references) is references[1]  # F1 2/3, 4/5, 4/5, 0
    assert closest(["a"], references) is references[0]
    assert closest([], references) is references[0]


WORD = st.sampled_from(["the", "in", "x", "y", "<unk>"])
LINE = st.lists(WORD, max_size=5)


@settings(max_examples=50)
@given(st.lists(st.tuples(LINE, LINE, LINE), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_examples_is_no_matter_and_each_adds_its_own(triples, rng):
    examples = [Example(*triple, ["copied"] * len(triple[2])) for triple in triples]
    scores = copy_scores(examples, SHORTLIST, frequency={"the": 5}).measures()
    alone = [copy_scores([one], SHORTLIST, frequency={"the": 5}).measures() for one in examples]
    rng.shuffle(examples)
    turned = copy_scores(examples, SHORTLIST, frequency={"the": 5}).measures()
    for k, measure in enumerate(scores):
        assert measure.score == turned[k].score
        np.testing.assert_array_equal(measure.numbers, np.vstack([one[k].numbers for one in alone]))


@settings(max_examples=50)
@given(LINE.filter(lambda words: {"x", "y"} & set(words)))
def test_a_reference_against_itself_is_100(words):
    scores = copy_scores([Example(words, words, words, ["copied"] * len(words))], SHORTLIST, frequency={})
    known = [word for word in words if word != "<unk>"]
    assert scores.recall.score == scores.precision.score == scores.bands[0].recall.score == 100
    assert scores.right.score == pytest.approx(100 * len(known) / len(words))
    assert scores.invented.score == 0


def test_examples_that_cannot_be_scored_are_misuse():
    with pytest.raises(Misuse, match="no example"):
        copy_scores([], SHORTLIST)
    with pytest.raises(Misuse, match="2 words has 1 origins"):
        Example([], [], ["a", "b"], ["copied"])
    for bands in ([], [1, 10], [0, 10, 10], [0, 10, 5]):
        with pytest.raises(Misuse, match="bands of frequency"):
            copy_scores(EXAMPLES, SHORTLIST, bands=bands)


# the switch


def test_the_switch_by_hand():
    # Points at the first two steps and the fifth; the pointer was the choice in the first and the fourth.
    scores = switch_scores([0.1, 0.4, 0.5, 0.9, 0.4, 1.0], [False, True, True, False, True, True], bins=2)
    assert scores.accuracy.score == pytest.approx(100 * 3 / 6)
    assert scores.precision.score == pytest.approx(100 * 1 / 3)
    assert scores.recall.score == pytest.approx(100 * 1 / 2)
    # Below 1/2: mean 0.3 of three, shortlist in 2. From 1/2 on: mean 0.8 of three, shortlist in 2.
    assert scores.calibration.score == pytest.approx(100 * (abs(0.9 - 2) + abs(2.4 - 2)) / 6)
    low, high = scores.bins
    assert low == (0, 0.5, 3, pytest.approx(0.3), pytest.approx(2 / 3))
    assert high == (0.5, 1, 3, pytest.approx(0.8), pytest.approx(2 / 3))


def test_a_switch_that_never_points_has_no_precision():
    scores = switch_scores([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    assert scores.precision.score is None
    assert scores.recall.score == 0
    assert scores.calibration.score == 0
    assert [one.steps for one in scores.bins] == [0] * 7 + [4, 0, 0]
    assert scores.bins[0].mean is scores.bins[0].observed is None


def test_steps_of_one_example_are_resampled_together():
    rng = np.random.default_rng(1)
    example = np.repeat(np.arange(40), 5)
    p = np.repeat(rng.random(40), 5)  # all steps of an example alike: five times fewer independent ones
    z = np.repeat(rng.random(40) < 0.7, 5)
    together, apart = switch_scores(p, z, example), switch_scores(p, z)
    assert len(together.accuracy.numbers) == 40
    for one, other in zip(together.measures(), apart.measures(), strict=True):
        assert one.score == pytest.approx(other.score)
    for k in range(40):
        alone = switch_scores(p[example == k], z[example == k])
        for one, other in zip(together.measures(), alone.measures(), strict=True):
            np.testing.assert_allclose(one.numbers[k], other.numbers.sum(0))
    wide, narrow = intervals([together.accuracy])[0], intervals([apart.accuracy])[0]
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.parametrize(
    ("p", "z", "example", "message"),
    [
        ([], [], None, "no example"),
        ([0.5], [True, False], None, "one p, z and example"),
        ([0.5], [True], [0, 1], "one p, z and example"),
        ([1.5], [True], None, "between 0 and 1"),
        ([float("nan")], [True], None, "between 0 and 1"),
        ([0.5], [True], [-1], "count from 0"),
    ],
)
def test_what_is_no_switch_is_misuse(p, z, example, message):
    with pytest.raises(Misuse, match=message):
        switch_scores(p, z, example)
