"""Two writers: the same command twice at nearly the same time, into one place. What is left is what one of them makes.

Of two trainings one is refused, and told who writes there. A preparation may also find that the other one has ended.
A file that is filled in place stays as the first one left it, which the second one says.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from torture.jobs import FILL_IN_PLACE, JOBS, TRAIN, Job, Undisturbed, check_result
from torture.place import copy_into
from torture.trials import Found, Make, Part, Trial, check_said

LOCKED = "train", "prepare", "calibrate"  # what they write holds together: one writer at a time
REFUSALS = (
    "somebody writes into this folder (process ",
    "there is a run in this folder: go on with --resume",
    "many.csv: was changed by somebody while it was translated; it stays as it is now",
)


def two_writers(done: Undisturbed, seed: int, number: int) -> list[Make]:
    jobs = [TRAIN, *JOBS]
    trials: list[Make] = []
    for turn in range(number):
        job = jobs[turn % len(jobs)]
        delay = random.Random(f"{seed} {turn}").uniform(0, done.seconds[job.name])
        trials.append(partial(_two, job, done, delay))
    return trials


def _two(job: Job, done: Undisturbed, delay: float, part: Part, folder: Path) -> Trial:
    copy_into(folder, done.place, job.needs)
    first = job.command(folder)
    yield first.ended(delay)
    second = job.command(folder)
    codes = [(yield first.ended()), (yield second.ended())]
    refused = 2 if job.name in LOCKED else 1 if job is FILL_IN_PLACE else 0
    for command, code in zip((first, second), codes, strict=True):
        check_said(command, code, 0, refused)
        if code and not any(refusal in command.last_line() for refusal in REFUSALS):
            raise Found(f"{command}: refused for another reason: {command.last_line()}")
    if 0 not in codes or (job is TRAIN and refused not in codes):
        raise Found(f"{first}: the ends of two writers are {codes}")
    part.count("times the second was refused" if any(codes) else "times both wrote the same")
    check_result(job, first, folder, done)
