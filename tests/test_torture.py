"""The campaign's own tools, and a quick share of it (`make torture` is the whole)."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import tiny

from torture.code_mutants import mutants
from torture.full_disks import can_mount, small_disk
from torture.summary import write_summary
from torture.trials import Command, Found, Part, check_said, run_trials, starved

SOURCE = '''def f(x, y=2):
    """Text that is no code."""
    if x < y and not done:
        raise ValueError(f"{x} < 3")
    total += g(x, 1)
    return total
'''


def test_mutants_are_small_mistakes_one_at_a_time():
    changed = [(mutant.lines.start, mutant.before, mutant.after) for mutant in mutants(SOURCE)]
    assert changed == [
        (1, "2", "3"),
        (3, "x < y and (not done)", "not (x < y and (not done))"),
        (3, "x < y and (not done)", "x < y or not done"),
        (3, "x < y", "x <= y"),
        (3, "not done", "not not done"),
        (4, "raise ValueError(f'{x} < 3')", "pass"),
        (5, "total += g(x, 1)", "total -= g(x, 1)"),
        (5, "g(x, 1)", "g(x, 2)"),
        (5, "g(x, 1)", "g(1, x)"),
        (5, "total += g(x, 1)", "pass"),
    ]
    assert len({mutant.source for mutant in mutants(SOURCE)} | {SOURCE}) == len(changed) + 1
    assert [mutant.in_function for mutant in mutants(SOURCE)] == [False] + [True] * 9


def test_what_is_the_same_the_other_way_round_is_no_mistake():
    source = "def f(a, b):\n    return g(a, a), max(a, b), t.maximum(a, b), t.max(a, b), min(*a, b), h(a)\n"
    assert [(mutant.before, mutant.after) for mutant in mutants(source) if "(b, a)" in mutant.after] == [
        ("t.max(a, b)", "t.max(b, a)")
    ]


def trial_of(*arguments, codes=(0,), seconds=60.0, **options):
    def trial(part, folder):
        command = Command(folder, *arguments, **options)
        check_said(command, (yield command.ended(seconds)), *codes)
        part.count("ended")

    return trial


def test_a_trial_tells_a_right_end_from_a_wrong_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where folders of trials that found something stay
    trials = [
        trial_of("--version"),
        trial_of("check", tmp_path / "nowhere", codes=(2,)),
        trial_of("check", tmp_path / "nowhere"),  # an exit code that is not expected
        trial_of("generate", "run", seconds=0.0),  # not ended in time
        trial_of("--version", limits={resource.RLIMIT_CPU: 0}),  # killed by the system
    ]
    part = run_trials(Part("ends", "of commands"), trials, workers=2)
    assert part.trials == 5
    assert part.counts == {"ended": 2}
    reasons = sorted(re.findall(r"exit code (-?\d+)|(no end)", " ".join(part.found)))
    assert len(part.found) == len(reasons) == 3
    assert ("2", "") in reasons


BUSY = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.fork(), os.fork()
os.write(1, b"busy\\n")  # in one piece
end = time.monotonic() + 20
while time.monotonic() < end:
    pass
"""


def test_time_without_a_processor_is_no_hang():
    """Four processes share one processor: each has it for a quarter of the time at most."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, start_new_session=True) as busy:
        try:
            assert [busy.stdout.readline() for _ in range(4)] == [b"busy\n"] * 4
            before, start = starved(busy.pid), time.monotonic()
            time.sleep(0.5)
            assert 0.1 < starved(busy.pid) - before < time.monotonic() - start + 0.1
        finally:
            os.killpg(busy.pid, signal.SIGKILL)
    assert starved(2**22 + 1) == 0  # there is no such process


def test_a_traceback_is_found_and_so_is_a_code_without_a_reason(tmp_path):
    (tmp_path / "here").mkdir()
    command = Command(tmp_path / "here", "--version")
    command.process.wait(60)
    for said, code, reason in [
        ("Traceback (most …", 1, "a traceback"),
        ("well", 2, "without a line"),
        ("", 1, "without"),
    ]:
        (command._said / "stderr").write_text(said)
        with pytest.raises(Found, match=reason):
            check_said(command, code, 0, 1, 2)


def test_a_summary_says_what_was_tried_and_found(tmp_path):
    part = Part("files", "damaged", trials=1200, counts={"used": 700, "refused": 499}, found=["pointing x: no end"])
    part.notes.append("line 7 is no fault")
    text = write_summary(tmp_path, [part], 3, "python -m torture")
    assert "| files: damaged | 1,200 | 700 used, 499 refused | 1 |" in text
    assert "- files: pointing x: no end\n- files: line 7 is no fault" in text
    assert json.loads((tmp_path / "summary.json").read_text())["parts"][0]["found"] == ["pointing x: no end"]


def test_a_small_disk_is_small(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("this user may not mount")
    (tmp_path / "disk").rmdir()
    with small_disk(tmp_path) as disk, pytest.raises(OSError, match="No space"):
        (disk / "file").write_bytes(random.randbytes(1 << 20) * 65)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["kills", "disks", "writers", "files"])
def test_a_quick_share_of_the_campaign_finds_nothing(tmp_path, part):
    command = [sys.executable, "-m", "torture", part, "--share", "0.03", "--out", str(tmp_path)]
    run = partial(subprocess.run, cwd=tiny.ROOT, env=tiny.environment(), capture_output=True, text=True)
    result = run(command, check=False, timeout=1200)
    assert result.returncode == 0, result.stdout
    assert json.loads((tmp_path / "summary.json").read_text())["parts"][0]["trials"] > 0
