"""The longest common subsequence, held against rouge-score's table and against the definition."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pointing.evaluation import common_subsequence
from pointing.evaluation.common_subsequence import common_length

WORDS = st.lists(st.sampled_from("abcde"), max_size=40)


def by_table(first, second):
    return rouge_scorer._lcs_table(first, second)[-1][-1]


@pytest.mark.parametrize("bits", [1, 3, 8, 1 << 13])
@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS)
def test_it_is_as_long_as_in_rouge_scores_table_however_few_bits_a_number_has(bits, first, second):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common_subsequence, "BITS", bits)
        assert common_length(first, second) == by_table(first, second)


def test_lines_longer_than_one_number():
    rng = random.Random(1)
    first, second = ([f"w{min(rng.randrange(40), rng.randrange(40))}" for _ in range(n)] for n in (1900, 1300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common_subsequence, "BITS", 512)
        assert common_length(first, second) == by_table(first, second)


def test_by_hand():
    assert common_length(["the", "cat", "sat", "on", "the", "mat"], ["on", "the", "mat", "the", "cat", "sat"]) == 3
    assert common_length([], ["a"]) == common_length(["a"], []) == common_length(["a"], ["b"]) == 0


def test_twenty_thousand_words_take_no_minutes():
    rng = random.Random(2)
    words = [f"w{min(rng.randrange(2000), rng.randrange(2000), rng.randrange(2000))}" for _ in range(20_000)]
    others = [word if rng.random() < 0.8 else rng.choice(words) for word in words]
    start = time.process_time()
    assert 16_000 < common_length(words, others) < 20_000
    assert time.process_time() - start < 10  # the table has 400 million cells: several minutes
