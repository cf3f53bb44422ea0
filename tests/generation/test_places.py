"""Where each word of an output stands in the text that is delivered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generator import make
from test_generator import pointing_at_everything as pointing
from test_glossary import make as make_with_forms
from test_output import PIECES as VOCABULARY_OF_PIECES
from test_output import Z, hypothesis, pieces

from pointing.config import Search
from pointing.generation.output import Output, parts, places
from pointing.generation.reader import Line
from pointing.generation.writer import Writer
from pointing.text.forms import FORMS, join
from pointing.text.tokenizer import Tokenizer

WORDS = ["a", "l'", "État", "'", '"', "``", "''", "'s", "«", "»", "(", ")", ".", "?", "$", "@-@", "/", "字", "ア", "%s"]
SPACED = [*WORDS, "error log", "journal : x", "a @-@ b", "x\u00a0:"]


def check(text, words, found, same=str):
    """Each place is its word, in order; outside there is white space alone. `same` is what may differ in a word."""
    at = 0
    for word, (start, end) in zip(words, found, strict=True):
        assert at <= start < end <= len(text)
        assert text[at:start].strip() == ""
        assert same(text[start:end]) == same(word)
        assert text[start:end] == text[start:end].strip()
        at = end
    assert text[at:].strip() == ""


def check_output(output):
    for each in (output, *output.alternatives):
        check(each.text, [token.text for token in each.tokens], [token.output for token in each.tokens])
        assert "".join(text for text, _ in parts(each)) == each.text


def test_by_hand():
    assert places("L'État a dit\u00a0: oui.", ["L'", "État", "a", "dit", ":", "oui", "."]) == [
        *((0, 2), (2, 6), (7, 8), (9, 12), (13, 14), (15, 18), (18, 19))
    ]
    assert places("a-b c", ["a", "@-@", "b", "c"]) == [(0, 1), (1, 2), (2, 3), (4, 5)]  # as Moses joins it
    assert places("l'accès : non", ["l' accès:", "non"]) == [(0, 9), (10, 13)]  # it moves spaces inside of terms


@given(st.lists(st.sampled_from(SPACED)), st.sampled_from(["en", "fr"]), st.sampled_from(["regex", "whitespace"]))
def test_words_that_are_joined_by_rules(words, language, kind):
    text = Tokenizer(kind, language).detokenize(words)
    check(text, words, places(text, words))


MOSES = {language: Tokenizer("moses", language) for language in ("en", "fr", "cs", "fi")}


@given(st.lists(st.sampled_from(SPACED)), st.sampled_from(sorted(MOSES)))
def test_words_that_moses_joins(words, language):
    text = MOSES[language].detokenize(words)
    found = places(text, words)
    assert "".join(text.split()).replace("@-@", "-") == "".join("".join(words).split()).replace("@-@", "-")
    check(text, words, found, same=lambda word: "".join(word.split()).replace("@-@", "-"))


@given(st.lists(st.tuples(st.sampled_from(SPACED), st.integers(0, FORMS - 1))))
def test_words_that_are_joined_by_their_forms(words):
    text = join(words)
    check(text, [word for word, _ in words], places(text, [word for word, _ in words]))


FRAGMENTS = ["the ", "File", "error log", "%s", "%d%%", "<b>", "</b>", ". ", "GNOME ", "saw", " ", "É", "--help", "字"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join), st.integers(0, 5))
def test_forms_protected_spans_and_terms_of_several_words(line, seed):
    generator = make_with_forms(seed)
    terms = {"file": "le dossier", "error log": "Journal : erreurs"}
    output = generator.generate(line, beam=2, nbest=2, max_length=12, glossary=terms, keep=["GNOME"])
    check_output(output)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), st.booleans())
@pytest.mark.parametrize("tokenizer", ["regex", "whitespace"])
def test_any_text(tokenizer, line, points):
    generator = (pointing if points else make)(tokenizer=tokenizer)
    check_output(generator.generate(line, Search(beam=2, nbest=2, max_length=8)))


def test_words_of_pieces():
    output = Writer(VOCABULARY_OF_PIECES, Tokenizer("whitespace")).write(
        [hypothesis(2, Z, Z + 1, Z + 2, 3)], pieces(), 1
    )
    assert [(token.text, token.output) for token in output.tokens] == [
        *(("voit", (0, 4)), ("ZorBlatt", (5, 13)), ("zor", (14, 17)))
    ]
    check_output(output)


def test_an_older_file_of_outputs_gets_its_places():
    token = {"origin": "shortlist", "source": None, "span": None, "probability": 0.5, "shortlist": 0.5}
    values = {
        "line": 1,
        "text": "l'État.",
        "score": -1.0,
        "tokens": [{**token, "text": w} for w in ("l'", "État", ".")],
    }
    nothing = np.zeros(0, np.int32)
    output = Output.from_json(values, Line("", nothing, nothing, nothing, nothing, []))
    assert [token.output for token in output.tokens] == [(0, 2), (2, 6), (6, 7)]
    assert Output.from_json(output.json(), output.source) == output
