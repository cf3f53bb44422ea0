import json

import pytest

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
