"""A run has one writer, stops when its folder is taken away, and goes on from a checkpoint whatever the journal is."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import tiny

from pointing.corpus.preparation import READ
from pointing.errors import Failure, Misuse
from pointing.model.run import METRICS, MODEL, STATE, load_run
from pointing.system.border import MANIFEST
from pointing.system.locks import LOCK, sole_writer
from pointing.training import loop as training
from pointing.training.check import check_folder

FEW = {"training": {"updates": 6, "validate_every": 3}}
LONG = {"training": {"updates": 100_000, "patience": None, "validate_every": 1000}}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus, and a run in `whole`."""
    folder = tmp_path_factory.mktemp("corpus")
    tiny.train_in(folder, folder / "whole", FEW)
    return folder


def started(place, out, *changes, processes=1):
    arguments = ["train", tiny.write(place, *changes), "--out", out, "--corpus", place / "prepared"]
    return subprocess.Popen(
        tiny.command(*arguments, processes=processes),
        **{"env": tiny.environment(), "cwd": place, "stderr": subprocess.PIPE, "text": True},
    )


def ended(process):
    _, said = process.communicate(timeout=300)
    return process.returncode, said


def test_two_trainings_in_one_folder_are_one(place, tmp_path):
    both = [started(place, tmp_path / "run", FEW) for _ in range(2)]
    (code, said), (refused, refusal) = sorted(map(ended, both))
    if refused == 0:  # the first had ended before the second began
        pytest.skip("they were never at work at the same time")
    assert (code, refused) == (0, 2), said + refusal
    is_told = any(f"somebody writes into this folder (process {process.pid} on" in refusal for process in both)
    assert is_told or "there is a run in this folder" in refusal
    assert len([line for line in refusal.splitlines() if line.startswith("pointing: ")]) == 1
    load_run(tmp_path / "run")
    assert tiny.same(tmp_path / "run", place / "whole")


def test_nothing_of_a_run_at_work_is_touched(place, tmp_path):
    for resume in (False, True):
        shutil.copytree(place / "whole", tmp_path / "run", dirs_exist_ok=True)
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
        with sole_writer(tmp_path / "run"):
            with pytest.raises(Misuse, match=f"process {os.getpid()} on .*: wait until that has ended, or choose"):
                tiny.train_in(place, tmp_path / "run", FEW, resume=resume)
            (tmp_path / "run" / LOCK).read_text()
        assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}


@pytest.mark.slow
def test_two_processes_hold_the_lock_together(place, tmp_path):
    process = started(place, tmp_path / "run", LONG, processes=2)
    try:
        while not (tmp_path / "run" / LOCK).exists() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(0.5)
        with pytest.raises(Misuse, match="somebody writes into this folder"):
            tiny.train_in(place, tmp_path / "run", FEW)
    finally:
        process.terminate()
        ended(process)


@pytest.mark.slow
def test_processes_whose_mate_is_killed_say_so_without_a_traceback(place, tmp_path):
    process = started(place, tmp_path / "run", LONG, processes=2)
    try:
        while not (tmp_path / "run" / METRICS).exists() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(3)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ranks = {Path(f"/proc/{pid}/environ").read_text().split("\0RANK=")[1][0]: int(pid) for pid in children}
        os.kill(ranks["1"], 9)
    finally:
        code, said = ended(process)
    assert code != 0
    assert "/pointing/" not in said.replace("/pointing/__main__.py", "")  # no traceback through our files
    assert said.count("pointing: ") <= 1


@pytest.mark.slow
def test_what_all_processes_find_is_said_once(place, tmp_path):
    settings = tiny.write(place, FEW)
    result = tiny.pointing("train", settings, "--set", "model.hiden=3", "--out", tmp_path, folder=place, processes=2)
    assert result.returncode != 0
    assert result.stderr.count("there is no such setting") == 1


@pytest.mark.parametrize("kind", ["removed", "moved"])
def test_a_run_whose_folder_is_gone_stops(place, tmp_path, monkeypatch, kind):
    out, validate = tmp_path / "run", training.validate

    def meanwhile(*arguments):
        if kind == "removed":
            shutil.rmtree(out)
        else:
            out.rename(tmp_path / "elsewhere")
        return validate(*arguments)

    monkeypatch.setattr(training, "validate", meanwhile)
    with pytest.raises(Failure, match=r"run: the run's folder, or \.lock in it, was removed or moved while") as stop:
        tiny.train_in(place, out, FEW)
    assert not isinstance(stop.value, Misuse)  # exit code 1
    assert not out.exists()


