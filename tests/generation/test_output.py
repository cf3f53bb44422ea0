"""From choices to words with their origin, and how they are shown."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.generation.beam import Hypothesis
from pointing.generation.html_page import page
from pointing.generation.output import Output, Token, show
from pointing.generation.reader import Line, Pieces
from pointing.generation.writer import Writer
from pointing.system.terminal import visible
from pointing.text.subwords import Merges
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

TARGET = Vocabulary(["wins", "record", "world", "."], [4, 3, 2, 1], placeholders=2)
V = len(TARGET)
TEXT = "China 's  TANG Gonghong wins"


def line(translated=(None,) * 5, text=TEXT):
    tokens = Tokenizer("whitespace")(text)
    spans = np.array(tokens.starts, np.int32), np.array(tokens.ends, np.int32)
    ids = np.array([1, FIRST, 1, 1, 7], np.int32)[: len(tokens.words)]
    return Line(text, *spans, ids, np.array([V, FIRST, V + 2, V + 3, V - 4], np.int32), list(translated))


def hypothesis(*choices, score=-1.5, location=None):
    T = len(choices) + 1
    log_p = np.log(np.linspace(0.9, 0.5, T)).astype(np.float32)
    d = np.linspace(0.1, 0.7, T).astype(np.float32)
    return Hypothesis(np.array([*choices, EOS]), log_p, d, location, score)


def writer(**more):
    return Writer(TARGET, Tokenizer("regex"), **more)


def test_words_and_their_origin():
    # the shortlist's `wins`, position 3, the dictionary's word for position 2, the entity of id 1, the full stop
    output = writer().write([hypothesis(4, V + 3, V + 2, FIRST, 7)], line((None, None, "tang", None, None)), 7)
    assert output.text == "wins Gonghong tang's."
    assert output.tokenized == "wins Gonghong tang 's ."
    assert [token.origin for token in output.tokens] == ["shortlist", "copied", "translated", "copied", "shortlist"]
    assert [token.source for token in output.tokens] == [None, 3, 2, 1, None]
    assert [token.span for token in output.tokens] == [None, (15, 23), (10, 14), (6, 8), None]


PIECES = Vocabulary(["voit", "zor@@ ", "s", "<unk>"], [4, 3, 2, 1], merges=Merges([]))  # 2, 3, 4, 5
Z = len(PIECES)
SPLIT = "ZorBlatt sees İx", ["zor@@ ", "bla@@ ", "tt", "se@@ ", "es", "i̇@@ ", "x"]


def pieces():
    """ZorBlatt in three pieces, sees in two, İx, which is one character longer in the model's form, in two."""
    text, forms = SPLIT
    spans = np.array([[0, 3, 6, 9, 11, 14, 14], [3, 6, 8, 11, 13, 16, 16]], np.int32)
    words = Line(text, np.array([0, 9, 14]), np.array([8, 13, 16]), np.full(3, UNK), Z + np.arange(3), [None] * 3)
    word = np.array([0, 0, 0, 1, 1, 2, 2], np.int32)
    return Line(text, *spans, np.full(7, UNK), Z + np.arange(7), [None] * 7, pieces=Pieces(forms, word, words))


def described(hypothesis, **more):
    tokens = Writer(PIECES, Tokenizer("whitespace"), **more).write([hypothesis], pieces(), 1).tokens
    return [(token.text, token.origin, token.source, token.span) for token in tokens]


OURS = "shortlist", None, None


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ((2, Z, Z + 1, Z + 2), [("voit", *OURS), ("ZorBlatt", "copied", 0, (0, 8))]),
        ((Z + 1, Z + 2, Z + 3, Z + 4), [("Blatt", "copied", 0, (3, 8)), ("sees", "copied", 1, (9, 13))]),
        ((Z, Z + 2), [("zortt", *OURS)]),  # not one place
        ((Z, Z + 3, Z + 4), [("zorsees", *OURS)]),
        ((3, Z + 1, Z + 2), [("zorblatt", *OURS)]),  # half of it from the shortlist
        ((Z + 5, Z + 6), [("İx", "copied", 2, (14, 16))]),
        ((Z + 5, 4, Z + 6, 4), [("i̇s", *OURS), ("x", *OURS), ("s", *OURS)]),  # nobody knows which characters these were
        ((3, UNK, 4), [("zor", *OURS), ("<unk>", *OURS), ("s", *OURS)]),
        ((3, 5), [("zor<unk>", *OURS)]),  # the text's own <unk> is a piece like any other
        ((2, 3), [("voit", *OURS), ("zor", *OURS)]),  # cut off by the end
    ],
)
def test_pieces_are_joined_to_words_with_one_origin(choices, expected):
    assert described(hypothesis(*choices)) == expected


def test_a_word_of_pieces_has_their_probability_the_mean_of_their_switches_and_attention_to_words():
    location = np.array([[0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0], [0, 0, 0.5, 0, 0, 0, 0.5, 0], [0] * 8], np.float32)
    hypo = Hypothesis(np.array([Z + 1, Z + 2, EOS]), np.log([0.5, 0.4, 1]), np.array([0.2, 0.1, 1]), location, -1.0)
    output = Writer(PIECES, Tokenizer("whitespace")).write([hypo], pieces(), 1)
    (token,) = output.tokens
    assert token.probability == pytest.approx(0.2)
    assert token.d == pytest.approx(0.15)
    np.testing.assert_allclose(token.location, [0.55, 0.2, 0.25], rtol=1e-6)
    assert "ZorBlatt₀ sees İx" in show(output).plain


