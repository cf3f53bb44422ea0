import json
import os
from pathlib import Path

import pytest

from pointing.errors import Misuse
from pointing.system import border
from pointing.system.border import MANIFEST, check_file, read_bytes
from pointing.system.files import read_lines, whole_file
from pointing.system.manifest import announce, describe, problems


def write(folder, **files):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    describe(folder, files)


def test_a_file_is_read_as_it_was_written_or_not_at_all(tmp_path):
    write(tmp_path, a=b"one\ntwo\n")
    assert read_bytes(tmp_path / "a") == b"one\ntwo\n"
    for damaged, message in [
        (b"two\none\n", "a: damaged: some of its 8 bytes are not those that were written; take it from a copy"),
        (b"one\n", "a: damaged: it has 4 bytes, and was written with 8; take it from a copy"),
    ]:
        (tmp_path / "a").write_bytes(damaged)
        for read in (read_bytes, check_file, lambda path: list(read_lines(path))):
            with pytest.raises(Misuse, match=message):
                read(tmp_path / "a")
        assert [message in problem for problem in problems(tmp_path)] == [True]
    (tmp_path / "a").unlink()
    assert problems(tmp_path) == [f"{tmp_path / 'a'}: there is no such file"]


def test_large_files_are_hashed_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(border, "SMALL", 3)
    write(tmp_path, a=b"1234")
    (tmp_path / "a").write_bytes(b"1243")
    check_file(tmp_path / "a")
    with pytest.raises(Misuse, match="damaged"):
        check_file(tmp_path / "a", wholly=True)
    (tmp_path / "a").write_bytes(b"123")  # the size always counts
    with pytest.raises(Misuse, match="damaged"):
        check_file(tmp_path / "a")


class Killed(BaseException):
    """Stands for SIGKILL: nothing is tidied up after it."""


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_kill_while_a_file_is_replaced_leaves_one_that_is_read(tmp_path, monkeypatch, at):
    write(tmp_path, a=b"old", b=b"b")
    replace = Path.replace

    def killed(path, target):
        if Path(target).name == MANIFEST:
            return replace(path, target)
        if at == "after":
            replace(path, target)
        raise Killed

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(Killed), whole_file(tmp_path / "a") as part:
        part.write_bytes(b"newer")
        announce(tmp_path / "a", part)
    assert read_bytes(tmp_path / "a") == (b"old" if at == "before" else b"newer")
    assert problems(tmp_path) == []
    (tmp_path / "a").write_bytes(b"other")
    assert len(problems(tmp_path)) == 1


def test_a_folder_without_a_manifest_and_one_of_somebody_else_list_nothing(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    assert read_bytes(tmp_path / "a") == b"x"
    (tmp_path / MANIFEST).write_text(json.dumps({"name": "a web page", "icons": []}))
    assert read_bytes(tmp_path / "a") == b"x"
    assert problems(tmp_path) == []


@pytest.mark.parametrize("files", [[], {"a": 3}, {"a": [{"bytes": 1}]}, {"a": [{"bytes": "x", "sha256": 3}]}])
def test_a_damaged_manifest_is_said(tmp_path, files):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": border.MANIFEST_KIND, "files": files}))
    with pytest.raises(
        Misuse, match=r"manifest\.json: not a whole manifest \(.*\); if the files beside it are in order"
    ):
        read_bytes(tmp_path / "a")


def test_a_manifest_is_always_written_alike(tmp_path):
    write(tmp_path, b=b"2", a=b"1")
    first = (tmp_path / MANIFEST).read_bytes()
    write(tmp_path, a=b"1", b=b"2")
    assert (tmp_path / MANIFEST).read_bytes() == first
    assert sorted(os.listdir(tmp_path)) == ["a", "b", MANIFEST]
