"""Checkpoints: everything that decides the next update, written to one file and restored from it to the same bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, RootModel

from pointing.config import Config, Training, checked
from pointing.errors import Misuse, shown
from pointing.idle_settings import idle_settings
from pointing.model.run import (
    MODEL,
    STATE,
    put_tensors,
    read_header,
    read_tensors,
    remove_parts,
    run_settings,
    write_tensors,
)
from pointing.system.border import entering
from pointing.system.world import Processes
from pointing.training.learner import Learner

KIND = "a whole checkpoint; it was cut off, or is another program's"
MAY_CHANGE = {"updates", "epochs", "patience", "validate_every", "samples", "checkpoint_minutes", "device", "threads"}


Count = Annotated[int, Field(ge=0, lt=1 << 62, strict=True)]
Number = Annotated[float, Field(strict=True)]
OF_OLD_STATES = {"scale", "steady"}  # of float16: what the first checkpoints of version 0.1.0 have besides


@dataclass
class State:
    """How far a run has come, apart from its tensors."""

    update: Count = 0  # updates made
    epoch: Count = 0  # whole passes over the training data
    done: Count = 0  # batches of the present epoch
    best: Number = math.inf  # lowest dev NLL so far, or highest dev score with its sign turned; lower is better
    best_update: Count = 0
    waited: Count = 0  # validations since the best one
    seconds: float = 0.0  # of training, over all parts of the run
    core_seconds: float = 0.0  # of all threads of the first process, over all parts of the run
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
    return _state(read_header(folder / STATE), folder / STATE)


def read_whole_state(folder: Path) -> State:
    """The same, once all that a checkpoint holds can be read."""
    tensors, header = read_tensors(folder / STATE)
    if odd := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise Misuse(f"{odd[0]} has numbers that are none", folder / STATE)
    _counters(header, folder / STATE)
    return _state(header, folder / STATE)


def finished_state(folder: Path, config: Config, made_from: str) -> State | None:
    """The last state of a run with these settings and this corpus; None if there is none, or it has not finished."""
    path = folder / STATE
    if not path.exists():
        return None
    _check_same_settings(run_settings(folder), config, folder)
    header = read_header(path)
    _check_same_corpus(header, made_from, path)
    state = _state(header, path)
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
    if (folder / MODEL).is_dir():  # which is only written, at the next validation
        raise Misuse("this is a folder, where the model is to be written: remove it", folder / MODEL)
    path = folder / STATE
    if not path.exists():
        return None
    tensors, header = read_tensors(path)
    _check_same_corpus(header, made_from, path)
    state, counters = _state(header, path), _counters(header, path)
    random = {name: tensors.pop(name) for name in list(tensors) if name.startswith("random.")}
    if len(random) != processes.world_size:
        world_size = processes.world_size
        raise Misuse(f"this run has {len(random)} processes, not {world_size}: resume it with as many", path)
    put_tensors(tensors, learner.tensors(), path)
    with entering(path, KIND):
        learner.set_counters(**counters)
        _generator(processes.device).set_rng_state(random[f"random.{processes.rank}"])
    return state


def _state(header: dict[str, Any], path: Path) -> State:
    """The state in a header, of which every value is checked; one that is not known was not written by this version."""
    with entering(path, KIND):
        values = dict(header["state"])
        if unknown := values.keys() - {field.name for field in fields(State)} - OF_OLD_STATES:
            raise Misuse(f"its state has {shown(min(unknown))}: a newer version of pointing made it; take that", path)
        known = {name: value for name, value in values.items() if name not in OF_OLD_STATES}
        return checked(RootModel[State], known, path).root


def _counters(header: dict[str, Any], path: Path) -> dict[str, Any]:
    """What `Learner.counters` gave. The first checkpoints of version 0.1.0 hold the float16 scale in `state`."""
    with entering(path, KIND):
        if "scaler" in header:
            found = {"steps": header["steps"], "scaler": header["scaler"]}
        else:
            state = header["state"]
            found = {"steps": state["update"], "scaler": {"scale": state["scale"], "_growth_tracker": state["steady"]}}
        return checked(Counters, found, path).model_dump()


class Counters(BaseModel):
    """What else a checkpoint counts."""

    model_config = ConfigDict(strict=True)
    steps: Count
    scaler: dict[str, int | float]


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
