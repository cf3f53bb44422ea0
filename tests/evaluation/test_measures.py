"""Every measure of one system: in which form words are compared, and the switch as validation measures it."""

import gzip
from collections import Counter

import numpy as np
import pytest
import tiny
import torch
from sacrebleu import corpus_bleu

from pointing.corpus.preparation import prepare
from pointing.evaluation.measures import (
    copy_measures,
    cut,
    form,
    frequencies,
    line,
    switch_measures,
    text_measures,
    words,
)
from pointing.generation.output import Output, Token
from pointing.generation.reader import Line
from pointing.model.run import load_run
from pointing.system.world import Processes
from pointing.text.entities import read_tags
from pointing.text.tokenizer import Tokenizer
from pointing.training.validation import validate

PLAIN = Tokenizer(unicode="keep")
FOLDED = Tokenizer(lowercase=True, digits="fold")


def scores(measures):
    return {measure.name: measure.score for measure in measures}


def signature(measures, name):
    return next(measure.signature for measure in measures if measure.name == name)


def output(source, *tokens):
    """An output of (text, position in the source or None) on a source of words with single spaces."""
    ends = np.cumsum([len(word) + 1 for word in source.split()]) - 1
    starts = ends - [len(word) for word in source.split()]
    read = Line(source, starts, ends, np.zeros(len(ends)), np.zeros(len(ends)), [None] * len(ends))
    made = [
        Token(text, "shortlist" if at is None else "copied", at, None if at is None else (starts[at], ends[at]), 0.5, 1)
        for text, at in tokens
    ]
    return Output(1, "".join(text for text, _ in tokens), -1.0, made, read)


def test_the_forms_name_says_what_is_done():
    assert form(PLAIN) == ""
    assert form(FOLDED) == "nfc,lower,digits"
    assert form(Tokenizer(unicode="nfkc")) == "nfkc"


def test_a_copied_name_is_right_in_the_models_form_and_wrong_as_it_is():
    said, meant = ["Zoë paid 12 Euros"], [["zoe\u0308 paid 34 euros"]]
    folded, plain = text_measures(said, meant, FOLDED), text_measures(said, meant, PLAIN)
    assert scores(folded)["exact match"] == scores(folded)["BLEU"] == pytest.approx(100)
    assert scores(plain)["exact match"] == scores(plain)["BLEU, tokenised"] == 0
    assert signature(folded, "BLEU").endswith("|form:nfc,lower,digits")
    assert signature(folded, "BLEU, tokenised").endswith("|as:multi-bleu.perl|tokens:regex|form:nfc,lower,digits")
    assert "form:" not in signature(plain, "BLEU")


def test_bleu_is_sacrebleus_of_the_same_text():
    said = ["The cat sat on the mat , today .", "It is a Dog"]
    meant = [["The cat sat on a mat, today.", "it is a dog"], ["A cat was on the mat.", "It was a dog"]]
    assert scores(text_measures(said, meant, PLAIN))["BLEU"] == pytest.approx(corpus_bleu(said, meant).score)
    lower = [[text.lower() for text in reference] for reference in meant]
    expected = corpus_bleu([text.lower() for text in said], lower).score
    assert scores(text_measures(said, meant, Tokenizer(lowercase=True)))["BLEU"] == pytest.approx(expected)


def test_every_text_measure_is_there_once():
    assert list(scores(text_measures(["a"], [["a"]], PLAIN))) == [
        "BLEU, tokenised", "BLEU", "chrF2",
        "ROUGE-1 F1", "ROUGE-1 recall", "ROUGE-2 F1", "ROUGE-2 recall", "ROUGE-L F1", "ROUGE-L recall",
        "ROUGE-1 recall, 75 bytes", "ROUGE-2 recall, 75 bytes", "ROUGE-L recall, 75 bytes", "exact match",
    ]  # fmt: skip


def test_an_outputs_words_are_those_that_the_model_wrote():
    said = output("Mc,Ewan", ("Mc,Ewan", 0), ("!", None))
    assert words(said, FOLDED) == ["mc,ewan", "!"]
    assert words("Mc,Ewan!", FOLDED) == ["mc", ",", "ewan", "!"]
    assert line(said, FOLDED) == line("Mc,Ewan!", FOLDED) == "mc,ewan!"


def test_copies_by_hand():
    # Zoe is copied and right, Max is copied and wrong; of the reference's two words outside the shortlist one is there.
    said = [output("Zoe met Max 1", ("Zoe", 0), ("a", None), ("Max", 2))]
    both = Tokenizer("whitespace", lowercase=True), Tokenizer("whitespace", lowercase=True)
    measures = copy_measures(
        said, ["Zoe met Max 1"], [["zoe a ann"]], both, {"a"}, frequency={"a": 5}, seen_in="t.fr", unk="<unk>"
    )
    found = scores(measures)
    assert found["out-of-shortlist recall"] == found["out-of-shortlist precision"] == found["copies right"] == 50
    assert found["copied words per 100 outputs"] == 200
    assert found["words invented"] == found["UNKs left"] == 0
    assert found["recall of words seen 0 times"] == 50
    assert found["recall of words seen 1–9 times"] == 100
    assert signature(measures, "copies right").endswith("|tokens:whitespace|form:nfc,lower")
    assert "|seen-in:t.fr|" in signature(measures, "recall of words seen 0 times")


