"""What `pointing reproduce` reads again, its own results, enters as all files do: damaged, it is named in one line."""

import json
import shutil

import pytest
import tiny

from pointing.data.parallel import NOTE, writing
from pointing.errors import Misuse
from pointing.reproduce import rarest_word_runs
from pointing.reproduce.results import EXAMPLES, RESULTS

WHOLE = tiny.ROOT / "results" / "translation-debian-en-fr"
RAREST = tiny.ROOT / "results" / "rarest-word"
DEEP = "[" * 100_000


def refused(folder, name):
    """The one line that is said of a damaged file in a folder of results."""
    code, error = tiny.said("reproduce", "report", folder, "--out", folder)
    assert code == 2, error
    assert f"{name}: not " in error
    return error


@pytest.mark.parametrize("text", ["", DEEP, '{"experiment": "translation"}', '{"experiment": "translation'])
def test_damaged_results_are_named(tmp_path, text):
    shutil.copytree(WHOLE, tmp_path / "results")
    (tmp_path / "results" / RESULTS).write_text(text)
    assert "make them anew" in refused(tmp_path / "results", RESULTS)


@pytest.mark.parametrize("text", ["null", "[]"])
def test_results_of_another_program_are_no_results(tmp_path, text):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / RESULTS).write_text(text)
    code, error = tiny.said("reproduce", "report", tmp_path / "results", "--out", tmp_path / "results")
    assert code == 2
    assert str(tmp_path / "results") in error


@pytest.mark.parametrize("text", ["", "{}", DEEP, '[{"source": 3}]'])
def test_damaged_examples_are_named(tmp_path, text):
    shutil.copytree(WHOLE, tmp_path / "results")
    (tmp_path / "results" / EXAMPLES).write_text(text)
    refused(tmp_path / "results", EXAMPLES)


def test_results_without_one_of_their_parts_are_named(tmp_path):
    for folder in (WHOLE, RAREST):
        shutil.copytree(folder, tmp_path / folder.name)
        path = tmp_path / folder.name / RESULTS
        results = json.loads(path.read_text())
        for key in ("rows", "runs", "scores"):
            if key in results:
                path.write_text(json.dumps({name: value for name, value in results.items() if name != key}))
                assert f"there is no '{key}'" in refused(tmp_path / folder.name, RESULTS)


def test_a_damaged_result_of_one_run_is_named(tmp_path):
    (settings,) = rarest_word_runs.quick()[:1]
    path = rarest_word_runs._path(settings, tmp_path)
    path.parent.mkdir()
    path.write_text("[1")
    with pytest.raises(Misuse, match=r"\.json: not a run's result \(.*\); remove it, and it is made anew"):
        rarest_word_runs.reproduce_rarest_word([settings], tmp_path, "x")


@pytest.mark.parametrize("text", ["", "[]", DEEP, '{"files": 3}'])
def test_a_folder_with_a_damaged_note_is_not_replaced(tmp_path, text):
    (tmp_path / NOTE).write_text(text)
    (tmp_path / "train.en").write_text("mine\n")
    with pytest.raises(Misuse, match="this folder holds other things"), writing("x", tmp_path, ["en", "fr"]):
        pass
    assert (tmp_path / "train.en").read_text() == "mine\n"
