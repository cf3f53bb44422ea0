"""Which files are read, and which are known again; every way to change a file is noticed."""

import gzip
import hashlib
import json
import os
import shutil
import time

import pytest

from pointing.system import digests as module
from pointing.system.digests import Digests
from pointing.system.files import about_lines, read_blocks


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    """Files count as settled at once; times of changes are then a clock's tick apart."""
    monkeypatch.setattr(module, "SETTLED", -1)


@pytest.fixture
def reads(monkeypatch):
    """The names of the files that are hashed."""
    names = []

    def digest(path):
        names.append(path.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(module, "digest", digest)
    return names


def again(digests, record):
    digests.save(record)
    return Digests.load(record)


def tick(path):
    """Waits until a change has another time than the file's last one."""
    probe = path.with_name("probe")
    while True:
        probe.write_text("")
        if probe.stat().st_ctime_ns > path.stat().st_ctime_ns:
            return
        time.sleep(0.002)


def in_place(path):
    before = path.stat()
    with path.open("r+") as file:
        file.write("A")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the time set back


def replaced(path):
    """By a file of the same size and time, as `cp -p` makes it."""
    other = path.with_name("other")
    other.write_text("Bbc\n")
    shutil.copystat(path, other)
    other.replace(path)


def grown(path):
    with path.open("a") as file:
        file.write("d\n")


def test_a_file_that_nobody_touched_is_not_read_again(tmp_path, reads):
    path, record = tmp_path / "a", tmp_path / "read.json"
    path.write_text("abc\n")
    digests = Digests()
    sha = digests(path)
    digests = again(digests, record)
    written = record.stat().st_mtime_ns
    path = path.rename(tmp_path / "b")  # its time of change is another one, its content is not
    assert digests(path) == sha
    assert reads == ["a", "b"]
    digests = again(digests, record)
    assert record.stat().st_mtime_ns > written
    assert digests(path) == sha
    assert reads == ["a", "b"]
    written = record.stat().st_mtime_ns
    digests.save(record)  # nothing new
    assert record.stat().st_mtime_ns == written


@pytest.mark.parametrize("change", [in_place, replaced, grown, os.utime])
def test_a_file_that_was_touched_is_read_again(tmp_path, reads, change):
    path = tmp_path / "a"
    path.write_text("abc\n")
    digests = Digests()
    sha = digests(path)
    digests = again(digests, tmp_path / "read.json")
    tick(path)
    change(path)
    assert (digests(path) == sha) == (change is os.utime)
    assert reads == ["a", "a"]


def test_a_file_that_was_just_written_is_not_trusted(tmp_path, reads, monkeypatch):
    monkeypatch.setattr(module, "SETTLED", 60_000_000_000)
    (tmp_path / "a").write_text("abc\n")
    digests = Digests()
    digests(tmp_path / "a")
    again(digests, tmp_path / "read.json")(tmp_path / "a")
    assert reads == ["a", "a"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"files": 7}', '{"files": [{"bytes": 4}]}'])
def test_a_damaged_record_costs_nothing_but_time(tmp_path, reads, damage):
    (tmp_path / "a").write_text("abc\n")
    (tmp_path / "read.json").write_text(damage)
    digests = Digests.load(tmp_path / "read.json")
    assert digests(tmp_path / "a") == hashlib.sha256(b"abc\n").hexdigest()
    digests.save(tmp_path / "read.json")
    assert len(json.loads((tmp_path / "read.json").read_text())["files"]) == 1


@pytest.mark.parametrize("name", ["a", "a.gz"])
@pytest.mark.parametrize("content", [b"x\ny", b"\xef\xbb\xbfx\r\ny\n" * 300_000])
def test_what_is_read_is_hashed_meanwhile(tmp_path, reads, name, content):
    path, digests = tmp_path / name, Digests()
    path.write_bytes(gzip.compress(content) if name == "a.gz" else content)
    plain = [line for block in read_blocks(path, 1000) for line in block]
    assert [line for block in read_blocks(path, 1000, digests.watching) for line in block] == plain
    assert digests(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not reads
    again(digests, tmp_path / "read.json")(path)
    assert not reads
    if name == "a":
        assert about_lines(path) == pytest.approx(len(plain), rel=0.01)


def test_what_is_read_whole_is_hashed_too(tmp_path, reads, monkeypatch):
    path, digests = tmp_path / "a", Digests()
    path.write_bytes(b"abc\n")
    assert digests.read_bytes(path) == b"abc\n"
    digests = again(digests, tmp_path / "read.json")
    assert digests(path) == hashlib.sha256(b"abc\n").hexdigest()
    assert not reads
    digests = Digests()
    plain = module.read_bytes

    def changed_meanwhile(path):
        data = plain(path)
        tick(path)
        grown(path)
        return data

    monkeypatch.setattr(module, "read_bytes", changed_meanwhile)
    assert digests.read_bytes(path) == b"abc\n"
    assert digests(path) == hashlib.sha256(b"abc\n").hexdigest()  # of what was read
    assert not digests.used


def test_a_file_that_changes_while_it_is_read_is_not_known_again(tmp_path, reads):
    path, digests = tmp_path / "a", Digests()
    path.write_text("abc\n" * 1_000_000)
    blocks = read_blocks(path, 1000, digests.watching)
    next(blocks)
    tick(path)
    in_place(path)
    list(blocks)
    assert digests(path) == hashlib.sha256(b"abc\n" * 1_000_000).hexdigest()  # what was read
    again(digests, tmp_path / "read.json")(path)
    assert reads == ["a"]