def test_of_files_there_are_no_origins_and_of_several_references_the_closest_counts():
    both = PLAIN, PLAIN
    references = [["b c d", "z"], ["x y", "z"]]
    measures = copy_measures(["x y UNK", "z v"], ["x", "z"], references, both, {"z"}, unk="UNK")
    found = scores(measures)
    assert found["out-of-shortlist recall"] == 100
    assert found["words invented"] == 2  # y and v
    assert found["UNKs left"] == 1
    assert "copies right" not in found
    assert "|closest-of:2|" in signature(measures, "UNKs left")


def test_words_are_counted_as_the_model_reads_them(tmp_path):
    text = b"Zoe paid 12\n\nzoe l'a vu 34\n\xff 56\n"
    (tmp_path / "t").write_bytes(text)
    with gzip.open(tmp_path / "t.gz", "wb") as file:
        file.write(text)
    expected = {"zoe": 2, "paid": 1, "##": 3, "l'": 1, "a": 1, "vu": 1, "�": 1}
    assert frequencies(tmp_path / "t", FOLDED) == frequencies(tmp_path / "t.gz", FOLDED) == expected


def test_words_are_cut_as_their_tags_are_where_these_are_theirs(tmp_path):
    texts = ["I won't stop", "other words", "no tags"]
    (tmp_path / "t").write_text("\n".join(texts) + "\n")
    (tmp_path / "tags").write_text("I￨O wo￨O n't￨O stop￨B\nanother￨O line￨O\n")
    expected = [["i", "wo", "n't", "stop"], ["other", "words"], ["no", "tags"]]
    plain = Tokenizer("whitespace", lowercase=True)
    assert list(cut(texts, plain, read_tags(tmp_path / "tags"))) == expected
    assert list(cut(texts, plain)) == [text.lower().split() for text in texts]
    counted = frequencies(tmp_path / "t", plain, tmp_path / "tags")
    assert counted == Counter(word for words in expected for word in words)
    tags = list(read_tags(tmp_path / "tags"))
    exact = text_measures(["i wo n't stop", "other words", "no tags"], [texts], plain, tags)[-1]
    assert (exact.name, exact.score) == ("exact match", 100)
    assert "|tokens:tags|" in exact.signature


# the switch


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scoring")
    return folder, load_run(tiny.untrained(folder))


def read(path):
    return path.read_text().splitlines()


def test_the_switch_is_measured_as_validation_does(run):
    folder, loaded = run
    corpus, made = prepare(loaded.config, folder / "prepared-run", workers=1)
    assert not made
    one = Processes(0, 1, torch.device("cpu"))
    with torch.no_grad():
        expected = validate(loaded.config, loaded.model, corpus.split("dev"), one)
    found = switch_measures(loaded, read(folder / "dev.source"), [read(folder / "dev.target")])
    assert found.pairs == 20
    measured = scores(found.measures)
    assert measured["switch accuracy"] == pytest.approx(expected["switch"]["accuracy"])
    assert measured["pointing precision"] == pytest.approx(expected["switch"]["precision"])
    assert measured["pointing recall"] == pytest.approx(expected["switch"]["recall"])
    assert measured["calibration error"] == pytest.approx(expected["switch"]["calibration_error"], rel=1e-4)
    assert measured["pointer accuracy"] == pytest.approx(100 * expected["pointer_accuracy"])
    assert [bin.steps for bin in found.bins] == [bin["steps"] for bin in expected["switch"]["bins"]]


def test_each_example_adds_its_own_steps_and_those_left_out_none(run):
    folder, loaded = run
    source, target = read(folder / "dev.source")[:4], read(folder / "dev.target")[:4]
    alone = [switch_measures(loaded, [x], [[y]]) for x, y in zip(source, target, strict=True)]
    odd_x, odd_y = ["", source[0], source[1], "a " * 60, *source[2:], "x"], ["x", *target[:2], "A", *target[2:], ""]
    found = switch_measures(loaded, odd_x, [odd_y])
    assert found.pairs == 4
    for k, measure in enumerate(found.measures):
        expected = np.zeros_like(measure.numbers)
        expected[[1, 2, 4, 5]] = [one.measures[k].numbers[0] for one in alone]
        np.testing.assert_allclose(measure.numbers, expected, atol=1e-5)
    twice = switch_measures(loaded, odd_x, [odd_y, odd_y])
    assert twice.pairs == 8
    for one, two in zip(found.measures, twice.measures, strict=True):
        np.testing.assert_allclose(two.numbers, 2 * one.numbers, atol=1e-5)


def test_where_nothing_can_be_measured_there_is_nothing(run, tmp_path):
    _, loaded = run
    assert switch_measures(loaded, ["", "a"], [["b", ""]]) is None
    softmax = load_run(tiny.untrained(tmp_path, {"model": {"output": "softmax"}}))
    assert switch_measures(softmax, ["a"], [["b"]]) is None
