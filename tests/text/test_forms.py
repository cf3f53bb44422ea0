"""How words are written: case and spaces, from a raw line and back."""

import re
from itertools import islice

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointing.text.forms import (
    AS_IT_IS,
    CAPITAL,
    JOINED,
    LOWER,
    MIXED,
    NARROW,
    NO_BREAK,
    SPACE,
    UPPER,
    case_between,
    case_of,
    cases_between,
    form,
    join,
    space_before,
    usual_writings,
    write_word,
)
from pointing.text.protected import PRESETS, Protector, is_protected, kind_of, protected_text, protected_word
from pointing.text.token_arrays import from_tokens, tokenize_lines
from pointing.text.tokenizer import Tokenizer

SOFTWARE = Protector(PRESETS["software"])
CASES = [
    ("daten", "Daten", CAPITAL),
    ("Daten", "Daten", AS_IT_IS),
    ("Daten", "daten", LOWER),
    ("Daten", "DATEN", UPPER),
    ("iPhone", "IPhone", CAPITAL),
    ("iPhone", "iPhone", AS_IT_IS),
    ("straße", "STRASSE", UPPER),
    ("a", "A", CAPITAL),  # not UPPER: the first that fits
    ("gnome", "GnoMe", AS_IT_IS),  # nothing turns the one into the other
]


@pytest.mark.parametrize(("base", "written", "case"), CASES)
def test_the_case_between_a_base_and_its_writing(base, written, case):
    assert case_between(base, written) == case
    if written != "GnoMe":
        assert write_word(base, case) == written


def test_cases_of_many_tokens_are_those_of_each():
    bases, surfaces = [base for base, _, _ in CASES], [written for _, written, _ in CASES]
    numbers = np.array([3, 0, 8, 0, 5], np.int64)
    assert cases_between(bases, numbers, surfaces, numbers.astype(np.int32)).tolist() == [UPPER, CAPITAL, 0, CAPITAL, 0]
    assert cases_between(bases, numbers[:0], surfaces, numbers[:0].astype(np.int32)).tolist() == []


def test_the_case_of_a_source_word():
    words = ["file", "File", "GNU", "GtkBuilder", "5", "A", "«", "ß", "Éa"]
    cases = [AS_IT_IS, CAPITAL, UPPER, MIXED, AS_IT_IS, CAPITAL, AS_IT_IS, AS_IT_IS, CAPITAL]
    assert [case_of(word) for word in words] == cases


def test_a_form_is_a_space_and_a_case():
    spaces, cases = np.array([SPACE, JOINED, NO_BREAK, NARROW]), np.array([UPPER, LOWER, AS_IT_IS, CAPITAL])
    forms = form(spaces, cases).tolist()
    assert [space_before(number) for number in forms] == [" ", "", "\u00a0", "\u202f"]
    assert [write_word("wOrd", number) for number in forms] == ["WORD", "word", "wOrd", "WOrd"]


def test_nothing_stands_before_the_first_word():
    assert join([("»", 4 * SPACE), ("rohe", 4 * JOINED), ("«", 4 * JOINED), ("Daten", 4 * SPACE)]) == "»rohe« Daten"
    assert join([]) == ""


def test_the_usual_writing_is_that_inside_of_sentences():
    counts = {
        ("paket", "Paket"): (9, 7),
        ("paket", "paket"): (2, 2),
        ("die", "Die"): (30, 1),  # first words of sentences
        ("die", "die"): (20, 20),
        ("gnu", "GNU"): (3, 0),  # never inside, but nobody writes a first word so
        ("bietet", "Bietet"): (5, 0),  # a first word
        ("linux", "Linux"): (2, 2),
        ("linux", "LINUX"): (2, 2),
    }
    usual = usual_writings(counts)
    assert usual == {"paket": "Paket", "gnu": "GNU", "linux": "Linux"}


def test_writings_are_counted_after_words_and_in_all():
    tokens = tokenize_lines(Tokenizer(lowercase=True), ["Die Daten (Daten) %", "die daten"], writing=True)
    pairs, counts = tokens.count_writings()
    assert dict(zip(pairs, zip(*counts.tolist(), strict=True), strict=True)) == {
        "die\tDie": (1, 0),
        "daten\tDaten": (2, 1),  # the second one stands after a bracket
        "die\tdie": (1, 0),
        "daten\tdaten": (1, 1),
    }
    assert tokenize_lines(Tokenizer(), ["a"]).count_writings().pairs == []


def came_back(line, tokenizer):
    tokens = tokenize_lines(tokenizer, [line], writing=True)
    surfaces, ids, spaces = tokens.writing
    return join((surfaces[surface], 4 * space) for surface, space in zip(ids.tolist(), spaces.tolist(), strict=True))


