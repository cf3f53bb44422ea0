"""Every measure of one system: in which form words are compared, and the switch as validation measures it."""

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from sacrebleu import corpus_bleu

from pointing.corpus.preparation import prepare
from pointing.corpus.sources import Lines, RawSplit
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.evaluation.measures import (
    TrainingWords,
    copy_measures,
    count_training_words,
    count_words_of_split,
    form_name,
    line_in_form,
    origins_of_words,
    switch_measures,
    text_measures,
    words_in_form,
    words_of_lines,
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
    line = Line(source, starts, ends, np.zeros(len(ends)), np.zeros(len(ends)), [None] * len(ends))
    words = [
        Token(text, "shortlist" if at is None else "copied", at, None if at is None else (starts[at], ends[at]), 0.5, 1)
        for text, at in tokens
    ]
    return Output(1, "".join(text for text, _ in tokens), -1.0, words, line)


def test_the_forms_name_says_what_is_done():
    assert form_name(PLAIN) == ""
    assert form_name(FOLDED) == "nfc,lower,digits"
    assert form_name(Tokenizer(unicode="nfkc")) == "nfkc"


def test_a_copied_name_is_right_in_the_models_form_and_wrong_as_it_is():
    outputs, test = ["Zoë paid 12 Euros"], EvaluationSet.read(None, [["zoe\u0308 paid 34 euros"]])
    folded, plain = text_measures(outputs, test, FOLDED), text_measures(outputs, test, PLAIN)
    assert scores(folded)["exact match (tokens)"] == scores(folded)["BLEU"] == pytest.approx(100)
    assert scores(plain)["exact match (tokens)"] == scores(plain)["BLEU, tokenised"] == 0
    assert scores(folded)["exact match"] == scores(plain)["exact match"] == 0  # never in the model's form
    assert "|text:delivered,nfc,single-spaces|" in signature(folded, "exact match")
    assert signature(folded, "BLEU").endswith("|form:nfc,lower,digits")
    assert signature(folded, "BLEU, tokenised").endswith("|as:multi-bleu.perl|tokens:regex|form:nfc,lower,digits")
    assert "form:" not in signature(plain, "BLEU")


def test_bleu_is_sacrebleus_of_the_same_text():
    outputs = ["The cat sat on the mat , today .", "It is a Dog"]
    references = [["The cat sat on a mat, today.", "it is a dog"], ["A cat was on the mat.", "It was a dog"]]
    test = EvaluationSet.read(None, references)
    assert scores(text_measures(outputs, test, PLAIN))["BLEU"] == pytest.approx(corpus_bleu(outputs, references).score)
    lower = [[text.lower() for text in reference] for reference in references]
    expected = corpus_bleu([text.lower() for text in outputs], lower).score
    assert scores(text_measures(outputs, test, Tokenizer(lowercase=True)))["BLEU"] == pytest.approx(expected)


def test_every_text_measure_is_there_once():
    assert list(scores(text_measures(["a"], EvaluationSet.read(None, [["a"]]), PLAIN))) == [
        "BLEU, tokenised", "BLEU", "BLEU, lower-cased", "chrF2",
        "ROUGE-1 F1", "ROUGE-1 recall", "ROUGE-2 F1", "ROUGE-2 recall", "ROUGE-L F1", "ROUGE-L recall",
        "ROUGE-1 recall, 75 bytes", "ROUGE-2 recall, 75 bytes", "ROUGE-L recall, 75 bytes",
        "exact match", "exact match (tokens)",
    ]  # fmt: skip


def test_an_outputs_words_are_those_that_the_model_wrote():
    written = output("Mc,Ewan", ("Mc,Ewan", 0), ("!", None))
    assert words_in_form(written, FOLDED) == ["mc,ewan", "!"]
    assert words_in_form("Mc,Ewan!", FOLDED) == ["mc", ",", "ewan", "!"]
    assert line_in_form(written, FOLDED) == line_in_form("Mc,Ewan!", FOLDED) == "mc,ewan!"


def in_text(text, *tokens):
    """An output of a model that writes this text, its tokens at their places in it."""
    found, at = [], 0
    for word, origin in tokens:
        at = text.index(word, at)
        found.append(Token(word, origin, None, None, 1.0, 1.0, output=(at, at + len(word))))
        at += len(word)
    return replace(output("x", ("x", None)), text=text, tokens=found)


def test_a_compound_that_was_written_part_by_part_is_one_word():
    copied, own = "copied", "shortlist"
    tokens = [("Tango", copied), ("-", own), ("Geräte", own), ("-", own), ("X", copied), ("vim", copied), ("-", own)]
    written = in_text("Tango-Geräte -X vim - a-b", *tokens, ("a", copied), ("-", copied), ("b", copied))
    assert words_in_form(written, FOLDED) == ["tango-geräte", "-", "x", "vim", "-", "a-b"]
    assert origins_of_words(written) == [own, own, copied, copied, own, copied]


def test_copies_by_hand():
    # Zoe is copied and right, Max is copied and wrong; of the reference's two words outside the shortlist one is there.
    outputs = [output("Zoe met Max 1", ("Zoe", 0), ("a", None), ("Max", 2))]
    test = EvaluationSet.read(["Zoe met Max 1"], [["zoe a ann"]])
    both = Tokenizer("whitespace", lowercase=True), Tokenizer("whitespace", lowercase=True)
    training = TrainingWords(Path("some/t.fr"), {"a": 5})
    measures = copy_measures(outputs, test, both, {"a"}, training=training, unk="<unk>")
    found = scores(measures)
    assert found["out-of-shortlist recall"] == found["out-of-shortlist precision"] == found["copies right"] == 50
    assert found["copied words per 100 outputs"] == 200
    assert found["words invented"] == found["UNKs left"] == 0
    assert found["recall of words seen 0 times"] == 50
    assert found["recall of words seen 1–9 times"] == 100
    assert signature(measures, "copies right").endswith("|tokens:whitespace|form:nfc,lower")
    assert "|seen-in:t.fr|" in signature(measures, "recall of words seen 0 times")
    assert "|seen-in:" not in signature(measures, "out-of-shortlist recall")


def test_of_files_there_are_no_origins_and_of_several_references_the_closest_counts():
    both = PLAIN, PLAIN
    test = EvaluationSet.read(["x", "z"], [["b c d", "z"], ["x y", "z"]])
    measures = copy_measures(["x y UNK", "z v"], test, both, {"z"}, unk="UNK")
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
    for name in ("t", "t.gz"):
        assert count_training_words(tmp_path / name, FOLDED) == (tmp_path / name, expected)


def test_words_are_cut_as_their_tags_are_where_these_are_theirs(tmp_path):
    texts = ["I won't stop", "other words", "no tags"]
    (tmp_path / "t").write_text("\n".join(texts) + "\n")
    (tmp_path / "tags").write_text("I￨O wo￨O n't￨O stop￨B\nanother￨O line￨O\n")
    expected = [["i", "wo", "n't", "stop"], ["other", "words"], ["no", "tags"]]
    plain = Tokenizer("whitespace", lowercase=True)
    assert list(words_of_lines(texts, plain, read_tags(tmp_path / "tags"))) == expected
    assert list(words_of_lines(texts, plain)) == [text.lower().split() for text in texts]
    numbered = zip(read_tags(tmp_path / "tags"), read_tags(tmp_path / "tags"), strict=True)
    lines = [f"{text}\n".encode() for text in texts]
    block = Lines([1, 2, 3], lines, lines, list(numbered))
    training = count_words_of_split(RawSplit(tmp_path / "t", 3, lambda: iter([block])), plain)
    assert training.counts == Counter(word for words in expected for word in words)
    test = replace(EvaluationSet.read(None, [texts]), reference_tags=list(read_tags(tmp_path / "tags")))
    exact = text_measures(["i wo n't stop", "other words", "no tags"], test, plain)[-1]
    assert (exact.name, exact.score) == ("exact match (tokens)", 100)
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
    result = switch_measures(loaded, EvaluationSet.read(folder / "dev.source", [folder / "dev.target"]))
    assert result.pairs == 20
    measured = scores(result.measures)
    assert measured["switch accuracy"] == pytest.approx(expected["switch"]["accuracy"])
    assert measured["pointing precision"] == pytest.approx(expected["switch"]["precision"])
    assert measured["pointing recall"] == pytest.approx(expected["switch"]["recall"])
    assert measured["calibration error"] == pytest.approx(expected["switch"]["calibration_error"], rel=1e-4)
    assert measured["pointer accuracy"] == pytest.approx(100 * expected["pointer_accuracy"])
    assert [bin.steps for bin in result.bins] == [bin["steps"] for bin in expected["switch"]["bins"]]


def test_each_example_adds_its_own_steps_and_those_left_out_none(run):
    folder, loaded = run
    source, target = read(folder / "dev.source")[:4], read(folder / "dev.target")[:4]
    alone = [switch_measures(loaded, EvaluationSet.read([x], [[y]])) for x, y in zip(source, target, strict=True)]
    odd_x, odd_y = ["", source[0], source[1], "a " * 60, *source[2:], "x"], ["x", *target[:2], "A", *target[2:], ""]
    result = switch_measures(loaded, EvaluationSet.read(odd_x, [odd_y]))
    assert result.pairs == 4
    for k, measure in enumerate(result.measures):
        expected = np.zeros((len(odd_x), measure.numbers.shape[1]))
        expected[[1, 2, 4, 5]] = [own.measures[k].numbers[0] for own in alone]
        np.testing.assert_allclose(measure.numbers, expected, atol=1e-5)
    twice = switch_measures(loaded, EvaluationSet.read(odd_x, [odd_y, odd_y]))
    assert twice.pairs == 8
    for one, two in zip(result.measures, twice.measures, strict=True):
        np.testing.assert_allclose(two.numbers, 2 * one.numbers, atol=1e-5)


def test_where_nothing_can_be_measured_there_is_nothing(run, tmp_path):
    _, loaded = run
    assert switch_measures(loaded, EvaluationSet.read(["", "a"], [["b", ""]])) is None
    softmax = load_run(tiny.untrained(tmp_path, {"model": {"output": "softmax"}}))
    assert switch_measures(softmax, EvaluationSet.read(["a"], [["b"]])) is None
