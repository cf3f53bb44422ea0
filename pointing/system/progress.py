"""Progress on stderr: a bar on a terminal, else a line every ten seconds, with the rate and the time that is left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from pointing.system.program import is_first_process
from pointing.system.terminal import visible

Item = TypeVar("Item")
SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    def advance(self, steps: int = 1) -> None: ...
    def note(self, text: str) -> None:
        """Shows a short text beside the bar, such as a loss or a file's name."""


@contextmanager
def progress(title: str, total: int | None, unit: str, done: int = 0) -> Iterator[Progress]:
    """with progress("counting words", 200_000, "pairs") as bar: bar.advance(1000)

    `done` steps were done by an earlier process: they count as progress, but not for the rate.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar(title, total, unit, done) as bar:
            yield bar
    else:
        lines = _Lines(title, total, unit, done)
        yield lines
        lines.close()


def track(items: Iterable[Item], title: str, total: int | None, unit: str) -> Iterator[Item]:
    """The same items, with a bar that advances by one for each."""
    with progress(title, total, unit) as bar:
        for item in items:
            yield item
            bar.advance()


@contextmanager
def following(bar: Progress, count: Callable[[], int], seconds: float = 0.5) -> Iterator[None]:
    """Moves the bar to `count()`, every so many seconds: a number that worker processes increase, for example."""
    ended = threading.Event()

    def follow() -> None:
        shown, is_last = 0, False
        while not is_last:
            is_last = ended.wait(seconds)
            steps = max(shown, count())
            bar.advance(steps - shown)
            shown = steps

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def say(text: str) -> None:
    """Prints one line on stderr, without delay; of several processes only the first one speaks.

    What is in it does not command a terminal. If nobody can hear it, the work goes on: standard error is closed, or its
    disk is full.
    """
    if sys.stderr is not None and is_first_process():
        with suppress(OSError, ValueError):  # ValueError: it was closed by Python
            print("\n".join(map(visible, text.split("\n"))), file=sys.stderr, flush=True)


@contextmanager
def _bar(title: str, total: int | None, unit: str, done: int) -> Iterator[Progress]:
    from rich import progress as rich_progress
    from rich.console import Console
    from rich.text import Text

    class Rate(rich_progress.ProgressColumn):
        def render(self, task: rich_progress.Task) -> Text:
            return Text(f"{_rounded(task.speed or 0)} {unit}/s", style="cyan")

    columns = [
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        Rate(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[note]}"),
    ]
    with rich_progress.Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(title, total=total, completed=done, note="")

        class Bar:
            def advance(self, steps: int = 1) -> None:
                display.advance(task, steps)

            def note(self, text: str) -> None:
                display.update(task, note=text)

        yield Bar()


class _Lines:
    """Progress for a log file: a line every ten seconds, and a last one at the end if there was any before."""

    def __init__(self, title: str, total: int | None, unit: str, done: int = 0) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.before, self.done, self.text = done, done, ""
        self.printed: int | None = None  # `done` in the last line that was printed
        self.start = self.last = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            self._print()

    def note(self, text: str) -> None:
        self.text = text

    def close(self) -> None:
        if self.printed not in (None, self.done):
            self._print()

    def _print(self) -> None:
        self.printed = self.done
        elapsed = time.monotonic() - self.start
        rate = (self.done - self.before) / elapsed
        of = "" if self.total is None else f" of {self.total:,}"
        left = f", {max(0, self.total - self.done) / rate:.0f} s left" if self.total is not None and rate else ""
        note = f", {self.text}" if self.text else ""
        say(f"{self.title}: {self.done:,}{of} {self.unit}, {_rounded(rate)} {self.unit}/s{left}{note}")


def _rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
