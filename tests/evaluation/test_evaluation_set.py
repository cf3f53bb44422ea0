"""The test part of a run's own data: in files of its own, or split off from a table; from any folder."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import tiny

from pointing.corpus.sources import HELD_OUT_FILES
from pointing.errors import Misuse
from pointing.evaluation.evaluation_set import EvaluationSet, own_part
from pointing.model.run import load_run

TABLE = {"data": {"train": "strings.csv", "dev": None, "held_out": {"dev": 10, "test": 12}}}
GREEDY = ("--beam", 1, "--set", "max_length=9")


def numeral(number):
    """A number as letters, since texts that differ in digits alone are kept together."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def write_table(folder, rows=200):
    """A table with a source and a target of each row; its pairs."""
    pairs = [(f"a b name{numeral(n)}", f"A B name{numeral(n)}") for n in range(rows)]
    with (folder / "strings.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *pairs])
    return pairs


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a table and a run that was trained in it, in runs/run; the commands start here."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_table(folder)
    tiny.untrained(folder, TABLE, name="runs/run")
    return folder


def part_of(*folders, **more):
    return own_part({Path(folder): load_run(folder).config for folder in folders}, **more)


def pairs_of(test):
    return list(zip(test.source_texts, test.references[0], strict=True))


def test_a_run_on_a_table_is_tested_on_what_was_split_off(project):
    test, dev = part_of("runs/run"), part_of("runs/run", part="dev")
    every = set(write_table(project))
    assert (len(pairs_of(test)), len(pairs_of(dev))) == (12, 10)
    assert set(pairs_of(test)) | set(pairs_of(dev)) < every
    assert not set(pairs_of(test)) & set(pairs_of(dev))
    assert test.description == "the test part of runs/run, split off from strings.csv"
    assert (test.notes, dev.notes) == ((), ())  # dev was asked for


def test_the_run_keeps_what_was_split_off_even_if_the_table_grows_or_goes(project, monkeypatch):
    before = pairs_of(part_of("runs/run"))
    write_table(project, rows=400)
    assert pairs_of(part_of("runs/run")) == before
    shutil.copytree("runs/run", project.parent / "elsewhere")
    monkeypatch.chdir(project.parent)
    shutil.rmtree(project)
    assert pairs_of(part_of("elsewhere")) == before


def remove_kept(folder):
    for name in (name for names in HELD_OUT_FILES.values() for name in names):
        (folder / name).unlink()


def test_a_run_that_kept_nothing_splits_its_table_again_wherever_the_command_starts(project, monkeypatch):
    before = pairs_of(part_of("runs/run"))
    remove_kept(project / "runs" / "run")
    assert pairs_of(part_of("runs/run")) == before
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    write_table(other, rows=60)  # another project's table has the same name
    assert pairs_of(part_of(project / "runs" / "run")) == before
    (project / "strings.csv").unlink()
    (other / "strings.csv").unlink()
    message = (
        rf"run: the test part cannot be read: strings\.csv is not there \(looked for in {other} and in the folders "
        r"above the run\); start where the run was trained, or give --source and --reference"
    )
    with pytest.raises(Misuse, match=message):
        part_of(project / "runs" / "run")


def test_a_run_is_tested_on_the_files_of_its_recipe(tmp_path, monkeypatch):
    tiny.write_pairs(tmp_path, "test", 6, seed=9)
    (tmp_path / "test.csv").write_text("source,target\na b,A B\n")
    monkeypatch.chdir(tmp_path)
    files = {"source": "test.source", "target": "test.target"}
    two, table = (
        tiny.untrained(tmp_path, {"data": {"test": test}}, name=name)
        for name, test in (("two", files), ("table", "test.csv"))
    )
    for name in ("train.source", "train.target"):
        (tmp_path / name).unlink()  # only the part that is asked for is read
    test = part_of(two)
    given = EvaluationSet.read(tmp_path / "test.source", [tmp_path / "test.target"])
    assert pairs_of(test) == pairs_of(given)
    assert test.description == f"the test part of {two}: test.source, test.target"
    assert pairs_of(part_of(table)) == [("a b", "A B")]
    (tmp_path / "test.source").unlink()
    (tmp_path / "test.target").unlink()
    with pytest.raises(Misuse, match=r"cannot be read: test\.source, test\.target are not there"):
        part_of(two)


def test_without_a_test_part_it_is_the_dev_part_and_that_is_said(tmp_path):
    run = tiny.untrained(tmp_path)
    test = part_of(run)
    assert len(test.references[0]) == 20
    assert test.notes[0].startswith(f"{run} has no test part, so this is its dev part: its weights were chosen by this")
    with pytest.raises(Misuse, match="have no test part: give --source and --reference"):
        part_of(run, part="test")


def test_several_runs_must_have_the_same_part(project):
    tiny.untrained(project, TABLE, {"model": {"output": "softmax"}}, name="runs/softmax")
    tiny.untrained(project, TABLE, {"data": {"held_out": {"seed": 2}}}, name="runs/seed")
    assert pairs_of(part_of("runs/run", "runs/softmax")) == pairs_of(part_of("runs/run"))
    with pytest.raises(Misuse, match=r"runs/run and runs/seed have different test parts: give --source and --referenc"):
        part_of("runs/run", "runs/seed")


def test_tags_come_with_the_part(tmp_path):
    tiny.write_pairs(tmp_path, "train", 40, seed=0)
    for side in ("source", "target"):
        lines = (tmp_path / f"train.{side}").read_text().splitlines()
        tagged = (" ".join(f"{w}￨{'B' if w.startswith('name') else 'O'}" for w in line.split()) for line in lines)
        (tmp_path / f"tags.{side}").write_text("".join(f"{line}\n" for line in tagged))
    files = {side: str(tmp_path / f"train.{side}") for side in ("source", "target")}
    files |= {f"{side}_tags": str(tmp_path / f"tags.{side}") for side in ("source", "target")}
    split = {"train": files, "dev": None, "held_out": {"dev": 3, "test": 4}}
    run = tiny.untrained(tmp_path, {"data": split, "pointers": {"policy": "entities"}})
    test = part_of(run)
    assert [tagged.words for tagged in test.source_tags] == [text.split() for text in test.source_texts]
    assert [tagged.words for tagged in test.reference_tags] == [text.split() for text in test.references[0]]
    done = tiny.pointing("evaluate", run, *GREEDY, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["systems"][0]["scores"]
    assert "switch accuracy" in scores  # tags of both sides were there
    signature = scores["recall of words seen 1–9 times"]["signature"]
    assert signature.endswith("|seen-in:train.target|tokens:tags|form:nfc,lower")


# the command


def test_the_command_needs_nothing_but_a_run(project, monkeypatch):
    done = tiny.pointing("evaluate", "runs/run", *GREEDY, folder=project)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("12 examples, the test part of runs/run, split off from strings.csv; score [")
    assert "| recall of words seen 0 times |" in done.stdout
    assert "seen-in:strings.csv" in done.stdout
    elsewhere = tiny.pointing("evaluate", "project/runs/run", *GREEDY, "--json", folder=project.parent)
    about = json.loads(elsewhere.stdout)
    assert about["data"] == f"the test part of project/runs/run, split off from {project / 'strings.csv'}"
    assert (about["examples"], about["training"]) == (12, str(project / "strings.csv"))


def test_the_training_words_of_a_split_table_are_those_of_its_training_part(project):
    """Every row has a name of its own, so those of the test part were never seen, although the table has them."""
    (project / "outputs").write_text((project / "runs/run" / HELD_OUT_FILES["test"][1]).read_text())
    done = tiny.pointing("evaluate", "runs/run", "outputs", *GREEDY, "--json", folder=project)
    scores = json.loads(done.stdout)["systems"][1]["scores"]
    assert scores["recall of words seen 0 times"]["score"] == 100
    assert scores["recall of words seen 1–9 times"]["score"] is None  # a and b are in all rows
    assert scores["exact match"]["score"] == 100


def test_a_run_whose_table_is_gone_knows_its_training_words_while_it_keeps_them(project):
    (project / "strings.csv").unlink()

    def evaluated(run):
        return json.loads(tiny.pointing("evaluate", run, *GREEDY, "--split", "dev", "--json", folder=project).stdout)

    whole = evaluated("runs/run")
    assert whole["examples"] == 10
    assert whole["systems"][0]["scores"]["recall of words seen 0 times"]["score"] is not None
    (project / "runs/run/training-words.tsv").unlink()  # as in a run of before
    older = evaluated("runs/run")
    assert older["notes"][0].startswith("no recall by frequency, none of unseen words: run has no training-words.tsv")
    assert "strings.csv is not there; give the target's training text (--training)" in older["notes"][0]
