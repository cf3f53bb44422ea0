import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pointing.errors import Failure
from pointing.model.run import METRICS
from pointing.training import journal
from pointing.training.journal import Journal, read_journal


@pytest.fixture(autouse=True)
def without_board(monkeypatch):
    monkeypatch.setattr(journal, "_tensorboard", lambda folder, update: None)


def write(folder, updates, start=0):
    some = Journal(folder, start)
    for update in updates:
        some.note("training", update, {"loss": update / 10, "switch": {"bins": [1, None]}})
    some.close()


def test_what_was_noted_is_read(tmp_path):
    write(tmp_path, [1, 2])
    first = {"event": "training", "update": 1, "loss": 0.1, "switch": {"bins": [1, None]}}
    assert read_journal(tmp_path) == [first, {**first, "update": 2, "loss": 0.2}]


def test_every_line_is_on_the_disk_when_it_is_noted(tmp_path):
    some = Journal(tmp_path)
    some.note("training", 1, {})
    assert len(read_journal(tmp_path)) == 1
    some.close()


def test_taken_up_at_an_update_later_lines_are_dropped(tmp_path):
    write(tmp_path, [1, 2, 3])
    write(tmp_path, [3, 4], start=2)
    assert [line["update"] for line in read_journal(tmp_path)] == [1, 2, 3, 4]


def test_a_new_run_begins_with_nothing(tmp_path):
    write(tmp_path, [1, 2, 3])
    write(tmp_path, [1])
    assert [line["update"] for line in read_journal(tmp_path)] == [1]


def test_a_line_cut_off_anywhere_is_no_event(tmp_path):
    write(tmp_path, [1, 2])
    whole = (tmp_path / METRICS).read_bytes()
    second = whole.index(b"\n") + 1
    for length in range(second, len(whole)):
        (tmp_path / METRICS).write_bytes(whole[:length])
        assert [line["update"] for line in read_journal(tmp_path)] == [1]
    write(tmp_path, [3], start=2)  # after the cut line, not in it
    assert [line["update"] for line in read_journal(tmp_path)] == [1, 3]


def test_no_journal_has_no_events(tmp_path):
    assert read_journal(tmp_path) == []


def test_numbers_are_flat_for_tensorboard():
    numbers = {"a": 1, "b": {"c": 2.5, "d": {"e": 3}}, "text": "x", "yes": True, "none": None, "list": [1]}
    assert journal._flat(numbers) == [("a", 1), ("b_c", 2.5), ("b_d_e", 3)]


def test_lines_are_json_to_others_too(tmp_path):
    write(tmp_path, [1])
    for line in (tmp_path / METRICS).read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_full_disk_is_said_in_a_line(tmp_path):
    some = Journal(tmp_path)
    some.file.close()
    some.file = Path("/dev/full").open("w")  # noqa: SIM115 - the journal closes it
    with pytest.raises(Failure) as error:
        some.note("training", 1, {})
    assert str(error.value) == f"{tmp_path / METRICS}: cannot be written: No space left on device"
    some.close()


NO_ROOM = """
import resource, sys, threading
from pathlib import Path
from pointing.errors import Failure
from pointing.training.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))  # less than a first event takes
try:
    Journal(Path(sys.argv[1]))
except Failure as error:
    print(error)
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
"""


def test_tensorboard_without_room_prints_no_traceback(tmp_path):
    pytest.importorskip("tensorboard")
    process = subprocess.run([sys.executable, "-c", NO_ROOM, tmp_path], capture_output=True, text=True, check=True)
    assert process.stdout == f"{tmp_path / 'tensorboard'}: cannot be written: File too large\n"
    assert "Traceback" not in process.stderr


def test_errors_of_other_threads_reach_whoever_asked_for_them(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(type(args.exc_value)))
    journal._quiet_thread_of_tensorboard.__wrapped__()
    thread = threading.Thread(target=os.remove, args=["/nowhere/at/all"])
    thread.start()
    thread.join()
    assert seen == [FileNotFoundError]
