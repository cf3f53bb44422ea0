"""Words know their pieces, with fast tokenizers and with slow ones."""

import pytest
import small
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointing.huggingface.pieces import PieceTokenizer

TOKENIZERS = {
    "T5": small.t5_tokenizer,
    "BART": small.bart_tokenizer,
    "Marian": small.marian_tokenizer,
    "NLLB": small.nllb_tokenizer,
    "mBART": small.mbart_tokenizer,
}
LINE = "open nykiquun.txt  with lib-hal9000, please"
KNOWN = st.text("abcdefghilmnoprstuvxyz019.,-’éà ", max_size=40).map(lambda text: " ".join(text.split()))


@pytest.fixture(scope="module", params=TOKENIZERS)
def pieces(request):
    return PieceTokenizer(TOKENIZERS[request.param]())


@pytest.fixture(scope="module")
def slow():
    return PieceTokenizer(small.marian_tokenizer())


@pytest.fixture(scope="module")
def fast():
    return PieceTokenizer(small.t5_tokenizer())


def test_words_are_those_of_the_raw_line_and_their_pieces_spell_them(pieces):
    source = pieces.source(LINE)
    assert source.words == ["open", "nykiquun.txt", "with", "lib-hal9000", ",", "please"]
    assert [LINE[start:end] for start, end in zip(source.starts, source.ends, strict=True)] == source.words
    for word, (first, last) in zip(source.words, source.pieces, strict=True):
        assert pieces.text(source.ids[first:last]).strip() == word


def test_pieces_are_those_that_the_tokenizer_gives_to_the_line_as_a_whole(pieces):
    assert pieces.source(LINE).ids == pieces.tokenizer(LINE)["input_ids"]
    assert pieces.target(LINE).ids == pieces.tokenizer(text_target=LINE)["input_ids"]


def test_pieces_after_others_keep_their_space(pieces):
    source = pieces.source("open with, ask")
    first, (_, last), (_, end) = source.pieces[0][1], *source.pieces[1:3]
    assert pieces.text(source.ids[first:last]) == " with"
    assert pieces.text(source.ids[last:end]) == ","


@settings(deadline=None)
@given(KNOWN)
@example("’ a")
def test_a_slow_tokenizer_has_the_spans_of_the_fast_one_with_the_same_pieces(slow, fast, line):
    one, other = slow.source(line), fast.source(line)
    assert [k - 1 for k in other.ids] == [len(slow.tokenizer) - 1 if k == -1 else k for k in one.ids]
    assert (one.words, one.pieces) == (other.words, other.pieces)


def test_a_chunk_with_unknown_letters_is_read_from_all_of_its_pieces(slow):
    source = slow.source("open 語hal9000, please")
    positions = dict(zip(source.words, source.pieces, strict=True))
    tokens = slow.tokenizer.convert_ids_to_tokens(source.ids)
    assert "".join(tokens[slice(*positions["open"])]) == "▁open"
    assert positions["hal9000"] == positions[","]
    assert "<unk>" in tokens[slice(*positions["hal9000"])]
    assert "".join(tokens[slice(*positions["please"])]) == "▁please"


def test_words_that_are_cut_off_are_no_places(pieces):
    whole = pieces.source(LINE)
    short = PieceTokenizer(pieces.tokenizer, longest=len(whole.ids) - 6).source(LINE)
    assert len(short.ids) == len(whole.ids) - 6
    assert short.words == whole.words[: len(short.words)]
    assert 0 < len(short.words) < len(whole.words)


def test_a_prefix_is_read_and_is_no_place(pieces):
    with_prefix = PieceTokenizer(pieces.tokenizer, prefix="please install: ").source("open hal9000")
    assert with_prefix.ids == pieces.tokenizer("please install: open hal9000")["input_ids"]
    assert with_prefix.words == ["open", "hal9000"]
    assert with_prefix.starts == [0, 5]
    first, last = with_prefix.pieces[1]
    assert pieces.text(with_prefix.ids[first:last]).strip() == "hal9000"


def test_an_empty_line_has_no_places(pieces):
    assert pieces.source("").words == pieces.source("  ").words == []
