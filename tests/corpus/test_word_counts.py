"""Counts that are added up over blocks."""

import numpy as np

from pointing.corpus.word_counts import Tally


def test_blocks_are_added_up():
    tally = Tally(2)
    tally.add(["b", "a"], np.array([[1, 2], [0, 5]], np.int32))
    tally.add([], np.zeros((2, 0), np.int32))
    tally.add(["a", "c"], np.array([[10, 3], [0, 0]], np.int32))
    assert tally.of_texts() == [{"b": 1, "a": 12, "c": 3}, {"a": 5}]
    assert list(tally.numbers) == ["b", "a", "c"]
