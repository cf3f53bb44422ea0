"""Going on with a run that was cut off: everything that decides the next update, in one file, and put back from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pointing.config import Config, Training
from pointing.errors import Misuse
from pointing.model.run import STATE, put_tensors, read_header, read_tensors, remove_parts, run_settings, write_tensors
from pointing.system.world import Processes

MAY_CHANGE = {"updates", "epochs", "patience", "validate_every", "samples", "checkpoint_minutes", "device", "threads"}


@dataclass
class State:
    """Where a run is, apart from its tensors."""

    update: int = 0
    epoch: int = 0
    done: int = 0  # batches of the epoch
    best: float = math.inf  # of the dev part; lower is better
    best_update: int = 0
    waited: int = 0  # validations since then
    seconds: float = 0.0  # of training, over all its parts
    scale: float = 2.0**16  # of a float16 loss
    steady: int = 0  # updates since the scale was last changed
    since: dict[str, float] = field(default_factory=dict)  # sums since the journal's last note

    def enough(self, settings: Training) -> bool:
        """Has the run come to its end?"""
        return (
            (settings.updates is not None and self.update >= settings.updates)
            or (settings.epochs is not None and self.epoch >= settings.epochs)
            or (settings.patience is not None and self.waited >= settings.patience)
        )


def ended(folder: Path, config: Config, made_from: str) -> State | None:
    """How a run with these settings, from this corpus, ended, if it is there and has come to its end."""
    path = folder / STATE
    if not path.exists():
        return None
    _same_settings(run_settings(folder), config, folder)
    about = read_header(path)
    _same_corpus(about, made_from, path)
    state = State(**about["state"])
    return state if state.enough(config.training) else None


def save(folder: Path, state: State, tensors: dict[str, Tensor], made_from: str, processes: Processes) -> None:
    """One checkpoint, written by the first process, with the random state of all."""
    random = processes.gather(_random(processes.device))
    if processes.first:
        tensors = tensors | {f"random.{rank}": generator for rank, generator in enumerate(random)}
        about = {"state": asdict(state), "made_from": made_from}
        write_tensors(folder / STATE, tensors, about)


def take_up(folder: Path, config: Config, places: dict[str, Tensor], made_from: str, processes: Processes) -> State:
    """Puts the last checkpoint's tensors in their places. A run killed before its first one begins again."""
    _same_settings(run_settings(folder), config, folder)
    if processes.first:
        remove_parts(folder)
    path = folder / STATE
    if not path.exists():
        return State()
    tensors, about = read_tensors(path)
    _same_corpus(about, made_from, path)
    random = {name: tensors.pop(name) for name in list(tensors) if name.startswith("random.")}
    if len(random) != processes.world:
        raise Misuse(f"this run has {len(random)} processes, not {processes.world}: resume it with as many", path)
    put_tensors(tensors, places, path)
    _set_random(random[f"random.{processes.rank}"], processes.device)
    return State(**about["state"])


def _same_settings(old: Config, new: Config, folder: Path) -> None:
    """A run goes on with the settings that it was started with, apart from when it ends and where it runs."""
    may = MAY_CHANGE - ({"updates"} if new.training.decay == "linear" else set())
    before, now = (dict(_keys(config.model_dump(mode="json"))) for config in (old, new))
    changed = [key for key in now if now[key] != before.get(key) and key.removeprefix("training.") not in may]
    if changed:
        what = ", ".join(f"{key} was {before.get(key)!r}, is {now[key]!r}" for key in changed[:3])
        raise Misuse(f"--resume goes on with the same settings, but {what}; start a new run for others", folder)


def _same_corpus(about: dict[str, Any], made_from: str, path: Path) -> None:
    """And from the same text."""
    if about.get("made_from") != made_from:
        raise Misuse(
            "this run was made from another prepared corpus: start a new one, elsewhere or with this one removed", path
        )


def _keys(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{before}{name}.")
        else:
            yield before + name, value


def _random(device: torch.device) -> Tensor:
    """The state of the generator that noise and dropout come from."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random(state: Tensor, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
