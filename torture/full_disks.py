"""Full disks: a command runs where not all that it writes finds room, then again where it does.

With too little room it ends with exit code 1 and one line, and leaves whole files only; with room it then makes what it
makes undisturbed. Where this may mount (as root), the disk of every second trial is a tmpfs of which all but a little
is taken; in the others no file may grow beyond a limit (RLIMIT_FSIZE), which the command meets in the same calls.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from torture.jobs import JOBS, TRAIN, Job, Undisturbed, check_no_parts, check_old_or_new, check_result, content, resume
from torture.place import contents, copy_into
from torture.trials import Make, Part, Trial, check_said

SIZE = 64 << 20  # bytes of the disk


def can_mount(folder: Path) -> bool:
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True, capture_output=True)


def full_disks(done: Undisturbed, seed: int, number: int, mounts: bool) -> list[Make]:
    jobs = [TRAIN, *JOBS]
    trials: list[Make] = []
    for turn in range(number):
        trial = _disk if mounts and turn % 2 == 0 else _limited
        trials.append(partial(trial, jobs[turn // 2 % len(jobs)], done, random.Random(f"{seed} {turn}")))
    return trials


def _disk(job: Job, done: Undisturbed, rng: random.Random, part: Part, folder: Path) -> Trial:
    with small_disk(folder) as disk:
        copy_into(disk, done.place, job.needs)
        filler, free, room = disk / "filler", os.statvfs(disk), rng.randrange(_size(job, done))
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))
        yield from _without_room(job, done, disk, {}, "a full disk", part)
        filler.unlink()
        yield from _with_room(job, done, disk)


def _limited(job: Job, done: Undisturbed, rng: random.Random, part: Part, folder: Path) -> Trial:
    copy_into(folder, done.place, job.needs)
    limits = {resource.RLIMIT_FSIZE: rng.randrange(_size(job, done))}
    yield from _without_room(job, done, folder, limits, "a limit on files", part)
    yield from _with_room(job, done, folder)


def _size(job: Job, done: Undisturbed) -> int:
    """Bytes of all that is written."""
    results = [done.results / job.name / name for name in job.writes]
    return sum(sum(map(len, contents(path).values())) if path.is_dir() else path.stat().st_size for path in results)


def _without_room(job: Job, done: Undisturbed, folder: Path, limits: dict[int, int], what: str, part: Part) -> Trial:
    old = {name: content(folder / name) for name in job.writes}
    command = job.command(folder, limits=limits)
    code = yield command.ended()
    check_said(command, code, 0, 1)
    part.count(f"{what}: there was room enough" if code == 0 else f"{what}: said in a line")
    check_old_or_new(job, command, folder, old, done)
    check_no_parts(command, folder)


def _with_room(job: Job, done: Undisturbed, folder: Path) -> Trial:
    command = job.command(folder, *(resume(folder) if job is TRAIN else []))
    check_said(command, (yield command.ended()), 0)
    check_result(job, command, folder, done)
