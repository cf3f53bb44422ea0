"""The journal of a training run: metrics.jsonl and TensorBoard events in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pointing.errors import Misuse
from pointing.model.run import METRICS, check_is_run
from pointing.system.files import write_text
from pointing.system.progress import say


class Journal:
    """Writes one line of JSON for every event. When a run resumes at an update, later lines are dropped."""

    def __init__(self, folder: Path, update: int = 0) -> None:
        self.path = folder / METRICS
        earlier = [event for event in read_journal(folder) if event["update"] <= update]
        write_text(self.path, "".join(json.dumps(event) + "\n" for event in earlier))
        self.file = self.path.open("a", encoding="utf-8")
        self.board = _tensorboard(folder / "tensorboard", update)

    def note(self, event: str, update: int, numbers: Mapping[str, Any]) -> None:
        """Writes one event. TensorBoard gets its numbers too, under names such as validation/switch_accuracy."""
        self.file.write(json.dumps({"event": event, "update": update, **numbers}) + "\n")
        self.file.flush()
        if self.board is not None:
            for name, number in _flat(numbers):
                self.board.add_scalar(f"{event}/{name}", number, update)

    def close(self) -> None:
        self.file.close()
        if self.board is not None:
            self.board.close()


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The events of a run so far. A last line that was cut off is ignored."""
    path = folder / METRICS
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


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


def _tensorboard(folder: Path, update: int) -> Any:
    """A writer of TensorBoard events, or None if TensorBoard, an optional extra, is not installed."""
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError:
        say("(no TensorBoard events: pip install 'pointing[tensorboard]' for them; metrics.jsonl has the same numbers)")
        return None
    return SummaryWriter(str(folder), purge_step=update + 1 if update else None)
