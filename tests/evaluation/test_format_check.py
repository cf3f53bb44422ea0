"""msgfmt's verdict on outputs, line by line."""

import re
import shutil

import numpy as np
import pytest

from pointing.documents import msgfmt
from pointing.evaluation.evaluate import System, evaluate
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.evaluation.format_check import BRACES, PYTHON, C, _possible_kinds, format_lines, format_measure
from pointing.evaluation.significance import Resampling
from pointing.text.protected import Protector

FEW = {"resampling": Resampling(resamples=20, trials=20)}
NAME = "lines that msgfmt accepts"
with_msgfmt = pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext's tools are not installed")


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("open %s", [C]),
        ("%(count)d files", [PYTHON]),
        ("{name} of {total}", [BRACES]),
        ("%d of {name}", [C, BRACES]),
        ("100% sure", []),
        ("%d is 100% sure", []),  # `% s` is an argument in C, but a reader does not take it for one
        ("hello {{name}}", []),
        ("plain", []),
    ],
)
def test_what_a_line_looks_like(line, kinds):
    assert _possible_kinds(line) == kinds


@with_msgfmt
def test_lines_count_if_they_are_formats_to_msgfmt():
    lines = ["open %s", "plain", "%Y", "%d of {name}", "{a", "%(x)s", "100%% of it", "%1 file"]
    assert format_lines(lines) == {0: [C], 3: [C, BRACES], 5: [PYTHON], 6: [C]}  # not strftime, not Qt
    assert format_lines(["plain"]) == {}


@with_msgfmt
@pytest.mark.parametrize(
    ("source", "output", "accepted"),
    [
        ("open %s", "ouvrir %s", True),
        ("open %s", "ouvrir", False),
        ("open %s", "", False),
        ("open %s", "ouvrir %d", False),
        ("%s of %d", "%2$d, %1$s", True),
        ("%s of %d", "%d, %s", False),
        ("%d files", "50 % de %d", False),  # `% d` is a second argument
        ("%(a)s of %(b)s", "%(b)s, %(a)s", True),
        ("%(a)s", "%(b)s", False),
        ("{a} of {b}", "{b}, {a}", True),
        ("{a}", "{b}", False),
        ("{a} %s", "{a} % s", True),
        ("{a} %s", "{b} %s", False),
        ('say "%s\\n"', 'dire « %s\\n »\t\x07"', True),
    ],
)
def test_verdicts_by_hand(source, output, accepted):
    measure = format_measure([source], [output], format_lines([source]))
    assert measure.score == (100 if accepted else 0)


@with_msgfmt
def test_the_verdict_is_of_each_line_and_only_of_formats():
    sources = ["open %s", "plain", "open %s", "{a}", "%d", "%d"] * 400
    outputs = ["ouvrir %s", "", "ouvrir", "{a}", "\ud800\x00", "%d"] * 400
    measure = format_measure(sources, outputs, format_lines(sources))
    np.testing.assert_array_equal(measure.numbers[:6], [[1, 1], [0, 0], [0, 1], [1, 1], [0, 1], [1, 1]])
    np.testing.assert_array_equal(measure.numbers, np.tile(measure.numbers[:6], (400, 1)))
    assert measure.score == 60
    flags = "c-format+python-format+python-brace-format"
    how = f"flags:{flags}|text:delivered|msgfmt:{msgfmt.version()}|"
    assert measure.signature.startswith(f"lines-that-msgfmt-accepts|{how}")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)*", msgfmt.version())


@with_msgfmt
def test_evaluate_asks_msgfmt_where_formats_are_protected():
    test = EvaluationSet.read(["open %s", "a"], [["ouvrir %s", "un"]])
    systems = [System("right", outputs=["%s", ""]), System("wrong", outputs=["% c", "a"])]
    report = evaluate(systems, test, protector=Protector.named("printf"), **FEW)
    assert [system["scores"][NAME]["score"] for system in report.json()["systems"]] == [100, 0]
    web = evaluate(systems, test, protector=Protector.named("web"), **FEW)
    none = evaluate(systems, EvaluationSet.read(["a", "b"], [["a", "b"]]), protector=Protector.named("printf"), **FEW)
    for report in (web, none):
        assert NAME not in report.json()["systems"][0]["scores"]


def test_without_msgfmt_the_measure_is_left_out_with_a_note(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    test = EvaluationSet.read(["open %s"], [["ouvrir %s"]])
    report = evaluate([System("x", outputs=["%s"])], test, protector=Protector.named("software"), **FEW)
    assert NAME not in report.json()["systems"][0]["scores"]
    assert "no verdict of msgfmt --check-format: msgfmt is not there; it is in the package gettext" in report.notes
