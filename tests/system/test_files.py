import gzip
import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from pointing.errors import Failure, Misuse
from pointing.system.border import digest
from pointing.system.files import (
    count_lines,
    finish_replacing,
    keep_apart,
    read_lines,
    read_text,
    resolved,
    whole_file,
    whole_folder,
    write_text,
)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),  # only a leading mark is one
        (b"\n\n", [b"", b""]),
        ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d".encode()]),  # only \n ends a line
        (b"\xff\x00\n", [b"\xff\x00"]),
    ],
)
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_lines_are_what_stands_between_line_ends(tmp_path, name, content, lines):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "x").write_bytes(b"fine\nnot \xff fine\n")
    with pytest.raises(Misuse, match=r"x:2: not UTF-8 \(byte 5"):
        list(read_text(tmp_path / "x"))


def test_missing_folders_and_broken_gzip_files_are_misuse(tmp_path):
    with pytest.raises(Misuse, match="no such file"):
        list(read_lines(tmp_path / "missing"))
    with pytest.raises(Misuse, match="a folder"):
        list(read_lines(tmp_path))
    (tmp_path / "x.gz").write_bytes(b"not gzip")
    with pytest.raises(Misuse, match="not a whole gzip file"):
        list(read_lines(tmp_path / "x.gz"))
    (tmp_path / "y.gz").write_bytes(gzip.compress(os.urandom(10_000))[:5_000])
    with pytest.raises(Misuse, match="not a whole gzip file"):
        list(read_lines(tmp_path / "y.gz"))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/inside"])
