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
def measure(tmp_path, monkeypatch):
    """Times updates of a tiny model that take a hundredth of a second longer than they do, the first ones a tenth."""
    config = read_config(tiny.write(tmp_path))
    corpus, _ = prepare(config, tmp_path / "prepared", workers=1)
    updates = []
    learn = Learner.learn

    def slow(self, batches, number, *rest):
        time.sleep(0.1 if len(updates) < FIRST else 0.01)
        updates.append(number)
        return learn(self, batches, number, *rest)

    monkeypatch.setattr(Learner, "learn", slow)
    return lambda: (seconds_per_update(config, corpus), updates)


def test_the_mean_of_some_updates_without_the_first_ones(measure):
    start = time.monotonic()
    seconds, updates = measure()
    elapsed = time.monotonic() - start
    assert updates == list(range(1, FIRST + TIMED + 1))
    assert 0.01 <= seconds <= (elapsed - FIRST * 0.1) / TIMED


def test_slow_updates_are_not_all_made(measure, monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 0.03)
    seconds, updates = measure()
    assert updates == list(range(1, FIRST + 5 + 1))  # the fifth is the first after which the time is looked at
    assert seconds >= 0.01
