import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointing.text.token_arrays import WHITE_SPACE, from_tokens, tokenize_lines, unique_numbers
from pointing.text.tokenizer import Tokenizer


def unpacked(arrays):
    """[(word, start, end), …] for each line."""
    tokens = list(zip((arrays.words[i] for i in arrays.ids), arrays.starts.tolist(), arrays.ends.tolist(), strict=True))
    at, lines = 0, []
    for count in arrays.counts.tolist():
        lines.append(tokens[at : at + count])
        at += count
    assert at == len(tokens)
    return lines


@pytest.mark.parametrize("kind", ["regex", "whitespace", "moses"])
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.text(max_size=20) | st.text("a'b. \t", max_size=12), max_size=6))
@example(lines=[])
@example(lines=["", " ", "a"])
@example(lines=["a b", "a  b", " a b ", "", "a\tb.", "don't don't", ""])
def test_many_lines_at_once_equal_line_by_line(kind, lines):
    tokenizer = Tokenizer(kind, lowercase=True)
    expected = [list(zip(*tokenizer(line), strict=True)) for line in lines]
    assert unpacked(tokenize_lines(tokenizer, lines)) == expected
    assert unpacked(from_tokens([tokenizer(line) for line in lines])) == expected


def test_all_white_space_is_known():
    assert [code for code in range(sys.maxunicode + 1) if chr(code).isspace()] == np.flatnonzero(WHITE_SPACE).tolist()


def test_equal_values_have_one_number():
    different, numbers = unique_numbers(["b", "a", "b", "c", "a"])
    assert different == ["b", "a", "c"]
    assert numbers.tolist() == [0, 1, 0, 2, 1]


def test_truncated_lines_keep_their_first_tokens():
    tokenizer = Tokenizer("whitespace")
    arrays = tokenize_lines(tokenizer, ["a b c", "", "d", "e f"])
    assert arrays.positions().tolist() == [0, 1, 2, 0, 0, 1]
    assert unpacked(arrays.truncate(2)) == unpacked(tokenize_lines(tokenizer, ["a b", "", "d", "e f"]))


@given(st.lists(st.tuples(st.text("ab '", max_size=8), st.booleans()), max_size=8))
def test_selected_lines_are_those_lines(chosen):
    tokenizer = Tokenizer("regex")
    lines, keep = [line for line, _ in chosen], np.array([kept for _, kept in chosen], bool)
    selected = tokenize_lines(tokenizer, lines).select(keep)
    assert unpacked(selected) == unpacked(tokenize_lines(tokenizer, [line for line, kept in chosen if kept]))
