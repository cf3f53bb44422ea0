"""Outputs of models that read and write pieces and copy whole words: what has to hold whatever the weights are."""

import numpy as np
import pytest
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_kinds import KINDS, NAMES, settings_of

import pointing
from pointing.generation.beam import Hypothesis
from pointing.generation.reader import Line
from pointing.generation.writer import Writer
from pointing.text.forms import CAPITAL, JOINED, WITHIN_WORD
from pointing.text.subwords import Merges
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import EOS, UNK, Vocabulary

PIECES = {"text": {"subwords": "bpe", "tokenizer": "regex", "protect": "software", "forms": True}}
WORDS = {"pointers": {"places": "words"}, "vocabulary": {"source": 30, "target": 30}}
LINES = ["a b name77 c", "", "Zorblatt-12: %s of {count} a", "name1 name1 name2", "d" * 150 + " e"]
KIND = pytest.mark.parametrize("model", ["gru", "transformer", "transformer-ssru"], indirect=True)


@pytest.fixture(scope="module")
def model(request, tmp_path_factory):
    kind = KINDS[NAMES.index(request.param)]
    folder = tmp_path_factory.mktemp("run")
    return pointing.load(tiny.untrained(folder, PIECES, WORDS, {"model": settings_of(kind)}))


@KIND
def test_copied_words_are_their_characters_and_spans_come_once(model):
    for output, line in zip(model.generate(LINES, beam=4, nbest=4), LINES, strict=True):
        for one in [output, *output.alternatives]:
            for token in one.tokens:
                if token.origin == "copied":
                    assert line[slice(*token.span)].lower() == token.text.lower()
                assert one.text[slice(*token.output)] == token.text
            for span in ("%s", "{count}"):
                assert [token.text for token in one.tokens].count(span) == line.count(span)


@KIND
def test_lines_together_are_the_lines_one_by_one(model):
    together = model.generate(LINES, beam=3)
    assert [output.text for output in together] == [model.generate(line, beam=3).text for line in LINES]


@KIND
def test_a_glossarys_term_is_written_exactly_once(model):
    for line in ("a name77 b", "name77", "x name77 %s"):
        output = model.generate(line, glossary={"name77": "ein Begriff"}, beam=3)
        assert [token.text for token in output.tokens].count("ein Begriff") == 1
        assert "ein Begriff" in output.text


@KIND
def test_a_term_is_read_in_pieces_of_words_that_the_encoder_knows(model):
    def reading(line, **terms):
        (read,) = model.read([line], None, model.glossary(**terms) if terms else None)
        return read.reading.ids.tolist(), read.reading.counts.tolist()

    line = "a name77 c"
    assert reading(line, keep=["name77"]) == reading(line)
    assert reading(line, terms={"name77": "ein Begriff"}) == reading(line)
    assert reading(line, terms={"name77 c": "ein Begriff"}) == reading("a c")  # its last word
    assert reading(line, keep=["name77 c"]) == reading("a name77c")  # all of its words, as one name
    assert reading(line, keep=["a"]) == reading(line)


@KIND
def test_with_few_candidates_a_line_has_the_same_output_alone_and_among_others(model):
    together = model.generate(LINES, large_vocabulary=5, beam=3)
    assert [output.text for output in together] == [model.generate(x, large_vocabulary=5, beam=3).text for x in LINES]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.text(st.sampled_from("ab Z-%s{}İé\u0300 \u2028\u202e@"), max_size=40))
@pytest.mark.parametrize("model", ["transformer"], indirect=True)
def test_any_text_goes_in(model, line):
    output = model.generate(line, beam=2)
    for token in output.tokens:
        assert output.text[slice(*token.output)] == token.text
        if token.origin == "copied":
            assert token.source is not None


# the writer, by hand


def write(choices, forms, text, pieces, writings=None):
    """What a writer makes of choices: a piece as text, or a number of a source word."""
    vocabulary = Vocabulary(pieces, [9] * len(pieces), merges=Merges([]), writings=writings)
    numbers = {"?": UNK} | {piece: vocabulary[piece] for piece in pieces}
    ids = [numbers.get(choice, len(vocabulary) + choice if isinstance(choice, int) else UNK) for choice in choices]
    ids.append(EOS)
    starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == " ")]
    words = text.split(" ")
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    line = Line(text, *(np.array(x) for x in (starts, ends, [UNK] * len(words), [0] * len(words))), [None] * len(words))
    T = len(ids)
    log_p, d, location = np.log(np.full(T, 0.5)), np.linspace(0, 1, T), np.full((T, len(words) + 1), 0.25)
    hypothesis = Hypothesis(np.array(ids), log_p, d, location, -1.0, np.array([*forms, 0]))
    return Writer(vocabulary, Tokenizer(lowercase=True), forms=True).write([hypothesis], line, 1)


def test_pieces_are_joined_and_copies_stand_between_them():
    pieces = ["neu@@ ", "er", "-", "server", "ein"]
    forms = [CAPITAL, WITHIN_WORD, CAPITAL, 4 * JOINED, 4 * JOINED + CAPITAL]
    output = write(["neu@@ ", "er", 1, "-", "server"], forms, "the tango", pieces)
    assert output.text == "Neuer Tango-Server"
    assert [token.origin for token in output.tokens] == ["shortlist", "copied", "shortlist", "shortlist"]
    assert [token.probability for token in output.tokens] == pytest.approx([0.25, 0.5, 0.5, 0.5])
    assert output.tokens[0].d == pytest.approx(0.1)  # the mean of 0 and 1/5
    assert output.tokens[1].span == (4, 9)
    assert [token.location.shape for token in output.tokens] == [(2,)] * 4


def test_a_word_that_a_copy_cuts_off_ends_there():
    output = write(["neu@@ ", 0, "er"], [0, 0, 0], "tango", ["neu@@ ", "er"])
    assert output.text == "neu tango er"


def test_an_unknown_piece_is_a_word_of_its_own():
    output = write(["neu@@ ", "?", "er"], [0, 0, 0], "tango", ["neu@@ ", "er"])
    assert output.text == "neu <unk> er"


def test_a_whole_word_has_its_usual_writing_and_the_end_of_another_has_not():
    pieces, writings = ["zeit@@ ", "daten"], {"daten": "Daten"}
    assert write(["daten"], [0], "x", pieces, writings).text == "Daten"
    assert write(["zeit@@ ", "daten"], [0, WITHIN_WORD], "x", pieces, writings).text == "zeitdaten"


def test_a_line_of_a_run_that_points_at_pieces_takes_no_terms(tmp_path):
    folder = tiny.untrained(tmp_path, {"text": {"subwords": "bpe"}, "vocabulary": {"source": 30, "target": 30}})
    assert not pointing.load(folder).read.takes_terms
