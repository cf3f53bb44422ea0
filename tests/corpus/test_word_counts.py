"""Which words are copied, and which of them are rare; counts that are added up over blocks."""

import numpy as np

from pointing.corpus.word_counts import Tally, WordCounts
from pointing.text.protected import protected_word

ARGUMENT = protected_word("printf", 1, "%s")
COUNTS = WordCounts(
    source={"the": 9, "zorblatt": 2, "argon": 20, ".": 9, ARGUMENT: 5, "menu": 10},
    target={"le": 9, "zorblatt": 2, "argon": 20, ".": 9, ARGUMENT: 5, "menu": 10, "2": 1},
    copied={"zorblatt": 2, "argon": 18, ".": 9, ARGUMENT: 5, "menu": 8, "2": 1},
)


def test_words_that_nine_of_ten_times_stand_in_the_source_are_copied():
    # argon 18 of 20, menu 8 of 10; punctuation and protected spans are no words
    assert COUNTS.copied_words() == {"zorblatt": 2, "argon": 20, "2": 1}


def test_rare_copies_leave_both_sides():
    counts = COUNTS.without_rare_copies(3)
    assert counts.source == {"the": 9, "argon": 20, ".": 9, ARGUMENT: 5, "menu": 10}
    assert counts.target == {"le": 9, "argon": 20, ".": 9, ARGUMENT: 5, "menu": 10}
    assert COUNTS.without_rare_copies(2).target == {word: n for word, n in COUNTS.target.items() if word != "2"}
    assert "argon" not in COUNTS.without_rare_copies(21).source
    assert COUNTS.without_rare_copies(1) == COUNTS


def test_blocks_are_added_up():
    tally = Tally(2)
    tally.add(["b", "a"], np.array([[1, 2], [0, 5]], np.int32))
    tally.add([], np.zeros((2, 0), np.int32))
    tally.add(["a", "c"], np.array([[10, 3], [0, 0]], np.int32))
    assert tally.of_texts() == [{"b": 1, "a": 12, "c": 3}, {"a": 5}]
    assert list(tally.numbers) == ["b", "a", "c"]
