"""Settings that fit data, a machine and the time there is: by hand, from findings that are made up."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.config import Config, Data, Table, checked
from pointing.corpus.word_counts import WordCounts
from pointing.init.findings import Findings
from pointing.init.proposal import SIZES, choose_copied_min_count, propose
from pointing.text.protected import protected_word


def counts(source=None, target=None, copied=None):
    return WordCounts(source or {}, target or {}, copied or {})


def findings(**changes):
    values = {
        "data": Data(train=Table(files=(Path("x.csv"),))),
        "splits": {"train": 1_000, "dev": 100, "test": 100},
        "notes": (),
        "guessed_languages": ("en", "de"),
        "every": 1,
        "words": counts(),
        "lengths": (10.0, 12.0),
        "longest": 33,
        "shorter": 1.1,
        "copied_share": 0.2,
        "with_spans": 0.0,
        "spans_kept": 0.0,
    }
    return Findings(**values | changes)


def test_small_data_have_few_words_and_much_dropout():
    chosen = [propose(findings(splits={"train": pairs})).size for pairs in (500, 2_000, 2_001, 100_000, 10**7)]
    assert [SIZES.index(size) for size in chosen] == [0, 0, 1, 3, 4]
    assert [size.pairs for size in SIZES] == sorted(size.pairs for size in SIZES)
    assert SIZES[-1].pairs == math.inf


def test_the_smallest_proposal_by_hand():
    assert propose(findings()).values == {
        "data": {"train": {"files": ["x.csv"]}, "languages": ["en", "de"]},
        "text": {"forms": True, "max_tokens": 50},
        "vocabulary": {"source": 100, "target": 100, "min_count": 2, "copied_min_count": 2},
        "pointers": {"policy": "unknown-words"},
        "model": {"embedding": 128, "hidden": 192, "feed": "source", "dropout": 0.3, "init": 0.1},
        "training": {
            **{"optimizer": "adam", "learning_rate": 0.002, "warmup": 300, "decay": "linear", "batch": 16},
            **{"updates": 500, "validate_every": 500, "score": "bleu"},
        },
    }


def test_a_proposal_is_a_configuration():
    config = propose(findings()).config
    assert config == checked(Config, propose(findings()).values)
    assert config.data.train == Table(files=(Path("x.csv"),))
    assert config.data.languages == ("en", "de")


@pytest.mark.parametrize(("longest", "most"), [(5, 50), (50, 50), (51, 60), (60, 60), (199, 200), (900, 200)])
def test_most_pairs_are_not_too_long(longest, most):
    proposal = propose(findings(longest=longest))
    assert proposal.values["text"]["max_tokens"] == most
    assert proposal.reasons["text.max_tokens"] == (
        f"longer pairs are left out; 99 of 100 have at most {longest} tokens"
    )


@pytest.mark.parametrize(
    ("with_spans", "kept", "protects"), [(0.01, 0.5, True), (0.009, 1.0, False), (1.0, 0.49, False), (1.0, 1.0, True)]
)
def test_spans_are_protected_if_there_are_some_and_translators_keep_them(with_spans, kept, protects):
    proposal = propose(findings(with_spans=with_spans, spans_kept=kept))
    assert ("protect" in proposal.values["text"]) == protects
    assert ("text.protect" in proposal.reasons) == protects


def test_long_pairs_have_smaller_batches():
    sizes = {"train": 100_000}
    short, long = (
        propose(findings(splits=sizes, lengths=lengths)).values["training"]["batch"]
        for lengths in ((15.0, 15.0), (15.0, 15.1))
    )
    assert (short, long) == (128, 64)
    assert propose(findings(lengths=(50.0, 50.0))).values["training"]["batch"] == 16


def test_summaries_are_scored_by_rouge():
    summaries = findings(shorter=0.5, guessed_languages=("en", "en"))
    assert propose(summaries).values["training"]["score"] == "rouge"
    assert propose(findings(shorter=0.5)).values["training"]["score"] == "bleu"


def test_an_unknown_language_is_asked_for():
    proposal = propose(findings(guessed_languages=("en", None)))
    assert proposal.values["data"]["languages"] == ["en", "fr"]
    assert proposal.reasons["data.languages"] == "the language of the target is not known: write it here"
    assert propose(findings()).reasons["data.languages"] == "of the source and of the target"


def test_vocabularies_are_as_large_as_there_are_frequent_words():
    frequent = {f"word{n}": 2 for n in range(250)}
    rare = {f"rare{n}": 1 for n in range(500)}
    spans = {protected_word("printf", n, "%s"): 9 for n in range(500)}
    target = {f"mot{n}": 5 for n in range(9_000)}
    vocabulary = propose(findings(words=counts(frequent | rare | spans, target))).values["vocabulary"]
    assert (vocabulary["source"], vocabulary["target"]) == (300, SIZES[0].words)
    # of a sample of every second pair, a word seen once was there twice
    vocabulary = propose(findings(words=counts(frequent | rare, target), every=2)).values["vocabulary"]
    assert vocabulary["source"] == 800


def test_in_small_data_most_copied_words_are_pointers():
    # 10 words that are seen once, 5 twice, 1 a hundred times: four fifths of 120 are only reached with the last one
    copied = {f"a{n}": 1 for n in range(10)} | {f"b{n}": 2 for n in range(5)} | {"c": 100}
    assert choose_copied_min_count(counts(target=copied, copied=copied), 1, 2) == (110, 1.0)
    # without it: four fifths of 20 are 16, more than the words seen once
    del copied["c"]
    assert choose_copied_min_count(counts(target=copied, copied=copied), 1, 2) == (3, 1.0)
    # 17 of 21 words are seen once
    copied = {f"a{n}": 1 for n in range(17)} | {f"b{n}": 2 for n in range(2)}
    assert choose_copied_min_count(counts(target=copied, copied=copied), 1, 2) == (2, 17 / 21)
    assert choose_copied_min_count(counts(target=copied, copied=copied), 1, 5) == (5, 17 / 21)


def test_in_large_data_a_fifth_of_the_copies_is_enough():
    # 100,000 copies: a fifth are 20,000
    copied = {f"a{n}": 1 for n in range(30_000)} | {f"b{n}": 7_000 for n in range(10)}
    assert choose_copied_min_count(counts(target=copied, copied=copied), 1, 3) == (3, 0.3)
    # the same of every third pair: counts are multiplied, and 1 · 3 + 1 = 4
    assert choose_copied_min_count(counts(target=copied, copied=copied), 3, 3) == (4, 0.3)


def test_where_nothing_is_copied_the_rare_words_decide():
    assert choose_copied_min_count(counts(target={"a": 9}), 1, 3) == (3, 0.0)


@given(st.dictionaries(st.text("ab", min_size=1), st.integers(1, 3_000)), st.integers(1, 50), st.integers(1, 5))
def test_the_chosen_count_leaves_out_what_it_says(copied, every, min_count):
    words = counts(target=copied, copied=copied)
    least, share = choose_copied_min_count(words, every, min_count)
    assert least >= min_count
    left_out = sum(count for count in copied.values() if count * every < least)
    assert left_out >= share * sum(copied.values()) - 1e-9
    assert not copied or share > 0


def test_updates_follow_the_time():
    first = propose(findings())  # batches of 16, at most 80 passes
    # 10 minutes of half a second: 1,200 updates; 1,000 pairs are 63 batches, and 80 passes are 5,040 updates
    proposal, minutes = first.for_time(10.0, 0.5, 1_000)
    training = proposal.values["training"]
    assert (training["updates"], training["validate_every"], training["warmup"], minutes) == (1_200, 100, 240, 10.0)
    assert proposal.reasons["training.updates"] == (
        "19.2 times through the pairs; 5,040 would be better, if there is more time"
    )
    assert first.values["training"]["updates"] == 500  # as it was


def test_more_passes_than_are_good_are_not_made():
    proposal, minutes = propose(findings()).for_time(1_000.0, 0.5, 1_000)
    assert (proposal.values["training"]["updates"], minutes) == (5_040, 42.0)
    assert proposal.values["training"]["warmup"] == 300
    assert proposal.reasons["training.updates"] == "80.6 times through the pairs"


def test_too_little_time_is_not_enough_for_anything_and_the_time_is_said():
    proposal, minutes = propose(findings()).for_time(0.1, 0.6, 1_000)
    assert (proposal.values["training"]["updates"], minutes) == (500, 5.0)


def test_reasons_are_for_settings_that_are_there():
    proposal, _ = propose(findings(with_spans=1.0, spans_kept=1.0)).for_time(1.0, 0.1, 1_000)
    for key in proposal.reasons:
        section, _, name = key.partition(".")
        assert name in proposal.values[section]
