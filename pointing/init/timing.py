"""How long an update takes on this machine: some updates are made, and forgotten."""

from __future__ import annotations

import time
from itertools import islice

from pointing.config import Config
from pointing.corpus.batches import Batches
from pointing.corpus.examples import Corpus
from pointing.system.progress import progress
from pointing.system.world import processes
from pointing.training.learner import Learner

FIRST, TIMED = 3, 30  # updates that are not timed, since the first ones are slower, and that are
SECONDS = 10.0  # at most, once a few updates are timed


def seconds_per_update(config: Config, corpus: Corpus) -> float:
    """The mean time of an update with these settings, over batches of all lengths.

    On a busy machine the processor's time for all threads is less, and nearer to what an update takes on a quiet one.
    """
    settings = config.training
    with processes(settings.device) as world, progress("timing", FIRST + TIMED, "updates") as bar:
        learner = Learner(config, corpus, world)
        batches = iter(Batches(corpus.split("train"), settings.batch, settings.batch_by, seed=settings.seed))
        for number, batch in enumerate(islice(batches, FIRST + TIMED)):
            if number == FIRST:
                start, processor_start = time.monotonic(), time.process_time()
            learner.learn([batch], number + 1)
            bar.advance()
            timed = number - FIRST + 1
            if timed >= 5 and time.monotonic() - start > SECONDS:
                break
        return min(time.monotonic() - start, time.process_time() - processor_start) / timed
