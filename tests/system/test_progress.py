import pytest

from pointing.system import progress as module
from pointing.system.progress import progress, say, track


def test_off_a_terminal_there_are_plain_lines_with_rate_and_time_left(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with progress("counting", 100, "pairs") as bar:
        bar.note("loss 2.5")
        now = 20.0
        bar.advance(10)
        now = 25.0
        bar.advance(10)  # too soon for another line
        now = 40.0
    assert capsys.readouterr().err.splitlines() == [
        "counting: 10 of 100 pairs, 0.5 pairs/s, 180 s left, loss 2.5",
        "counting: 20 of 100 pairs, 0.5 pairs/s, 160 s left, loss 2.5",
    ]


def test_what_was_done_before_is_progress_but_not_speed(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with progress("training", 100, "updates", done=40) as bar:
        now = 20.0
        bar.advance(20)
    assert capsys.readouterr().err == "training: 60 of 100 updates, 1 updates/s, 40 s left\n"


def test_the_last_line_is_not_said_twice(capsys, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    assert list(track(range(2), "x", 2, "items")) == [0, 1]
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "x: 1 of 2 items",
        "x: 2 of 2 items",
    ]


def test_a_short_job_prints_nothing_and_a_bar_without_progress_does_not_divide_by_zero(capsys, monkeypatch):
    assert list(track(range(3), "x", 3, "items")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    with progress("x", 5, "items") as bar:
        bar.advance(0)
    assert "0 of 5 items" in capsys.readouterr().err


@pytest.mark.parametrize("total", [None, 3])
def test_on_a_terminal_there_is_a_bar(total, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("x", total, "items") as bar:
        bar.advance(2)
        bar.note("half-way")
    assert "items/s" in capsys.readouterr().err


def test_what_is_said_does_not_command_a_terminal(capsys):
    say("\nwarning: a\x1b[2J.csv: 3 lines\tleft out")
    assert capsys.readouterr().err == "\nwarning: a�[2J.csv: 3 lines\tleft out\n"
