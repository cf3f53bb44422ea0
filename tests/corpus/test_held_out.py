"""Dev and test split off: disjoint parts, what belongs together in one of them, the same on every machine."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pointing.corpus.held_out import LEFT_OUT, TRAIN, hashes, hold_out, text_key, usual_size
from pointing.errors import Misuse


def numbers(values):
    return np.array(values, np.uint64)


def split(keys, sources=None, **sizes):
    return hold_out(numbers(keys), numbers(keys if sources is None else sources), sizes)


def test_the_usual_sizes_by_hand():
    # a tenth of few pairs, 100 of a thousand and more, a twentieth of 2,000 and more, 2,000 at most
    sizes = {5: 0, 9: 0, 10: 1, 20: 2, 999: 99, 1_000: 100, 2_000: 100, 3_000: 150, 40_000: 2_000, 10**7: 2_000}
    assert {pairs: usual_size(pairs) for pairs in sizes} == sizes


def test_texts_that_differ_in_case_digits_and_punctuation_have_one_key():
    assert text_key("Open file 12, please!") == text_key("open FILE 7 please") == "open file 0 please"
    assert text_key("Straße_1") == text_key("STRASSE 2")
    assert text_key("über") != text_key("uber")
    assert text_key("...") == "..." != text_key("!")
    assert text_key("日本語") == "日本語"


def test_hashes_are_the_same_on_every_machine():
    # BLAKE2b with a digest of 8 bytes: printf '1 a' | b2sum -l 64
    assert hashes(["a", "b", "a"], 1).tolist() == [0xE357AE2BC133F242, 0x405C061D38982CF6, 0xE357AE2BC133F242]
    assert hashes(["a"], 2).tolist() != hashes(["a"], 1).tolist()
    assert hashes(["half \ud800"], 1).dtype == np.uint64


def test_the_lowest_keys_are_held_out():
    assert split([9, 1, 5, 2, 8, 3], dev=2, test=1).tolist() == [0, 1, 0, 1, 0, 2]
    assert split([9, 1, 5, 2, 8, 3], dev=3).tolist() == [0, 1, 0, 1, 0, 1]


def test_a_group_that_is_too_large_stays_in_training():
    # dev may hold 10 pairs, and a group a fifth of them: 2
    keys = [1] * 3 + [2] * 2 + list(range(10, 30))
    parts = split(keys, dev=10)
    assert parts[:5].tolist() == [TRAIN] * 3 + [1] * 2
    assert (parts == 1).sum() == 10


def test_larger_groups_are_taken_if_there_are_no_small_ones():
    # dev may hold 8 pairs: groups of 4 are half of it, groups of 5 too large
    assert split(np.repeat([1, 2, 3, 4], [5, 4, 4, 4]), dev=8).tolist() == [TRAIN] * 5 + [1] * 8 + [TRAIN] * 4
    # small groups that fill half of it are enough
    parts = split(np.repeat([1, 2, 3, 4, 5, 6], [4, 1, 1, 1, 1, 9]), dev=8)
    assert parts.tolist() == [TRAIN] * 4 + [1] * 4 + [TRAIN] * 9


def test_what_one_split_has_no_room_for_goes_to_the_next():
    # groups of 3 pairs; dev and test may hold 16, and fill 15 of them
    keys = np.repeat(np.arange(100), 3)
    parts = split(keys, dev=16, test=16)
    assert [(parts == part).sum() for part in (0, 1, 2)] == [270, 15, 15]


def test_a_held_out_source_that_is_in_training_too_is_left_out():
    # keys 1, 2 and 3 are held out; the source 7 of key 1 is in training with key 5, the source 8 is in dev alone
    assert split([1, 2, 3, 5, 6, 9, 9], [7, 8, 8, 7, 4, 4, 5], dev=3).tolist() == [LEFT_OUT, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "sources", "sizes", "message"),
    [
        ([1, 2, 3, 4, 5], None, {"dev": None, "test": None}, "5 pairs are too few to hold out dev and test: give more"),
        ([1, 2, 3, 4], None, {"dev": 3, "test": 1}, "4 pairs are too few to hold out 3 for dev and 1 for test: give"),
        ([1] * 40, None, {"dev": None}, "too many pairs belong together to hold out 4 for dev: there are 1 different"),
        (list(range(4)) * 10, None, {"dev": 18}, "hold out 18 for dev: there are 4 different keys or sources; take"),
        (range(30), [1] * 30, {"dev": 3}, "nothing is left to hold out for dev: all its sources are in the training"),
    ],
)
def test_too_little_to_split_is_said(keys, sources, sizes, message):
    with pytest.raises(Misuse, match=message):
        split(list(keys), sources, **sizes)


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), min_size=10, max_size=120)


@given(PAIRS, st.integers(1, 10), st.integers(1, 10), st.integers(0, 2**61))
def test_parts_are_disjoint_and_keep_together_what_belongs_together(pairs, dev, test, seed):
    keys = hashes([str(key) for key, _ in pairs], seed)
    sources = hashes([str(source) for _, source in pairs], seed)
    try:
        parts = hold_out(keys, sources, {"dev": dev, "test": test})
    except Misuse:
        assume(False)
    assert len(parts) == len(pairs)
    assert set(parts.tolist()) <= {LEFT_OUT, 0, 1, 2}
    by_part = {part: {n for n, each in enumerate(parts) if each == part} for part in (LEFT_OUT, 0, 1, 2)}
    assert by_part[0]
    for part, size in ((1, dev), (2, test)):
        assert 0 < len(by_part[part]) <= size
    groups = {key: {int(parts[n]) for n, (other, _) in enumerate(pairs) if other == key} for key, _ in pairs}
    assert all(len(found - {LEFT_OUT}) <= 1 for found in groups.values())
    train = {pairs[n][1] for n in by_part[0]}
    assert not train & {pairs[n][1] for n in by_part[1] | by_part[2]}
    assert all(pairs[n][1] in train for n in by_part[LEFT_OUT])
    assert parts.tolist() == hold_out(keys, sources, {"dev": dev, "test": test}).tolist()


@given(st.lists(st.text(max_size=3), min_size=20, max_size=60), st.integers(0, 5))
def test_without_keys_nothing_is_left_out(texts, seed):
    sources = hashes(map(text_key, texts), seed)
    try:
        parts = hold_out(sources, sources, {"dev": 3, "test": 2})
    except Misuse:
        assume(False)
    assert LEFT_OUT not in parts


def test_the_order_of_the_pairs_does_not_matter_but_the_seed_does():
    texts = [f"text {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(400)]

    def held_out(order, seed):
        keys = hashes((text_key(texts[n]) for n in order), seed)
        parts = hold_out(keys, keys, {"dev": None, "test": None})
        return {part: {texts[n] for n, each in zip(order, parts, strict=True) if each == part} for part in (1, 2)}

    forward = held_out(range(400), 1)
    assert Counter({part: len(found) for part, found in forward.items()}) == {1: 40, 2: 40}
    assert held_out(range(399, -1, -1), 1) == forward
    assert held_out(range(400), 2) != forward
