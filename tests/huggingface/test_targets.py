"""What is taught: a copied word is one step, and the text comes back from the labels."""

import pytest
import small
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_pieces import TOKENIZERS

from pointing.errors import Misuse
from pointing.huggingface.pieces import PieceTokenizer
from pointing.huggingface.spacing import has_space
from pointing.huggingface.targets import TargetWriter, count_words
from pointing.huggingface.writing import Choices, write

WORDS = [
    "hal9000",
    "lib-foo",
    "1.2.3",
    "a",
    "la",
    "l’",
    "l'",
    "(",
    ")",
    '"',
    "'",
    ",",
    ".",
    "«",
    "»",
    "-",
    "–",
    "/",
    "$",
]
LINES = st.lists(st.sampled_from([*WORDS, " ", " ", " ", " "]), max_size=14).map("".join)


@pytest.fixture(scope="module", params=TOKENIZERS)
def pieces(request):
    return PieceTokenizer(TOKENIZERS[request.param]())


@pytest.fixture(scope="module")
def bart():
    return PieceTokenizer(small.bart_tokenizer())


def text(labels, source, pieces):
    none = [0.0] * len(labels)
    return write(Choices(labels, none, none, 0.0), source, pieces, len(pieces.tokenizer), 1).text


def copied(labels, source, pieces):
    V = len(pieces.tokenizer)
    return [source.words[label - V] for label in labels if label >= V]


def test_the_demos_targets_come_back_from_their_labels(pieces):
    learn = TargetWriter(pieces, len(pieces.tokenizer))
    for line, target in small.text()[1]:
        source = pieces.source(line)
        assert text(learn(source, target), source, pieces) == target


def test_a_copied_word_is_one_step_however_many_pieces_it_has(pieces):
    learn = TargetWriter(pieces, len(pieces.tokenizer))
    source = pieces.source("ask Zorblatta to upgrade libhal9000-quux")
    labels = learn(source, "demandez à Zorblatta , libhal9000-quux")
    V = len(pieces.tokenizer)
    assert [label - V for label in labels if label >= V] == [1, 4]
    assert len(labels) < len(pieces.target("demandez à Zorblatta , libhal9000-quux").ids) - 10
    assert text(labels, source, pieces) == "demandez à Zorblatta , libhal9000-quux"


def test_what_the_tokenizer_puts_around_a_line_stays_around_its_labels(pieces):
    source, target = pieces.source("ask hal9000"), "hal9000"
    labels, whole = TargetWriter(pieces, len(pieces.tokenizer))(source, target), pieces.target(target).ids
    empty = pieces.target("").ids  # such as the language and the end
    assert len(labels) == len(empty) + 1 < len(whole)
    assert [label for label in labels if label < len(pieces.tokenizer)] == empty


@settings(deadline=None)
@given(LINES)
@example("« hal9000 » - lib-foo / 1.2.3 'hal9000' \"lib-foo\" (1.2.3) l’hal9000 hal9000–lib-foo")
def test_pointers_change_no_target_text(bart, line):
    line = " ".join(line.split())
    source = bart.source(line)
    labels = TargetWriter(bart, len(bart.tokenizer), "all")(source, line)
    assert text(labels, source, bart) == line
    if "hal9000 lib-foo" in line:
        assert copied(labels, source, bart)


def test_policies_by_hand(bart):
    source = bart.source("the documentation of quuxly and 7 quuxly")
    target = "la documentation de quuxly 7"
    assert bart.tokenizer.tokenize(" documentation") == ["Ġdocumentation"]

    def taught(policy, **options):
        return copied(TargetWriter(bart, len(bart.tokenizer), policy, **options)(source, target), source, bart)

    assert taught("cut") == ["quuxly", "7"]
    assert taught("all") == ["documentation", "quuxly", "7"]
    counts = count_words(["la documentation"] * 5 + ["quuxly"])
    assert taught("rare", counts=counts) == ["quuxly", "7"]
    assert taught("rare", counts=counts, min_count=6) == ["documentation", "quuxly", "7"]
    assert taught("rare", counts=counts, min_count=1) == ["7"]


def test_a_word_that_shares_a_piece_with_its_neighbour_is_no_pointer(bart):
    source = bart.source("ask hal9000")
    line = "hal9000."
    learn = TargetWriter(bart, len(bart.tokenizer))
    assert copied(learn(source, line), source, bart) == ["hal9000"]
    shared = bart.target(line)._replace(spans=[(-1, -1), (0, 5), (5, 8), (-1, -1)])
    bart.target = lambda _: shared
    assert copied(learn(source, line), source, bart) == []
    del bart.target


def test_a_policy_that_is_not_there_and_counts_that_are_missing_are_said(bart):
    with pytest.raises(Misuse, match="no policy 'some' for pointers, only cut, rare, all"):
        TargetWriter(bart, 400, "some")
    with pytest.raises(Misuse, match=r"needs counts .* counts=count_words\(target_lines\)"):
        TargetWriter(bart, 400, "rare")


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("", "hal9000", False),
        ("sur", "hal9000", True),
        ("sur ", "hal9000", False),
        ("(", "hal9000", False),
        ("sur (", "hal9000", False),
        ("de l’", "hal9000", False),
        ("the users'", "hal9000", True),
        ("dit '", "hal9000", False),
        ('dit "', "hal9000", False),
        ('"dit"', "hal9000", True),
        ("x -", "hal9000", True),
        ("x-", "hal9000", False),
        ("hal9000", ",", False),
        ("安装", "hal9000", False),
    ],
)
def test_the_rule_of_spaces(before, word, expected):
    assert has_space(before, word) is expected
