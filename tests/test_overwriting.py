"""No command writes over what it reads; each is asked with files that are both."""

import os
import shutil
import subprocess

import pytest
import tiny


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run, its corpus, and texts."""
    folder = tmp_path_factory.mktemp("place")
    tiny.untrained(folder)
    (folder / "text").write_text("a b name1\n" * 60)
    (folder / "other").write_text("A B name1\n" * 60)
    (folder / "text.csv").write_text("en,fr\na,\n")
    (folder / "terms").write_text("a\tb\n")
    (folder / "tags").write_text("a￨O\n")
    (folder / "report").mkdir()
    (folder / "report" / "results.json").write_text("A B name1\n" * 60)
    return folder


COMMANDS = [
    ("dictionary", "text", "other", "--out", "text"),
    ("dictionary", "text", "other", "--out", "other"),
    ("generate", "run", "text", "--html", "text"),
    ("generate", "run", "text", "--glossary", "terms", "--html", "terms"),
    ("generate", "run", "text", "--keep", "terms", "--html", "terms"),
    ("generate", "run", "text", "--dictionary", "terms", "--html", "terms"),
    ("generate", "run", "text", "--tags", "tags", "--html", "tags"),
    ("generate", "run", "text", "--html", "run/config.yaml"),
    ("translate", "run", "text.csv", "-o", "text.csv"),
    ("translate", "run", "text.csv", "-o", "out.csv", "--html", "text.csv"),
    ("translate", "run", "text.csv", "-o", "out.csv", "--html", "out.csv"),
    ("translate", "run", "text.csv", "-o", "terms", "--keep", "terms"),
    ("translate", "run", "text.csv", "-o", "out.csv", "--glossary", "terms", "--html", "terms"),
    ("translate", "run", "text.csv", "-o", "run/source.vocabulary"),
    ("evaluate", "text", "--reference", "report/results.json", "--out", "report"),
    ("calibrate", "run", "--source", "run/confidence.json", "--reference", "other"),
    ("prepare", "prepared-run/settings.yaml", "--out", "prepared-run"),
    ("prepare", "tiny.yaml", "--set", "pointers.dictionary=prepared-run/dictionary.tsv", "--out", "prepared-run"),
    ("train", "tiny.yaml", "--corpus", "new", "--out", "new"),
    ("train", "tiny.yaml", "--set", "data.dev.source=new/held-out-dev.source", "--corpus", "c", "--out", "new"),
    ("data", "huggingface", "data", "en", "fr", "--out", "data"),
]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_a_command_reads_is_not_written_over(place, tmp_path, monkeypatch, command):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for folder, name, of in [
        ("new", "held-out-dev.source", "dev.source"),
        ("prepared-run", "settings.yaml", "tiny.yaml"),
        ("data", "train.en", "text"),
        ("run", "confidence.json", "other"),
    ]:
        if any(f"{folder}/" in part for part in command) or command[-1] == folder != "new":
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            shutil.copy(of, f"{folder}/{name}")
    if "pointers.dictionary=prepared-run/dictionary.tsv" in command:
        shutil.copy("terms", "prepared-run/dictionary.tsv")
    before = contents(tmp_path)
    code, said = tiny.said(*command)
    assert code == 2, said
    assert len(said.splitlines()) == 1, said
    reasons = ("written over", "need a folder each", "there is something else", "holds other")
    assert any(reason in said for reason in reasons), said
    assert contents(tmp_path) == before


def test_an_output_that_is_added_to_its_input_is_refused(place, tmp_path):
    shutil.copy(place / "text", tmp_path)
    with (tmp_path / "text").open("ab") as out:
        done = subprocess.run(
            tiny.command("generate", place / "run", "text"),
            **{"cwd": tmp_path, "env": tiny.environment(), "stdout": out, "stderr": subprocess.PIPE, "text": True},
            check=False,
        )
    assert done.returncode == 2
    assert "text: the output goes into this file, which is read" in done.stderr
    assert (tmp_path / "text").read_text() == (place / "text").read_text()


def test_a_report_that_cannot_be_written_is_said_before_any_work(place, monkeypatch):
    monkeypatch.chdir(place)
    for out in ("text/inside", "text/inside/more"):
        code, said = tiny.said("evaluate", "text", "--reference", "other", "--out", out)
        assert (code, len(said.splitlines())) == (2, 1)
        assert said.startswith(f"pointing: {out}: cannot be written: ")
        assert "Errno" not in said
