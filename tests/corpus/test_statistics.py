"""Warnings of what will keep a model from learning to point."""

import pytest
import tiny

from pointing.corpus.preparation import prepare
from pointing.corpus.statistics import corpus_warnings
from pointing.settings_file import read_config


def warnings(folder, *changes, **sizes):
    config = read_config(tiny.write(folder, *changes, **sizes))
    corpus, _ = prepare(config, folder / "prepared", workers=1)
    return corpus_warnings(corpus, config)


def test_names_outside_the_vocabulary_are_no_reason_to_warn(tmp_path):
    assert warnings(tmp_path) == []


def test_a_vocabulary_that_holds_every_word_deserves_a_warning(tmp_path):
    everything = {"vocabulary": {"source": 30_000, "target": 30_000, "min_count": 1}}
    (warning,) = warnings(tmp_path, everything)
    # 17 capital letters, 200 names, and the two that are no words
    assert "nothing can be pointed at: the shortlist of 219 has every word of the training text" in warning
    assert "lower vocabulary.target, or raise vocabulary.min_count or vocabulary.copied_min_count" in warning
    assert "\n" not in warning


def test_unknown_words_that_no_source_has_deserve_another_warning(tmp_path):
    path = tiny.write(tmp_path)
    for name in ("train", "dev"):
        target = tmp_path / f"{name}.target"
        target.write_text(target.read_text().replace("name", "nom"))
    config = read_config(path)
    (warning,) = corpus_warnings(prepare(config, tmp_path / "prepared", workers=1)[0], config)
    assert "of the 200 words of the training text outside the shortlist of 19 none stands in its source" in warning
    assert "vocabulary.target" not in warning


def test_the_copied_words_min_count_ends_it(tmp_path):
    changes = {"vocabulary": {"source": 30_000, "target": 30_000, "min_count": 1, "copied_min_count": 2}}
    assert warnings(tmp_path, changes) == []


@pytest.mark.parametrize("changes", [{"model": {"output": "softmax"}}, {"pointers": {"policy": "none"}}])
def test_who_does_not_want_to_point_is_not_warned(tmp_path, changes):
    everything = {"vocabulary": {"source": 30_000, "target": 30_000, "min_count": 1}}
    assert warnings(tmp_path, everything, changes) == []


def test_copies_of_known_words_are_pointers_enough(tmp_path):
    everything = {"vocabulary": {"source": 30_000, "target": 30_000, "min_count": 1}}
    assert warnings(tmp_path, everything, {"pointers": {"policy": "all-matches"}}) == []


def test_a_training_text_with_far_fewer_pointers_than_the_dev_text_deserves_a_warning(tmp_path):
    # 200 names in 200 training pairs: 10 of them outside the shortlist; all names of 40 dev pairs are
    shortlist = {"vocabulary": {"source": 30_000, "target": 219 - 10, "min_count": 1}}
    (warning,) = warnings(tmp_path, shortlist, dev=40)
    assert warning.startswith("the training text has 5.0 pointers in 100 pairs, the dev text 100.0: the model hardly")
    few = tmp_path / "few"  # 19 pointers in the dev text prove nothing
    assert warnings(few, shortlist, dev=19) == []


def test_up_to_three_times_as_many_pointers_are_usual(tmp_path):
    for unknown, expected in ((66, 1), (67, 0)):  # of 200: 33.0 and 33.5 in 100 pairs
        shortlist = {"vocabulary": {"source": 30_000, "target": 219 - unknown, "min_count": 1}}
        assert len(warnings(tmp_path, shortlist, dev=40)) == expected
