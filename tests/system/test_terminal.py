"""What reaches a terminal, and what happens without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from pointing.errors import Deserted, Failure, Misuse, Stopped
from pointing.system import terminal
from pointing.system.progress import progress, say
from pointing.system.terminal import ending, visible


def shell(command, folder, **more):
    line = command.replace("pointing", f"{sys.executable} -m pointing", 1)
    options = {"capture_output": True, "check": False, "cwd": folder, "env": {**tiny.environment(), **more}}
    return subprocess.run(["bash", "-c", line], **options)


def test_controls_are_not_shown():
    text = "a\x1b[2J\u202eb\u2066c\u2069\x07\x9b\udcff\td\u200f"
    assert visible(text) == "a�[2J�b�c���" + "�\td\u200f"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (Misuse("wrong\n\x1b[31m", "x"), 2, "pointing: x: wrong �[31m\n"),
        (Failure("bad luck"), 1, "pointing: bad luck\n"),
        (Stopped("go on"), 130, "pointing: go on\n"),
        (Deserted("alone"), 1, "pointing: alone\n"),
        (
            PermissionError(13, "Permission denied", "x"),
            1,
            "pointing: x: cannot be read or written: Permission denied\n",
        ),
        (OSError("odd"), 1, "pointing: cannot be read or written: odd\n"),
        (MemoryError(), 1, "pointing: there is not enough memory for this: take a smaller model, batch or beam\n"),
        (SystemExit(130), 130, "pointing: stopped\n"),
    ],
)
def test_every_end_is_a_line_and_a_code(error, code, line, capsys):
    with pytest.raises(SystemExit) as stop, ending():
        raise error
    assert (stop.value.code, capsys.readouterr().err) == (code, line)


def test_of_several_processes_the_first_one_speaks(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "SECONDS_FOR_THE_FIRST", 0.0)
    monkeypatch.setenv("RANK", "1")
    say("not this")
    for error, line in [(Stopped("x"), ""), (Deserted("x"), ""), (Misuse("only here"), "pointing: only here\n")]:
        with pytest.raises(SystemExit), ending():
            raise error
        assert capsys.readouterr().err == line


def test_what_nobody_hears_stops_nothing(monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        def isatty(self):
            return False

    for stream in (None, Full()):
        monkeypatch.setattr(sys, "stderr", stream)
        say("x")
        with progress("x", 3, "lines") as bar:
            bar.advance()


def test_without_standard_error_a_command_does_its_work(tmp_path):
    pairs = [("the cat sleeps", "le chat dort"), ("the dog eats", "le chien mange"), ("a cat", "un chat")] * 5
    for name, side in zip(("x.en", "x.fr"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(side) + "\n")
    done = shell("pointing dictionary x.en x.fr --out x.tsv 2>&-", tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(b"x.tsv: ")
    assert b"\t" in (tmp_path / "x.tsv").read_bytes()
    done = shell("pointing dictionary x.en nothing --out y.tsv 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert sorted(os.listdir(tmp_path)) == ["x.en", "x.fr", "x.tsv"]


def test_names_that_are_not_utf8_are_told_and_written(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    for language in (b".en", b".fr"):
        with open(name + language, "wb") as file:  # noqa: PTH123
            file.write(b"the cat\na dog\n" * 9)
    done = shell("pointing dictionary $'caf\\xe9.en' $'caf\\xe9.fr' --out $'caf\\xe9.tsv'", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(rb"caf\udce9.tsv: ")
    assert os.path.exists(name + b".tsv")  # noqa: PTH110
    done = shell("pointing generate run $'caf\\xe8'", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    (tmp_path / "x.yaml").write_text("data: {train: x.csv}")
    done = shell("pointing prepare x.yaml --set data.train=$'caf\\xe9.en'", tmp_path)
    assert done.returncode == 2
    assert b"is not a YAML value" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (tmp_path / "run").mkdir()
    Path(os.fsdecode(name + b".tsv")).rename(tmp_path / os.fsdecode(b"caf\xe9.csv"))
    done = shell("pointing init $'caf\\xe9.csv'", tmp_path)
    assert done.returncode == 2
    assert b"is not UTF-8, which settings are written in: rename the file" in done.stderr