def test_names_that_cannot_be_opened_are_misuse(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(Misuse):
        list(read_lines(tmp_path / name))


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "x"
    write_text(path, "old")
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["x"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x"
    for content in ("old", "new"):
        with whole_folder(path) as part:
            (part / "file").write_text(content)
            assert content == "old" or (path / "file").read_text() == "old"
    with pytest.raises(RuntimeError), whole_folder(path) as part:
        (part / "file").write_text("half")
        raise RuntimeError
    assert (path / "file").read_text() == "new"
    assert os.listdir(tmp_path) == ["x"]


def test_files_and_folders_have_the_usual_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "")
        with whole_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def refused(process, number):
    raise PermissionError


def test_a_process_of_another_user_is_not_taken_for_dead(tmp_path, monkeypatch):
    part = tmp_path / f".x.{socket.gethostname()}.{os.getpid()}.a1.part"
    part.mkdir()
    monkeypatch.setattr(os, "kill", refused)
    with whole_folder(tmp_path / "x"):
        pass
    assert part.exists()


def test_what_killed_processes_left_is_removed_and_what_others_write_is_not(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (tmp_path / f".x.{socket.gethostname()}.{process}.a1.part" for process in (ended.pid, 1))
    dead.mkdir()
    alive.mkdir()  # process 1 is always there
    with whole_folder(tmp_path / "x"):
        pass
    assert sorted(os.listdir(tmp_path)) == [alive.name, "x"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_failure_that_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    write_text(path, "old")
    with (
        pytest.raises(Failure, match="No space left on device; nothing was left half-written"),
        whole_file(path) as part,
    ):
        part.unlink()
        part.symlink_to("/dev/full")
        part.write_text("new" * 100_000)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_closed_pipe_is_not_blamed_on_the_file(tmp_path):
    with pytest.raises(BrokenPipeError), whole_file(tmp_path / "page.html"):
        raise BrokenPipeError(32, "Broken pipe")
    assert not list(tmp_path.iterdir())


def test_a_digest_is_of_what_is_in_a_file(tmp_path):
    for name, text in (("a", b"x" * 3_000_000), ("b", b"x" * 3_000_000), ("c", b"x" * 2_999_999 + b"y")):
        (tmp_path / name).write_bytes(text)
    a, b, c = (digest(tmp_path / name) for name in "abc")
    assert a == b != c
    assert a == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    with pytest.raises(Misuse, match="there is no such file"):
        digest(tmp_path / "d")


def test_a_file_is_on_the_disk_before_its_name_and_its_name_before_the_block_is_left(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace

    def synced(descriptor):
        done.append(("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def renamed(path, target):
        done.append(("rename", str(target)))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    with whole_file(tmp_path / "x") as part:
        part.write_text("new")
    assert done == [("fsync", str(part)), ("rename", str(tmp_path / "x")), ("fsync", str(tmp_path))]
    done.clear()
    with whole_folder(tmp_path / "y") as part:
        (part / "z").write_text("new")
    assert done[:2] == [("fsync", str(part / "z")), ("fsync", str(part))]
    assert done[2:] == [("rename", str(tmp_path / "y")), ("fsync", str(tmp_path))]


WRITE = (
    "import os, sys; from pathlib import Path; from pointing.system.files import whole_file, whole_folder\n"
    "path, kind = Path(sys.argv[1]), sys.argv[2]\n"
    "if kind == 'file':\n"
    "    with whole_file(path) as part: part.write_text('half'); os._exit(9)\n"
    "replace, renames = Path.replace, []\n"
    "def last(one, other):\n"
    "    if len(renames) == int(kind): os._exit(9)\n"
    "    renames.append(other)\n"
    "    return replace(one, other)\n"
    "Path.replace = last\n"
    "with whole_folder(path) as part: (part / 'x').write_text('new')\n"
)


def killed_while_writing(path, kind):
    command = [sys.executable, "-c", WRITE, str(path), kind]
    assert subprocess.run(command, check=False, env=tiny.environment()).returncode == 9


def test_what_a_kill_left_of_a_file_goes_with_the_next_one(tmp_path):
    killed_while_writing(tmp_path / "page.html", "file")
    assert len(os.listdir(tmp_path)) == 1
    write_text(tmp_path / "page.html", "whole")
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize(("renames", "content"), [("0", "old"), ("1", "new")])
def test_a_kill_between_the_renames_of_a_folder_loses_neither(tmp_path, renames, content):
    path = tmp_path / "corpus"
    path.mkdir()
    (path / "x").write_text("old")
    killed_while_writing(path, renames)
    assert path.exists() is (renames == "0")
    finish_replacing(path)
    assert (path / "x").read_text() == content
    with whole_folder(path) as part:
        (part / "x").write_text("newer")
    assert (path / "x").read_text() == "newer"
    assert os.listdir(tmp_path) == ["corpus"]


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    with (
        whole_folder(tmp_path / "x"),
        pytest.raises(Misuse, match="x: somebody writes into this folder"),
        whole_folder(tmp_path / "x"),
    ):
        pass
    assert os.listdir(tmp_path) == ["x"]


def test_long_names_are_written_too(tmp_path):
    for _ in range(2):
        write_text(tmp_path / ("é" * 120), "x")
    assert os.listdir(tmp_path) == ["é" * 120]


def test_what_is_read_is_not_written_over_by_any_name(tmp_path):
    text = tmp_path / "text"
    text.write_text("x")
    (tmp_path / "link").symlink_to(text)
    (tmp_path / "hard").hardlink_to(text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("y")
    for target in (text, tmp_path / "link", tmp_path / "hard", tmp_path / "folder" / ".." / "text"):
        with pytest.raises(Misuse, match=r"this would be written over, (which|for .*) is read: give another name"):
            keep_apart([None, tmp_path / "other", str(text)], [None, target])
    with pytest.raises(Misuse, match=r"folder: this would be written over, for .*inside is read"):
        keep_apart([tmp_path / "folder" / "inside"], [tmp_path / "folder"])
    keep_apart([text, tmp_path / "not there"], [tmp_path / "new", tmp_path / "folder", None])
    with pytest.raises(Misuse, match="which is read"):
        keep_apart([tmp_path / "not there"], [tmp_path / "not there"])


def test_a_loop_of_links_is_a_path_like_others(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("there")
    assert resolved(tmp_path / "loop").name == "loop"
    assert resolved(tmp_path / "x" / ".." / "link") == tmp_path.resolve() / "there"