LINES = [
    "»rohe« Daten, TSS- und USB-Geräte",
    "%s: cannot open '%s'",
    "Erreur\u00a0: «\u202ffichier\u202f» introuvable\u00a0!",
    'He said "hi" (and left). It\'s 5% of $3.50…',
    "日本語のDebianパッケージです。 次へ",
    '<a href="x y">here</a>&nbsp;{count}%(name)s\\n--help /usr/share/doc http://a.b/c?d',
    "%d%%%s%s",
    "<a\u00a0b='c'>d</a>",
    "",
]


@pytest.mark.parametrize("protector", [None, SOFTWARE])
@pytest.mark.parametrize("line", LINES)
def test_a_line_comes_back_to_the_character(line, protector):
    assert came_back(line, Tokenizer(lowercase=True, protector=protector)) == line


SIGNS = st.text(st.sampled_from("ab %s{}<>/\\&;$-'\"\u00a0\u202f\t字ア.é1:"), max_size=20)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30) | SIGNS)
@example("a \u00a0b")
@example("a  %s,")  # as long as its chunks with single spaces between
def test_any_line_comes_back_but_for_runs_of_white_space(line):
    def no_runs(text):  # of several kinds of white space in a row the special one is kept
        text = re.sub(r"\s*(?:(\u202f)|(\u00a0))\s*", lambda match: match[1] or match[2], text.strip())
        return re.sub(r"[^\S\u00a0\u202f]+", " ", text)

    for protector in (None, SOFTWARE):
        if protector is not None and any(line[s:e] != line[s:e].strip() or "  " in line for s, e, _ in SOFTWARE(line)):
            continue
        again = came_back(line, Tokenizer(protector=protector))
        assert "".join(again.split()) == "".join(line.split())
        if not re.search(r"\s{2}", line):
            assert again == no_runs(line)


def unpacked(arrays):
    """[(word, start, end, writing, space), …] for each line."""
    surfaces = [arrays.writing.surfaces[i] for i in arrays.writing.ids.tolist()]
    words = [arrays.words[i] for i in arrays.ids.tolist()]
    tokens = zip(words, arrays.starts.tolist(), arrays.ends.tolist(), surfaces, arrays.writing.spaces, strict=True)
    lines = [list(islice(tokens, count)) for count in arrays.counts.tolist()]
    assert next(tokens, None) is None
    return lines


PROTECTORS = [None, SOFTWARE, Protector(PRESETS["software"], ["b+", "a."])]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=15) | SIGNS, max_size=5), st.sampled_from(PROTECTORS))
@example(["a  %s,", "%s %s", "b"], SOFTWARE)
@example(["\u00a0a", "b\u00a0", "\u202f"], SOFTWARE)  # at the end of a line and at its start
@example(["%s%s", "a%sb%s", ""], SOFTWARE)
def test_lines_at_once_are_those_one_by_one(lines, protector):
    tokenizer = Tokenizer(lowercase=True, protector=protector)
    together = unpacked(tokenize_lines(tokenizer, lines, writing=True))
    assert together == [unpacked(tokenize_lines(tokenizer, [line], writing=True))[0] for line in lines]
    assert together == unpacked(from_tokens([tokenizer(line) for line in lines], lines))
    for line, tokens in zip(lines, together, strict=True):
        assert [token[:3] for token in tokens] == list(zip(*tokenizer(line), strict=True))
        assert [surface for *_, surface, _ in tokens] == [line[start:end] for _, start, end, _, _ in tokens]


@given(st.lists(st.text(max_size=15) | SIGNS, max_size=5), st.sampled_from(PROTECTORS))
@example(["%s %s"], SOFTWARE)  # two words that look the same
def test_each_writing_is_of_one_word(lines, protector):
    tokenizer = Tokenizer(lowercase=True, protector=protector)
    alone = from_tokens([tokenizer(line) for line in lines], lines)
    for tokens in (tokenize_lines(tokenizer, lines, writing=True), alone):
        assert (tokens.word_of_writing()[tokens.writing.ids] == tokens.ids).all()


def test_a_protected_span_is_one_token_and_each_occurrence_its_own_word():
    tokens = Tokenizer(lowercase=True, protector=SOFTWARE)("Copy '%s' to %S:%s")
    assert tokens.words == ["copy", "'", " printf 1 %s", "'", "to", " printf 1 %S", ":", " printf 2 %s"]
    assert [is_protected(word) for word in tokens.words] == [False, False, True, False, False, True, False, True]
    assert protected_text(tokens.words[2]) == protected_text(tokens.words[7]) == "%s"
    assert protected_text("plain") == "plain"
    assert kind_of(protected_word("tag", 1, '<a href="x y">')) == "tag"
    assert protected_text(protected_word("tag", 1, '<a href="x y">')) == '<a href="x y">'
    assert not is_protected(" 12")  # an entity's placeholder
