"""The journal of a training run: metrics.jsonl and TensorBoard events in its folder."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pointing.errors import Failure, Misuse
from pointing.model.run import METRICS, check_is_run
from pointing.system.border import read_bytes
from pointing.system.files import write_text
from pointing.system.progress import say

LARGEST_JOURNAL = 1 << 32  # bytes


class Journal:
    """Writes one line of JSON for every event. When a run resumes at an update, later lines are dropped.

    Damaged lines go, too: the checkpoint knows all that the run needs.
    """

    def __init__(self, folder: Path, update: int = 0) -> None:
        self.path = folder / METRICS
        earlier = [event for event in read_journal(folder) if event["update"] <= update]
        write_text(self.path, "".join(json.dumps(event) + "\n" for event in earlier))
        self.file = self.path.open("a", encoding="utf-8")
        self.events = folder / "tensorboard"
        with _written(self.events):
            self.board = _tensorboard(self.events, update)

    def note(self, event: str, update: int, numbers: Mapping[str, Any]) -> None:
        """Writes one event. TensorBoard gets its numbers too, under names such as validation/switch_accuracy."""
        with _written(self.path):
            self.file.write(json.dumps({"event": event, "update": update, **numbers}) + "\n")
            self.file.flush()
        if self.board is not None:
            with _written(self.events):
                for name, number in _flat(numbers):
                    self.board.add_scalar(f"{event}/{name}", number, update)

    def keep(self) -> None:
        """Waits until all events are on the disk: a checkpoint must not know of more than the journal."""
        with _written(self.path):
            os.fsync(self.file.fileno())

    def close(self) -> None:
        with suppress(OSError):  # each event was written when it was noted; one that could not be was said then
            self.file.close()
        if self.board is not None and self.path.exists():  # else the folder is gone, and the board's files with it
            with _written(self.events):
                self.board.close()


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The events of a run so far. Damaged lines are left out, which is said; a last one that is not ended, silently."""
    path = folder / METRICS
    events, damaged = [], []
    lines = read_bytes(path, LARGEST_JOURNAL).split(b"\n") if path.exists() else [b""]
    for number, line in enumerate(lines, 1):
        if number == len(lines) and b"\0" not in line:
            break
        try:
            event = json.loads(line)
            if not (isinstance(event["event"], str) and type(event["update"]) is int):
                raise ValueError("no event of ours")
            events.append(event)
        except (ValueError, TypeError, KeyError, RecursionError):
            damaged.append(number)
    if damaged:
        rest = f" and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
        say(f"{path}:{damaged[0]}: this line{rest} of the journal cannot be read, and is left out")
    return events


def learning_curve(folder: Path, measure: str) -> list[tuple[float, float]]:
    """The values of a measure at a run's validations, as (update, value); at least one must have it."""
    check_is_run(folder)
    validations = [event for event in read_journal(folder) if event["event"] == "validation"]
    if not validations:
        raise Misuse("there is no validation in this run yet: nothing to draw", folder / METRICS)
    points = [(event["update"], event[measure]) for event in validations if isinstance(event.get(measure), int | float)]
    if not points:
        names = ", ".join(name for name, value in validations[-1].items() if isinstance(value, float))
        raise Misuse(f"no validation has {measure}; there are {names}", folder / METRICS)
    return points


def _flat(numbers: Mapping[str, Any]) -> list[tuple[str, float]]:
    """All numbers, those of nested mappings with the mapping's name in front; other values are left out."""
    flat: list[tuple[str, float]] = []
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            flat += [(f"{name}_{inner}", number) for inner, number in _flat(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat.append((name, value))
    return flat


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """A full disk, and whatever else keeps the journal from being written, is said in a line."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None


def _tensorboard(folder: Path, update: int) -> Any:
    """A writer of TensorBoard events, or None if TensorBoard, an optional extra, is not installed."""
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError:
        say("(no TensorBoard events: pip install 'pointing[tensorboard]' for them; metrics.jsonl has the same numbers)")
        return None
    _quiet_thread_of_tensorboard()
    return SummaryWriter(str(folder), purge_step=update + 1 if update else None)


@cache
def _quiet_thread_of_tensorboard() -> None:
    """TensorBoard's thread keeps its error for the next call, which raises it: it need not be printed, too."""
    of_others = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if not (type(args.thread).__module__.startswith("tensorboard.") and isinstance(args.exc_value, OSError)):
            of_others(args)

    threading.excepthook = hook
