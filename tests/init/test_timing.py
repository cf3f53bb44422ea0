"""The time of an update, measured by making some."""

import time

import pytest
import tiny

from pointing.corpus.preparation import prepare
from pointing.init import timing
from pointing.init.timing import FIRST, TIMED, seconds_per_update
from pointing.settings_file import read_config
from pointing.training.learner import Learner


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Times updates of a tiny model, the first ones with a tenth of a second more: the result, and each of them.

    Every update also waits, as on a busy machine. Times are the processor's.
    """
    config = read_config(tiny.write(tmp_path))
    corpus, _ = prepare(config, tmp_path / "prepared", workers=1)
    seconds = []
    learn = Learner.learn

    def timed(self, batches, number, *rest):
        assert number == len(seconds) + 1
        start = time.process_time()
        while time.process_time() - start < (0.1 if number <= FIRST else 0.01):
            pass
        update = learn(self, batches, number, *rest)
        seconds.append(time.process_time() - start)
        time.sleep(0.01)
        return update

    monkeypatch.setattr(Learner, "learn", timed)
    return lambda: (seconds_per_update(config, corpus), seconds)


def test_the_mean_of_some_updates_without_the_first_ones_and_without_waiting(measured):
    start = time.process_time()
    mean, seconds = measured()
    elapsed = time.process_time() - start
    assert len(seconds) == FIRST + TIMED
    assert sum(seconds[FIRST:]) / TIMED <= mean <= (elapsed - sum(seconds[:FIRST])) / TIMED


def test_slow_updates_are_not_all_made(measured, monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 0.03)
    mean, seconds = measured()
    assert len(seconds) == FIRST + 5  # the fifth is the first after which the time is looked at
    assert mean >= sum(seconds[FIRST:]) / 5