def test_a_folder_that_goes_between_two_notes_is_noticed_too(place, tmp_path, monkeypatch):
    out, learn, updates = tmp_path / "run", training.Learner.learn, []

    def meanwhile(*arguments):
        updates.append(1)
        if len(updates) == 20:
            shutil.rmtree(out)
        return learn(*arguments)

    monkeypatch.setattr(training.Learner, "learn", meanwhile)
    with pytest.raises(Failure, match="was removed or moved"):
        tiny.train_in(place, out, LONG)
    assert len(updates) == 20
    assert not out.exists()


ODD_EVENTS = [b"[]\n", b'{"event": 3}\n', b'{"event": "x", "update": "3"}\n']


@pytest.mark.parametrize("damage", [b"\0" * 4096, b"garbage\n", b"\xff\xfe\n", b"[" * 9999 + b"\n", *ODD_EVENTS])
def test_a_damaged_journal_is_in_nobodys_way(place, tmp_path, capsys, damage):
    shutil.copytree(place / "whole", tmp_path / "run")
    journal = tmp_path / "run" / METRICS
    events, whole = tiny.events(tmp_path / "run"), journal.read_bytes()
    first = whole.index(b"\n") + 1
    in_the_middle = whole[:first] + damage + b"\n" + whole[first:]
    for damaged, line in [(whole + damage, whole.count(b"\n") + 1), (in_the_middle, 2)]:
        journal.write_bytes(damaged)
        more = {"training": {"updates": 6}}
        tiny.train_in(place, tmp_path / "run", FEW, more, resume=True)
        assert f"{METRICS}:{line}: this line" in capsys.readouterr().err
        assert [event for event in tiny.events(tmp_path / "run") if event in events] == events[: len(events)]
        assert "cannot be read" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["source.vocabulary", "target.vocabulary"])
def test_a_run_whose_own_words_are_damaged_is_not_gone_on_with(place, tmp_path, name):
    shutil.copytree(place / "whole", tmp_path / "run")
    path, weights = tmp_path / "run" / name, (tmp_path / "run" / MODEL).read_bytes()
    first, second, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([second, first, *rest]))
    with pytest.raises(Misuse, match=f"{name}: damaged: some of its"):
        tiny.train_in(place, tmp_path / "run", FEW, {"training": {"updates": 9}}, resume=True)
    (tmp_path / "run" / MANIFEST).unlink()  # a run from before there were manifests
    with pytest.raises(Misuse, match=f"{name}: damaged: not the words that the run began with; take the corpus's"):
        tiny.train_in(place, tmp_path / "run", FEW, {"training": {"updates": 9}}, resume=True)
    assert (tmp_path / "run" / MODEL).read_bytes() == weights
    shutil.copy2(place / "prepared" / name, path)
    tiny.train_in(place, tmp_path / "run", FEW, {"training": {"updates": 9}}, resume=True)


def test_identical_runs_have_identical_bytes(place, tmp_path):
    for name in ("one", "other"):
        tiny.train_in(place, tmp_path / name, FEW)
    timed = {METRICS, STATE, MANIFEST, "tensorboard"}  # the time that training took is in the state's header
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.name not in timed}
        for name in ("one", "other")
    )
    assert one == other
    assert MODEL in one


def test_a_run_and_a_corpus_are_checked_wholly(place, tmp_path):
    for name, kind in [("whole", "run"), ("prepared", "prepared corpus")]:
        shutil.copytree(place / name, tmp_path / name)
        checked = check_folder(tmp_path / name)
        assert (checked.kind, checked.unlisted) == (kind, [])
        for path in (tmp_path / name).iterdir():
            if path.name in (MANIFEST, METRICS, READ, "config.yaml", "tensorboard"):
                continue
            whole = path.read_bytes()
            path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
            with pytest.raises(Misuse, match=rf"{name}: 1 of {checked.compared} files are damaged"):
                check_folder(tmp_path / name)
            path.write_bytes(whole)
    (tmp_path / "whole" / MANIFEST).unlink()
    names = (
        "model.safetensors",
        "source.vocabulary",
        "target.vocabulary",
        "training-words.tsv",
        "training.safetensors",
    )
    assert check_folder(tmp_path / "whole").unlisted == list(names)  # as in runs from before there were manifests