def test_unknown_pieces_are_replaced_one_by_one_and_joined():
    location = np.zeros((3, 8), np.float32)
    location[0, 3] = location[1, 4] = 1
    found = hypothesis(UNK, UNK, location=location)
    assert described(found, unk_replace=True) == [("sees", "copied", 1, (9, 13))]


def test_json_is_the_contracts():
    output = writer().write([hypothesis(V + 3)], line(), 3)
    assert json.loads(json.dumps(output.json())) == {
        "line": 3,
        "text": "Gonghong",
        "score": -1.5,
        "tokens": [
            {
                "text": "Gonghong",
                "origin": "copied",
                "source": 3,
                "span": [15, 23],
                "output": [0, 8],
                "probability": 0.9,
                "shortlist": 0.1,
            }
        ],
    }


def test_alternatives_never_repeat_a_text():
    found = [hypothesis(4, score=-1), hypothesis(V + 4, score=-2), hypothesis(5, score=-3), hypothesis(score=-4)]
    output = writer().write(found, line(), 1)
    assert [one.text for one in (output, *output.alternatives)] == ["wins", "record", ""]
    assert [one["score"] for one in output.json()["alternatives"]] == [-3, -4]


def test_no_hypothesis_is_an_empty_output():
    output = writer().write([], line(text=""), 2)
    assert (output.text, output.score, output.tokens, output.line) == ("", 0.0, [], 2)


def test_an_unknown_word_is_replaced_only_when_asked_for():
    location = np.array([[0.1, 0.0, 0.2, 0.3, 0.1, 0.3], [0, 0, 0, 0, 0, 1]], np.float32)  # the last is the end
    found = [hypothesis(UNK, location=location)]
    assert writer().write(found, line(), 1).text == "<unk>"
    (token,) = writer(unk_replace=True).write(found, line(), 1).tokens
    assert (token.text, token.origin, token.source) == ("Gonghong", "copied", 3)


def test_an_entity_that_the_model_made_up_is_unknown():
    assert writer().write([hypothesis(FIRST + 1)], line(), 1).text == "<unk>"


def test_what_is_shown_says_where_each_word_came_from():
    shown = show(writer().write([hypothesis(4, V + 3, FIRST, 6, 7)], line(), 1))
    assert shown.plain == "China 's₁  TANG Gonghong₃ wins\n→ wins Gonghong₃'s₁ world."  # with its spaces
    assert {"bold green"} == {str(span.style) for span in shown.spans if span.style not in ("dim", "")}
    assert "\x1b" not in show(writer().write([hypothesis(4)], line(text="a \x1b[31m[red]b\x9b"), 1)).plain


class PageReader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = PageReader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_links_copied_words_and_needs_nothing_else():
    location = np.array([[0.005, 0.0, 0.2, 0.7, 0, 0.095], [0, 0, 0, 0, 0, 1]], np.float32)
    found = [hypothesis(V + 3, location=location), hypothesis(4)]
    html = "".join(page([writer().write(found, line(), 9)], "two & more"))
    reader = read(html)
    assert "http" not in html.replace("http-equiv", "")
    assert "src=" not in html
    links = [about for tag, about in reader.tags if tag == "a" and "href" in about]
    assert [(about["href"], about["data-looked"]) for about in links] == [("#l9w3", "2:0.20 3:0.70")]
    ids = [about["id"] for _, about in reader.tags if "id" in about]
    assert ids == ["l9", *(f"l9w{n}" for n in range(5))]
    assert "two &amp; more" in html


def test_the_page_shows_the_text_as_it_is_delivered_with_each_origin_in_its_colour():
    found = writer().write([hypothesis(4, V + 3, V + 2, FIRST, 7)], line((None, None, "tang", None, None)), 7)
    term = replace(found.tokens[1], origin="glossary")
    html = "".join(page([replace(found, tokens=[found.tokens[0], term, *found.tokens[2:]])]))
    assert found.text + " -1.500" in "".join(read(html).text)  # wins Gonghong tang's.
    for origin, position in (("glossary", 3), ("translated", 2), ("copied", 1)):
        assert f'<a class="{origin}" href="#l7w{position}"' in html
        assert f'<b id="l7w{position}" class="used {origin}">' in html
        assert f".{origin} {{ --origin: var(--{origin}) }}" in html


NASTY = st.text(st.sampled_from("<>&\"'/ab=\x00\x1b\u202e\ud800 é"), max_size=12)


@given(NASTY, NASTY, NASTY)
def test_nothing_in_a_text_becomes_part_of_the_page(source, word, title):
    nothing = np.array([], np.int32)
    raw = Line(source, nothing, nothing, nothing, nothing, [], source)
    token = Token(word, "shortlist", None, None, 0.5, 0.5, None)
    plain, ours = (
        read("".join(page([Output(1, one, 0.0, [some], raw._replace(text=text))], heading)))
        for one, some, text, heading in (
            ("x", Token("x", "shortlist", None, None, 0.5, 0.5, None), "x", "x"),
            (word, token, source, title),
        )
    )
    assert [tag for tag, _ in ours.tags] == [tag for tag, _ in plain.tags]
    assert visible(source).strip() in "".join(ours.text)
    "".join(ours.text).encode("utf-8")
