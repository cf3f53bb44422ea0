"""How good an output is to be expected: its features, the learned map, the file, and what follows from it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from test_generator import make
from test_output import read

from pointing.errors import Misuse
from pointing.generation.beam import Hypothesis
from pointing.generation.confidence import (
    CONFIDENCE,
    FEATURES,
    Bin,
    Confidence,
    Feature,
    calibrated,
    confidence_for,
    features,
    load_confidence,
    save_confidence,
)
from pointing.generation.html_page import page
from pointing.generation.output import Output, remarks, show
from pointing.generation.reader import ANYWHERE, Line
from pointing.text.vocabulary import EOS, UNK


def learned(review_below=0.5, **more):
    """Confidence 0.9 at the mean of all features; only the mean log-probability counts, 0.1 a nat."""
    values = {
        "features": tuple(
            Feature(name=name, mean=-1.0 if number == 0 else 0.0, scale=2.0, weight=0.2 if number == 0 else 0.0)
            for number, name in enumerate(FEATURES)
        ),
        "intercept": 0.5,
        "knots": ((0.1, 0.5), (0.5, 0.9)),
        "review_below": review_below,
        "lines": 100,
        "damaged_lines": 50,
        "error": 0.02,
        "bins": (Bin(low=0, high=1, lines=100, confidence=0.6, chrf=0.62),),
        "signature": "chrF2",
        "weights": {"update": 7, "nll": 1.5},
    }
    return Confidence(**(values | more))


def test_features_by_hand():
    # six source words: two are known, one unknown word is copied, two are not, one is a protected span
    ids = np.array([5, UNK, UNK, 6, UNK, UNK], np.int32)
    protected = np.array([0, 0, 0, 0, 0, ANYWHERE], np.int32)
    nothing = np.zeros(6, np.int32)
    line = Line("", nothing, nothing, ids, nothing, [None] * 6, protected=protected)
    hypothesis = Hypothesis(np.array([3, 21, EOS]), np.array([-1, -2, -30.0]), np.array([1, 0.25, 0.5]), None, 0.0)
    expected = [(-1 - 2 - 15) / 3, -15, np.log(3 / 7), 3 / 6, 2 / 6, (1 + 0.5 + 0) / 3]
    np.testing.assert_allclose(features(hypothesis, line, {1, None, -17}), expected)
    assert len(expected) == len(FEATURES)


def test_between_the_knots_there_are_lines_and_below_the_first_one_it_goes_on():
    scores, confidences = np.array([0.2, 0.6]), np.array([0.3, 0.7])
    found = calibrated(np.array([-1, 0.0, 0.2, 0.4, 0.6, 2.0]), scores, confidences)
    np.testing.assert_allclose(found, [0, 0.1, 0.3, 0.5, 0.7, 0.7], atol=1e-12)


def test_a_confidence_by_hand():
    # 1 nat less than the mean: the score is 0.5 - 0.2 / 2 = 0.4, which is 0.8 between the knots
    numbers = np.array([[-1.0, 9, 9, 9, 9, 9], [-2.0, 9, 9, 9, 9, 9]])
    np.testing.assert_allclose(learned().of(numbers), [0.9, 0.8])
    assert float(learned().of(numbers[1])) == pytest.approx(0.8)


def test_it_comes_back_from_its_file_and_is_not_used_for_other_weights(tmp_path):
    assert load_confidence(tmp_path) is None
    save_confidence(learned(), tmp_path)
    assert load_confidence(tmp_path) == learned()
    assert confidence_for(tmp_path, {"update": 7, "dev": {"nll": 1.5, "bleu": 3}}) == learned()
    assert confidence_for(tmp_path, {"update": 7, "dev": {"nll": 1.6}}) is None
    assert confidence_for(tmp_path, {"update": 8}) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"review_below": 1.5}, "review_below: "),
        ({"review_below": float("nan")}, "review_below: "),
        ({"intercept": "much"}, "intercept: "),
        ({"knots": []}, "knots: "),
        ({"knots": [[0.5, 0.1], [0.2, 0.3]]}, "knots: scores and confidences should increase"),
        ({"knots": [[0.1, 0.3], [0.2, 0.1]]}, "knots: scores and confidences should increase"),
        ({"features": []}, "features: should be mean log-probability"),
        ({"kind": "pointing-confidence-9"}, "kind: "),
        ({"lines": 0}, "lines: "),
        ({"surprise": 1}, "surprise: there is no such setting"),
    ],
)
def test_a_damaged_file_is_named_with_the_command_that_makes_a_new_one(tmp_path, change, message):
    values = learned().model_dump(mode="json") | change
    (tmp_path / CONFIDENCE).write_text(json.dumps(values))
    with pytest.raises(Misuse) as refused:
        load_confidence(tmp_path)
    assert message in str(refused.value)
    assert f"{tmp_path / CONFIDENCE}: " in str(refused.value)
    assert f"make it anew with `pointing calibrate {tmp_path}`" in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"null", b"{}"])
def test_what_is_no_such_file_is_refused(tmp_path, content):
    (tmp_path / CONFIDENCE).write_bytes(content)
    with pytest.raises(Misuse, match="make it anew"):
        load_confidence(tmp_path)


def sure(**more):
    generator = make()
    generator.confidence = learned(**more)
    return generator


LINES = ["the cat saw Zoe", "", "Zyzzyva, a house .", "  the  cat "]


def test_every_output_says_how_good_it_is_to_be_expected():
    generator = sure()
    outputs = generator.generate(LINES, beam=3, nbest=2)
    assert [output.confidence is None for output in outputs] == [False, True, False, False]
    for output in (outputs[0], *outputs[0].alternatives):
        assert output.confidence == pytest.approx(float(learned().of(output.features)))
        assert output.review == (output.confidence < 0.5)
    plain = make().generate(LINES, beam=3, nbest=2)
    assert [(one.text, one.score) for one in plain] == [(one.text, one.score) for one in outputs]
    assert all(one.confidence is None and not one.review for one in plain)
    assert "confidence" not in plain[0].json()
    assert outputs[0].json()["confidence"] == pytest.approx(outputs[0].confidence, abs=1e-4)
    assert outputs[0].json()["review"] is outputs[0].review
    assert "confidence" not in outputs[1].json()


def test_the_share_that_is_reviewed_is_the_runs_own_and_a_line_that_was_cut_is_reviewed():
    by_threshold = {
        threshold: [one.review for one in sure(review_below=threshold).generate([*LINES, "the cat " * 200], beam=1)]
        for threshold in (0.0, 1.0)
    }
    assert by_threshold == {0.0: [False, False, False, False, True], 1.0: [True, False, True, True, True]}


def test_below_the_least_confidence_the_source_line_is_kept_as_it_is():
    generator = sure(review_below=0.0)
    first, *_ = plain = generator.generate(LINES, beam=1)
    assert generator.generate(LINES, beam=1, min_confidence=0) == plain
    assert not any(one.review for one in plain)
    between = generator.generate(LINES, beam=1, min_confidence=first.confidence)
    assert between[0] == first  # not below itself
    kept = generator.generate(LINES, beam=1, min_confidence=1.0)
    assert [one.text for one in kept] == LINES
    assert [one.fallback for one in kept] == [True, False, True, True]
    assert kept[1] == plain[1]
    for before, after in zip(plain, kept, strict=True):
        if after.fallback:
            assert (after.rejected, after.confidence, after.review) == (before.text, before.confidence, True)
            for token in after.tokens:
                assert (token.origin, token.span) == ("source", token.output)
                assert token.text == after.text[slice(*token.output)] == after.source.raw(token.source)
    assert kept[3].tokenized == "the cat"
    values = json.loads(json.dumps(kept[0].json()))
    assert (values["text"], values["fallback"], values["rejected"]) == (LINES[0], True, plain[0].text)
    assert (values["tokens"][0]["probability"], values["tokens"][0]["shortlist"]) == (None, None)
    again = Output.from_json(values, kept[0].source)
    assert (again.text, again.rejected, again.fallback) == (kept[0].text, kept[0].rejected, True)
    assert [(token.text, token.origin) for token in again.tokens] == [(t.text, t.origin) for t in kept[0].tokens]


def test_a_least_confidence_needs_a_run_that_has_one_and_is_a_share():
    with pytest.raises(Misuse, match="`pointing calibrate RUN` teaches it"):
        make().generate("the cat", min_confidence=0.5)
    for wrong in (1.5, -0.1, "0.5", True):
        with pytest.raises(Misuse, match="min_confidence: should be a number from 0 to 1"):
            sure().stream("the cat", min_confidence=wrong)
    with pytest.raises(Misuse, match="did you mean min_confidence"):
        sure().generate("the cat", min_confidense=0.5)


def test_flags_are_shown_in_words():
    output = replace(sure().generate("the cat saw Zoe", beam=1), confidence=0.314, review=True)
    fine, kept = replace(output, confidence=0.8, review=False), output.kept_as_source()
    assert remarks(fine) == []
    assert remarks(output) == ["⚑ please review, confidence 0.31"]
    assert remarks(kept) == [f"⚑ the source was kept, confidence 0.31; the model wrote: {output.text}"]
    assert show(output).plain.endswith("\n  ⚑ please review, confidence 0.31")
    assert show(kept).plain.startswith("the cat saw Zoe\n→ the cat saw Zoe\n  ⚑ the source was kept")
    assert "⚑" not in show(fine).plain
    for each, words in ((output, "⚑ please review, confidence 0.31"), (kept, remarks(kept)[0]), (fine, "0.80")):
        assert words in "".join(read("".join(page([each]))).text)
    assert "used" not in "".join(page([kept])).split("</style>")[1]
