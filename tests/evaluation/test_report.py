"""Scores side by side: by hand, and what is written where."""

import json

import numpy as np
import pytest

from pointing.evaluation import plots
from pointing.evaluation.copy_metrics import switch_scores
from pointing.evaluation.report import Scored, compare
from pointing.evaluation.significance import Measure, Resampling, ratio


def mean(values, name="accuracy", signature=None):
    return Measure(name, signature or f"{name}|mean", np.column_stack([values, np.ones(len(values))]), ratio)


def undefined(count):
    return Measure("recall", "recall|", np.zeros((count, 2)), ratio)


def invented(values):
    return Measure("words invented", "words-invented|", np.array(values, float)[:, None], lambda sums: sums[..., 0])


ONES, ZEROS = np.ones(40), np.zeros(40)
HALF = np.arange(40) % 2


def small(*systems, **more):
    return compare(systems, resampling=Resampling(resamples=100, trials=200), **more)


def test_a_table_by_hand():
    first = Scored("one", ["x"] * 40, [mean(ZEROS), undefined(40), invented(ZEROS), mean(HALF, "other")])
    second = Scored("two", ["y"] * 40, [mean(ONES), undefined(40), invented(ONES * 50), mean(HALF, "new")])
    report = small(first, second)
    table = report.table()
    assert table.header == ["", "one", "two"]
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == ["accuracy", "recall", "words invented", "other", "new"]
    assert rows["accuracy"] == ["0.0 [0.0, 0.0]", "100.0 [100.0, 100.0] *"]
    assert rows["recall"] == ["–", "–"]
    assert rows["words invented"] == ["0 [0, 0]", "2,000 [2,000, 2,000] *"]
    assert rows["other"][1] == rows["new"][0] == "–"
    assert "* differs from one" in table.title
    assert table.title.startswith("40 examples")
    # None of 200 ways to change 40 sides is as large as what was seen: p = 1 / 201, 0.005 rounded.
    assert report.differences_table().rows[0] == ["accuracy", "+100.0 [+100.0, +100.0], p 0.010 / 0.005"]
    assert [row[0] for row in report.differences_table().rows] == ["accuracy", "words invented"]


def test_a_p_value_is_never_shown_as_0():
    systems = [Scored(str(k), [""] * 40, [mean(values)]) for k, values in enumerate((ZEROS, ONES))]
    assert (
        compare(systems, resampling=Resampling(resamples=100, trials=2000))
        .differences_table()
        .rows[0][1]
        .endswith("p 0.010 / <0.001")
    )


def test_the_same_system_differs_in_nothing():
    one = [mean(HALF), invented(HALF)]
    report = small(Scored("a", [""] * 40, one), Scored("b", [""] * 40, one))
    assert not any(found.significant for found in report.differences[0].values())
    assert "*" not in "".join("".join(row) for row in report.table().rows)
    assert {found.p_randomisation for found in report.differences[0].values()} == {1}


def test_scores_computed_in_another_way_are_not_compared():
    systems = [Scored(name, [""] * 40, [mean(HALF, signature=f"accuracy|shortlist:{name}")]) for name in ("5", "30")]
    report = small(*systems)
    assert report.differences == [{}]
    assert report.signatures() == ["accuracy|shortlist:5", "accuracy|shortlist:30"]


def test_signatures_that_share_all_but_the_name_stand_together():
    report = small(Scored("a", [""] * 40, [mean(HALF, "x", "x|a|b"), mean(HALF, "y", "y|c"), mean(HALF, "z", "z|a|b")]))
    assert report.signatures() == ["x, z|a|b", "y|c"]


def test_json_and_markdown_have_everything():
    first = Scored("a", [""] * 40, [mean(ZEROS), undefined(40)], about={"update": 3})
    report = small(first, Scored("b", [""] * 40, [mean(ONES), undefined(40)]), notes=["mind the gap"], about={"n": 40})
    found = json.loads(json.dumps(report.json(), allow_nan=False))
    assert found["systems"][0] == {
        "name": "a",
        "update": 3,
        "scores": {
            "accuracy": {"score": 0, "low": 0, "high": 0, "signature": "accuracy|mean"},
            "recall": {"score": None, "low": None, "high": None, "signature": "recall|"},
        },
        "reliability": None,
    }
    (compared,) = found["comparisons"]
    assert (compared["system"], compared["baseline"]) == ("b", "a")
    assert compared["scores"]["accuracy"]["difference"] == 100
    assert compared["scores"]["accuracy"]["p_randomisation"] == pytest.approx(1 / 201)
    assert found["resamples"] == 100
    assert found["n"] == 40
    page = report.markdown("x.png")
    for part in ("| accuracy | 0.0 [0.0, 0.0] |", "## Differences", "(x.png)", "- mind the gap", "- `accuracy|mean`"):
        assert part in page


def test_files_are_written_for_what_runs_generated(tmp_path, monkeypatch):
    bins = switch_scores([0.1, 0.9], [False, True]).bins
    one = Scored("runs/a b", ["x", "ÿ"], [mean(ONES[:2])], bins, generated=True)
    two = Scored("runs a b", ["", "z"], [mean(ONES[:2])], generated=True)
    report = small(one, two, Scored("f", ["", ""], [mean(HALF[:2])]))
    names = ["report.md", "results.json", "runs-a-b.txt", "runs-a-b-2.txt", "reliability.png"]
    assert report.write(tmp_path / "new") == names
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    assert (tmp_path / "new" / "runs-a-b.txt").read_bytes() == "x\nÿ\n".encode()
    assert (tmp_path / "new" / "runs-a-b-2.txt").read_bytes() == b"\nz\n"
    assert "(reliability.png)" in (tmp_path / "new" / "report.md").read_text()
    assert len(json.loads((tmp_path / "new" / "results.json").read_text())["systems"][0]["reliability"]) == len(bins)
    monkeypatch.setattr(plots, "installed", lambda: False)
    assert "reliability.png" not in report.write(tmp_path / "plain")
    assert "reliability.png" not in (tmp_path / "plain" / "report.md").read_text()
