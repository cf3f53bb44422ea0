"""How commands that are printed for the user begin."""

import shutil
import sys

import pytest

from pointing.system.program import program


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Sets how the program was called, from a folder in which bin/pointing is a program."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "pointing"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")

    def call(name, path=None):
        monkeypatch.setattr(sys, "argv", [str(name)])
        if path is not None:
            monkeypatch.setenv("PATH", str(path))
        return program()

    return call


def test_the_shell_finds_this_program_by_its_name(called, tmp_path):
    assert called(tmp_path / "bin" / "pointing", path=tmp_path / "bin") == "pointing"
    (tmp_path / "link").symlink_to(tmp_path / "bin" / "pointing")
    assert called(tmp_path / "link", path=tmp_path / "bin") == "pointing"


def test_a_program_that_is_not_on_the_path_is_named_by_its_own(called, tmp_path):
    assert called(tmp_path / "bin" / "pointing") == "bin/pointing"
    assert called("bin/pointing") == "bin/pointing"


def test_another_program_of_that_name_is_not_meant(called, tmp_path):
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "bin" / "pointing", tmp_path / "other" / "pointing")
    assert called(tmp_path / "bin" / "pointing", path=tmp_path / "other") == "bin/pointing"


def test_a_program_outside_of_the_working_folder_has_its_whole_path(called, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert called(tmp_path / "bin" / "pointing") == str(tmp_path / "bin" / "pointing")


def test_a_path_with_spaces_is_quoted(called, tmp_path):
    (tmp_path / "my bin").mkdir()
    shutil.copy(tmp_path / "bin" / "pointing", tmp_path / "my bin" / "pointing")
    assert called("my bin/pointing") == "'my bin/pointing'"


def test_a_module_is_run_by_the_same_python(called, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    assert called("/somewhere/pointing/__main__.py") == "bin/python -m pointing"
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert called("/somewhere/pointing/__main__.py") == "/usr/bin/python3 -m pointing"


def test_a_program_that_is_gone_is_called_pointing(called):
    assert called("gone/pointing") == "pointing"
    assert called("") == "pointing"  # in an embedded Python
