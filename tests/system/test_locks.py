import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys

import pytest
import tiny

from pointing.errors import Misuse
from pointing.system import locks
from pointing.system.locks import LOCK, sole_writer

HOLD = (
    "import sys, time; from pathlib import Path; from pointing.system.locks import sole_writer\n"
    "with sole_writer(Path(sys.argv[1])): print('held', flush=True); time.sleep(100)"
)


@pytest.fixture
def holder(tmp_path):
    """Another process, which holds the lock of the folder `run`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=tiny.environment())
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_writer_is_told_who_the_first_one_is(tmp_path, holder):
    with (
        pytest.raises(
            Misuse, match=rf"run: somebody writes into this folder \(process {holder.pid} on \S+, since \d{{4}}-"
        ),
        sole_writer(tmp_path / "run"),
    ):
        pass


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_ends_with_its_process(tmp_path, holder, kind):
    holder.send_signal(kind)
    holder.wait()
    assert (tmp_path / "run" / LOCK).exists()  # the file is left, and says nothing any more
    with sole_writer(tmp_path / "run") as lock:
        assert lock.holds()
        assert (tmp_path / "run" / LOCK).read_text().startswith(f"process {os.getpid()} on ")


def test_a_lock_is_held_against_its_own_process_too(tmp_path):
    with (
        sole_writer(tmp_path / "run"),
        pytest.raises(Misuse, match=f"process {os.getpid()} on"),
        sole_writer(tmp_path / "run"),
    ):
        pass


def test_nothing_is_left_of_a_lock(tmp_path):
    with sole_writer(tmp_path / "new" / "run"):
        assert os.listdir(tmp_path / "new" / "run") == [LOCK]
    assert os.listdir(tmp_path / "new") == []  # the empty folder is gone
    (tmp_path / "old").mkdir()
    with sole_writer(tmp_path / "old"):
        pass
    assert os.listdir(tmp_path / "old") == []


def test_a_file_in_a_folders_place_is_misuse(tmp_path):
    (tmp_path / "run").write_text("a file")
    for path in (tmp_path / "run", tmp_path / "run" / "below"):
        with pytest.raises(Misuse, match="this is a file, or lies below one: give a folder"), sole_writer(path):
            pass
    assert (tmp_path / "run").read_text() == "a file"


def test_a_lock_knows_when_its_folder_is_gone(tmp_path):
    with sole_writer(tmp_path / "run") as lock:
        (tmp_path / "run").rename(tmp_path / "moved")
        assert not lock.holds()
        with sole_writer(tmp_path / "run") as other:  # somebody's new folder of that name
            assert other.holds()
            assert not lock.holds()
        shutil.rmtree(tmp_path / "moved")
    assert not (tmp_path / "moved").exists()


def test_a_lock_of_somebody_else_is_not_removed(tmp_path):
    with sole_writer(tmp_path / "run"):
        (tmp_path / "run" / LOCK).unlink()
        (tmp_path / "run" / LOCK).write_text("process 1")
    assert (tmp_path / "run" / LOCK).exists()


def test_without_locks_on_a_file_system_there_is_a_warning(tmp_path, monkeypatch, capsys):
    def none(descriptor, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with sole_writer(tmp_path / "run"):
        pass
    assert "there are no locks on this file system: take care that nobody else writes there" in capsys.readouterr().err


def test_a_file_that_its_last_holder_removes_meanwhile_is_not_locked(tmp_path, monkeypatch):
    lock, removed = locks._lock, []

    def later(descriptor, folder):
        if not removed:  # the last holder ends between our opening of the file and our lock on it
            removed.append((tmp_path / "run" / LOCK).unlink())
        return lock(descriptor, folder)

    monkeypatch.setattr(locks, "_lock", later)
    with sole_writer(tmp_path / "run") as held:
        assert held.holds()
