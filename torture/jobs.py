"""Commands that write, and what they make when nothing disturbs them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import tiny

from pointing.corpus.preparation import READ
from pointing.training.check import check_folder
from torture.place import DATA_FILES, contents, copy_into
from torture.trials import Command, Found, Torchrun, check_said

TIMES = {"metrics.jsonl", "training.safetensors", "manifest.json", "tensorboard"}  # files of a run that hold times


@dataclass(frozen=True)
class Job:
    """A command, the files that it needs, and those that it writes."""

    name: str
    arguments: str
    needs: tuple[str, ...]
    writes: tuple[str, ...]
    prints: bool = False

    def command(self, folder: Path, *more: str, limits: dict[int, int] | None = None) -> Command:
        return Command(folder, *self.arguments.split(), *more, limits=limits)


PREPARE = Job("prepare", "prepare often.yaml --out corpus --workers 2", ("often.yaml", *DATA_FILES), ("corpus",))
TRAIN = Job(
    "train", "train often.yaml --out run --corpus often-corpus", ("often.yaml", *DATA_FILES, "often-corpus"), ("run",)
)
GENERATE = Job("generate", "generate pieces many.txt --html page.html", ("pieces", "many.txt"), ("page.html",), True)
FILL = Job(
    *("translate", "translate pieces many.csv -o out.csv --html page.html"),
    *(("pieces", "many.csv"), ("out.csv", "page.html")),
)
FILL_IN_PLACE = Job("translate in place", "translate pieces many.csv --in-place", ("pieces", "many.csv"), ("many.csv",))
CALIBRATE = Job(
    "calibrate", "calibrate pieces --source dev.source --reference dev.target", ("pieces", *DATA_FILES), ("pieces",)
)
EXPORT = Job("export", "export run new.pointing", ("run",), ("new.pointing",))
JOBS = [PREPARE, GENERATE, FILL, FILL_IN_PLACE, CALIBRATE, EXPORT]  # besides training


@dataclass(frozen=True)
class Undisturbed:
    """The files that commands need, and what each job made of them; how many seconds it took."""

    place: Path
    results: Path
    seconds: dict[str, float]

    def result(self, job: Job, name: str) -> object:
        return content(self.results / job.name / name)

    def printed(self, job: Job) -> bytes:
        return (self.results / job.name / "printed").read_bytes() if job.prints else b""


def undisturbed(place: Path, folder: Path) -> Undisturbed:
    """Does every job once."""
    done = Undisturbed(place, folder, {})
    for job in [TRAIN, *JOBS]:
        here = folder / job.name
        here.mkdir(parents=True)
        copy_into(here, place, job.needs)
        command = job.command(here)
        done.seconds[job.name] = _seconds_of(command)
        (here / "printed").write_bytes(command.out())
    return done


def undisturbed_by_torchrun(done: Undisturbed) -> None:
    """Two processes learn other weights than one."""
    here = done.results / "torchrun"
    here.mkdir()
    copy_into(here, done.place, TRAIN.needs)
    done.seconds["torchrun"] = _seconds_of(Torchrun(here, *TRAIN.arguments.split()))


def _seconds_of(command: Command) -> float:
    """Waits for a command; how long it took, without the time in which it had no processor."""
    start, starved = time.monotonic(), 0.0
    while command.poll() is None:
        starved = command.starved()
        time.sleep(0.01)
    check_said(command, command.poll(), 0)
    return max(0.1, time.monotonic() - start - starved)


def content(path: Path) -> object:
    """The bytes of a file, or of a folder's files; None without any.

    A manifest may list a file twice, and read.json says when files were last changed: both are left out.
    """
    if path.is_dir():
        return contents(path, {"manifest.json", READ})
    return path.read_bytes() if path.exists() else None


def resume(folder: Path) -> list[str]:
    """A run that has weights or a checkpoint is gone on with, as the message says that refuses to begin anew."""
    names = "training.safetensors", "model.safetensors"
    return ["--resume"] if any((folder / "run" / name).exists() for name in names) else []


def check_result(job: Job, command: Command, folder: Path, done: Undisturbed, whole: str | None = None) -> None:
    """What the command has written is what the undisturbed one wrote, and nothing else is left."""
    for name in job.writes:
        if job is TRAIN:
            check_same_run(command, folder / name, done.results / (whole or job.name) / name)
        elif content(folder / name) != done.result(job, name):
            raise Found(f"{command}: another {name} than undisturbed")
    check_no_parts(command, folder)


def check_same_run(command: Command, run: Path, whole: Path) -> None:
    """The same weights, statistics and random state to the bit, the same journal, and every file in order."""
    check_folder(run)
    if not tiny.same(run, whole) or tiny.events(run) != tiny.events(whole):
        raise Found(f"{command}: another run than the undisturbed one")
    if contents(run, TIMES) != contents(whole, TIMES):
        raise Found(f"{command}: other files than in the undisturbed run")


def check_old_or_new(job: Job, command: Command, folder: Path, old: dict[str, object], done: Undisturbed) -> None:
    """A command that was stopped half-way leaves each file as it was, or as it is to be; a folder's files likewise."""
    for name in job.writes if job is not TRAIN else ():
        now, new = content(folder / name), done.result(job, name)
        before = old[name]
        if isinstance(now, dict) and isinstance(before, dict) and isinstance(new, dict):
            there = {path: data for path, data in now.items() if not path.endswith((".part", ".lock"))}
            is_whole = all(data in (before.get(path), new.get(path)) for path, data in there.items())
        else:
            is_whole = now in (before, new)
        if not is_whole:
            raise Found(f"{command}: it leaves a part of {name}")


def check_no_parts(command: Command, folder: Path) -> None:
    if parts := [str(path) for path in folder.rglob("*") if path.name.endswith((".part", ".lock"))]:
        raise Found(f"{command}: leaves {', '.join(parts)}")
