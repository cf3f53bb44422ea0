"""Checkpoints: everything that decides the next update, written to one file and restored from it to the same bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from pointing.config import Config, Training, idle_settings
from pointing.errors import Misuse
from pointing.model.run import STATE, put_tensors, read_header, read_tensors, remove_parts, run_settings, write_tensors
from pointing.system.world import Processes
from pointing.training.learner import Learner

MAY_CHANGE = {"updates", "epochs", "patience", "validate_every", "samples", "checkpoint_minutes", "device", "threads"}


@dataclass
class State:
    """How far a run has come, apart from its tensors."""

    update: int = 0  # updates made
    epoch: int = 0  # whole passes over the training data
    done: int = 0  # batches of the present epoch
    best: float = math.inf  # lowest dev NLL so far, or highest dev score with its sign turned; lower is better
    best_update: int = 0
    waited: int = 0  # validations since the best one
    seconds: float = 0.0  # of training, over all parts of the run
    since: dict[str, float] = field(default_factory=dict)  # sums since the journal's last note

    @property
    def is_unmeasured(self) -> bool:
        """True for a run with the weights of another one, as long as it has neither measured nor changed them."""
        return self.update == 0 and math.isinf(self.best)

    def is_finished(self, settings: Training) -> bool:
        """True if the run has made all its updates or epochs, or has waited too long for a better validation."""
        return (
            (settings.updates is not None and self.update >= settings.updates)
            or (settings.epochs is not None and self.epoch >= settings.epochs)
            or (settings.patience is not None and self.waited >= settings.patience)
        )


def read_state(folder: Path) -> State:
    """The state of a run's last checkpoint, without its tensors."""
    return _state(read_header(folder / STATE))


def finished_state(folder: Path, config: Config, made_from: str) -> State | None:
    """The last state of a run with these settings and this corpus; None if there is none, or it has not finished."""
    path = folder / STATE
    if not path.exists():
        return None
    _check_same_settings(run_settings(folder), config, folder)
    header = read_header(path)
    _check_same_corpus(header, made_from, path)
    state = _state(header)
    return state if state.is_finished(config.training) else None


def save_checkpoint(folder: Path, state: State, learner: Learner, made_from: str, processes: Processes) -> None:
    """Writes one checkpoint, in the first process, with the random state of every process."""
    random = processes.gather(_generator(processes.device).get_rng_state())
    if processes.first:
        tensors = learner.tensors() | {f"random.{rank}": generator for rank, generator in enumerate(random)}
        header = {"state": asdict(state), "made_from": made_from, **learner.counters()}
        write_tensors(folder / STATE, tensors, header)


def load_checkpoint(
    folder: Path, config: Config, learner: Learner, made_from: str, processes: Processes
) -> State | None:
    """Restores the last checkpoint into `learner`; None if the run was killed before its first one."""
    _check_same_settings(run_settings(folder), config, folder)
    if processes.first:
        remove_parts(folder)
    path = folder / STATE
    if not path.exists():
        return None
    tensors, header = read_tensors(path)
    _check_same_corpus(header, made_from, path)
    random = {name: tensors.pop(name) for name in list(tensors) if name.startswith("random.")}
    if len(random) != processes.world_size:
        world_size = processes.world_size
        raise Misuse(f"this run has {len(random)} processes, not {world_size}: resume it with as many", path)
    put_tensors(tensors, learner.tensors(), path)
    learner.set_counters(**_counters(header))
    _generator(processes.device).set_rng_state(random[f"random.{processes.rank}"])
    return _state(header)


def _state(header: dict[str, Any]) -> State:
    names = {field.name for field in fields(State)}
    return State(**{name: value for name, value in header["state"].items() if name in names})


def _counters(header: dict[str, Any]) -> dict[str, Any]:
    """What `Learner.counters` gave. The first checkpoints of version 0.1.0 hold the float16 scale in `state`."""
    if "scaler" in header:
        return {"steps": header["steps"], "scaler": header["scaler"]}
    state = header["state"]
    return {"steps": state["update"], "scaler": {"scale": state["scale"], "_growth_tracker": state["steady"]}}


def _check_same_settings(old: Config, new: Config, folder: Path) -> None:
    """A run is resumed with the settings that it was started with, apart from when it ends and where it runs."""
    free = {f"training.{name}" for name in MAY_CHANGE} | idle_settings(old).keys()
    if new.training.decay == "linear":  # the learning rate depends on the last update
        free -= {"training.updates"}
    before, now = (dict(dotted_keys(config.model_dump(mode="json"))) for config in (old, new))
    changed = [key for key in now if now[key] != before.get(key) and key not in free]
    if changed:
        changes = ", ".join(f"{key} was {before.get(key)!r}, is {now[key]!r}" for key in changed[:3])
        raise Misuse(f"--resume goes on with the same settings, but {changes}; start a new run for others", folder)


def _check_same_corpus(header: dict[str, Any], made_from: str, path: Path) -> None:
    if header.get("made_from") != made_from:
        raise Misuse(
            "this run was made from another prepared corpus: start a new one, elsewhere or with this one removed", path
        )


def dotted_keys(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings as pairs of dotted key and value."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from dotted_keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _generator(device: torch.device) -> Any:
    """The module whose random generator draws noise and dropout. Of several GPUs, `processes` chose this process's."""
    return torch.cuda if device.type == "cuda" else torch
