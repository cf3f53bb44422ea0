"""Trials that run side by side: each starts commands, waits for them or kills them, and looks at what they leave."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import forked
import tiny

from pointing.system.progress import progress

SECONDS = 60  # for a command on tiny data; those in which it waits for a processor that others have do not count
MEMORY = 2 << 30  # bytes of data that a command may hold
Wait = tuple[Any, float]  # a process, and how many seconds to wait for its end
Trial = Generator[Wait, Any, None]  # is given the exit code, or None if there was none in time


class Found(Exception):
    """A fault: what should not have happened."""


class Command:
    """A command in a process of its own, in a folder; what it says is kept in files beside."""

    def __init__(
        self, folder: Path, *arguments: object, lines: bytes = b"", limits: dict[int, int] | None = None
    ) -> None:
        self.arguments = [str(argument) for argument in arguments]
        self._said = Path(mkdtemp(prefix="said-", dir=folder.parent))
        streams = {name: self._said / name for name in ("stdin", "stdout", "stderr")}
        for stream in streams.values():
            stream.write_bytes(lines if stream.name == "stdin" else b"")
        self.process = self._started(folder, streams, {resource.RLIMIT_DATA: MEMORY, **(limits or {})})

    def _started(self, folder: Path, streams: dict[str, Path], limits: dict[int, int]) -> Any:
        return forked.Forked(*self.arguments, **streams, cwd=folder, env=tiny.environment(), limits=limits)

    def ended(self, seconds: float = SECONDS) -> Wait:
        return self, seconds

    def poll(self) -> int | None:
        code: int | None = self.process.poll()
        return code

    def kill(self) -> None:
        """Alone: processes that it has started have to end by themselves."""
        self.process.kill()

    def kill_all(self) -> None:
        """With the processes that it has started, which must not see each other die."""
        self.process.send_signal(signal.SIGSTOP)
        for child in children(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.kill()

    def starved(self) -> float:
        """Seconds for which it was ready to run and had no processor: a busy machine makes no hang."""
        return max(map(starved, [self.process.pid, *children(self.process.pid)]))

    def out(self) -> bytes:
        return (self._said / "stdout").read_bytes()

    def error(self) -> str:
        return (self._said / "stderr").read_bytes().decode("utf-8", "replace")

    def last_line(self) -> str:
        return (self.error().splitlines() or [""])[-1]

    def __str__(self) -> str:
        return f"pointing {' '.join(self.arguments)}"


class Torchrun(Command):
    """The same in two processes, started by torchrun, whose own death they would not notice."""

    def kill(self) -> None:
        self.kill_all()

    def _started(self, folder: Path, streams: dict[str, Path], limits: dict[int, int]) -> Any:
        with ExitStack() as opened:
            out, error = (opened.enter_context(streams[name].open("wb")) for name in ("stdout", "stderr"))
            arguments = tiny.command(*self.arguments, processes=2)
            where = {"cwd": folder, "env": tiny.environment(), "start_new_session": True}
            return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=error, **where)


def children(process: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def starved(process: int) -> float:
    """Of a process's first thread, as Linux counts it."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # it has ended, or the kernel does not count
        return 0.0


def check_said(command: Command, code: int | None, *expected: int) -> None:
    """A command ends in time, as expected, and if not with 0, with one line that says why; never with a traceback."""
    error = command.error()
    if code is None:
        command.kill_all()
        raise Found(f"{command}: no end; {command.last_line()}")
    if "Traceback" in error or len(error) > 100_000:
        raise Found(f"{command}: a traceback, or too much: {command.last_line()[:300]}")
    if code not in expected:
        raise Found(f"{command}: exit code {code} instead of {' or '.join(map(str, expected))}: {command.last_line()}")
    if code in (1, 2) and not command.last_line().startswith("pointing: "):
        raise Found(f"{command}: exit code {code} without a line that says why: {command.last_line()!r}")
    if "not enough memory" in command.last_line():
        raise Found(f"{command}: more than {MEMORY >> 30} GB")


@dataclass
class Part:
    """What a part of the campaign has tried and found."""

    name: str
    compared: str  # what is tried, and with what it is compared
    trials: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)  # what is wrong
    notes: list[str] = field(default_factory=list)  # what is to be known, and not wrong
    seconds: float = 0.0

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number


Make = Callable[["Part", Path], Trial]  # makes a trial in an empty folder


def run_trials(part: Part, makers: Sequence[Make], workers: int) -> Part:
    """Runs trials, `workers` at a time, each in a folder of its own, which is removed unless something was found."""
    start, waiting, at_work = time.monotonic(), iter(makers), []
    with progress(part.name, len(makers), "trials") as bar:
        while True:
            while len(at_work) < workers and (make := next(waiting, None)) is not None:
                folder = Path(mkdtemp(prefix="pointing-torture-"))
                (folder / "here").mkdir()
                at_work.append(_Running(part, folder, make(part, folder / "here")))
            if not at_work:
                break
            at_work = [running for running in at_work if not (running.step() and bar.advance() is None)]
            time.sleep(0.005)
    part.seconds += time.monotonic() - start
    return part


class _Running:
    def __init__(self, part: Part, folder: Path, trial: Trial) -> None:
        self.part, self.folder, self.trial = part, folder, trial
        self.process: Any = None
        self.deadline = self.starved = 0.0
        self._go_on(None)

    def step(self) -> bool:
        """Looks at the process that is waited for; True if the trial is over."""
        if self.process is not None:
            code = self.process.poll()
            late = time.monotonic() - self.deadline
            if code is not None or (late > 0 and late > self.process.starved() - self.starved):
                self._go_on(code)
        return self.process is None

    def _go_on(self, code: int | None) -> None:
        found = None
        try:
            self.process, seconds = self.trial.send(code)
            self.deadline, self.starved = time.monotonic() + seconds, self.process.starved()
            return
        except StopIteration:
            pass
        except Found as fault:
            found = str(fault)
        except Exception as error:  # what a command has left cannot be read
            found = f"{type(error).__name__}: {error}"
        self.process = None
        self.part.trials += 1
        if found is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.part.found.append(f"{found} [{self.folder}]")
