import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pointing.errors import Failure, Misuse
from pointing.system.workers import in_order

_factor = 0


def set_up(factor):
    global _factor
    _factor = factor


def times(number):
    if number == 13:
        raise Misuse("unlucky", "x.txt", 13)
    return _factor * number, os.getpid()


def test_only_a_few_jobs_are_taken_before_their_results_are_wanted():
    taken = []
    jobs = (taken.append(number) or number for number in range(12))
    results = in_order(times, jobs, 2, set_up, 1)
    next(results)
    assert len(taken) == 2 * 2 + 1
    results.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_jobs_order(workers):
    made = list(in_order(times, range(12), workers, set_up, 3))
    assert [number for number, _ in made] == [3 * n for n in range(12)]
    processes = {process for _, process in made}
    assert (os.getpid() in processes) == (workers == 1)
    assert len(processes) <= workers


def test_a_workers_error_is_the_parents():
    with pytest.raises(Misuse, match=r"x\.txt:13: unlucky"):
        list(in_order(times, range(20), 2, set_up, 1))


def large(number):
    if number == 0:
        return b""
    return bytes(200_000_000)


def nothing():
    pass


def test_a_consumers_error_does_not_wait_for_a_worker_that_is_sending(tmp_path):
    with pytest.raises(OSError, match="disk"):
        for _ in in_order(large, range(4), 2, nothing):
            raise OSError("the disk is full")  # while the other worker is half-way through its result


STUFFED = """
import time
from pointing.system.workers import in_order
def nothing(): pass
def sleep(load): time.sleep(60)
def jobs():
    yield from [bytes(10_000_000)] * 4
    time.sleep(3)  # while workers sleep, and a job is half-way to them
    raise KeyboardInterrupt
if __name__ == "__main__":
    list(in_order(sleep, jobs(), 2, nothing))
"""


def test_an_end_does_not_wait_for_a_job_that_nobody_takes(tmp_path):
    (tmp_path / "stuffed.py").write_text(STUFFED)
    process = subprocess.run([sys.executable, "stuffed.py"], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert b"KeyboardInterrupt" in process.stderr
    assert b"BrokenPipe" not in process.stderr


def die(number):
    os._exit(9)


def test_a_worker_that_dies_is_a_failure():
    with pytest.raises(Failure, match="a worker process died"):
        list(in_order(die, range(4), 2, nothing))


def sleep_or_die(number):
    if number:
        os._exit(9)
    time.sleep(60)


def test_a_worker_that_dies_ends_the_others_at_once():
    start = time.monotonic()
    with pytest.raises(Failure, match="a worker process died"):
        list(in_order(sleep_or_die, range(2), 2, nothing))
    assert time.monotonic() - start < 30


def divide_by_zero(number):
    return number / 0


def test_a_workers_error_says_where_in_the_worker_it_came_from():
    with pytest.raises(ZeroDivisionError) as caught:
        list(in_order(divide_by_zero, range(4), 2, nothing))
    assert "in divide_by_zero" in str(caught.value.__cause__)


def make_lambda(number):
    return lambda: number


def test_a_result_that_cannot_be_sent_is_an_error_and_not_a_dead_worker():
    with pytest.raises(Exception, match="lambda"):
        list(in_order(make_lambda, range(4), 2, nothing))


def refuse():
    raise Misuse("these settings cannot be used")


def test_settings_that_no_worker_can_use_are_said_once():
    with pytest.raises(Misuse, match="these settings cannot be used"):
        list(in_order(times, range(4), 2, refuse))


SLEEPER = """
import os, sys, time
from pointing.system.workers import in_order
def nothing(): pass
def sleep(seconds):
    os.write(1, f"{os.getpid()}\\n".encode())  # in one piece: two of them write at the same time
    time.sleep(seconds)
if __name__ == "__main__":
    list(in_order(sleep, [60, 60], 2, nothing))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path, how):
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    parent = subprocess.Popen(
        [sys.executable, "sleeper.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(how)
    parent.wait(timeout=20)
    deadline = time.monotonic() + 20
    while any(running(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.05)
    parent.stdout.close()
    parent.stderr.close()


def test_workers_leave_ctrl_c_to_the_parent(tmp_path):
    (tmp_path / "sleeper.py").write_text(SLEEPER.replace("[60, 60]", "[2, 2]"))
    parent = subprocess.Popen([sys.executable, "sleeper.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    for _ in range(2):
        os.kill(int(parent.stdout.readline()), signal.SIGINT)
    parent.communicate(timeout=30)
    assert parent.returncode == 0  # both have slept to the end


def running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
