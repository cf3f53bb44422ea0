"""Paper §5.1, reproduced: the runs of the rarest-word task, several at a time, and the report on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from itertools import product
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import torch

from pointing import __version__
from pointing.config import checked
from pointing.evaluation.plots import learning_curves, require_matplotlib
from pointing.reproduce.rarest_word import RarestWord, RarestWordResult, train_and_test
from pointing.reproduce.results import RESULTS, versions
from pointing.system.border import read_object
from pointing.system.files import write_text
from pointing.system.progress import following, progress
from pointing.system.tables import Table, mean_and_spread
from pointing.system.workers import in_order

KEY = "rarest-word"
Head = Literal["softmax", "summary", "annotations"]
PAPER: dict[Head, float] = {"softmax": 48.2, "summary": 17.4}  # the paper's error, in %
HEADS: dict[Head, str] = {
    "softmax": "softmax over all words",
    "summary": "pointer softmax, l from the summary",
    "annotations": "pointer softmax, l over the annotations",
}
GROUPS = ("all", "rare", "unseen", "other")

_updates: Synchronized[int]  # made by all worker processes together, which share this counter


def paper_size(changes: Mapping[str, Any], seeds: int) -> list[RarestWord]:
    """The paper's settings with some changes: every head, for each seed."""
    combinations = product(range(1, seeds + 1), HEADS)
    return [checked(RarestWord, {**changes, "head": head, "seed": seed}) for seed, head in combinations]


def quick(seeds: int = 1) -> list[RarestWord]:
    """Small runs, two minutes on 2 cores: the paper's setting, and one where rare words are very rare."""
    small = {"hidden": 128, "test": 20_000, "validation": 2_000, "updates": 600}
    kinds: list[dict[str, Any]] = [{}, {"training": 20_000, "p": 0.01}]
    combinations = product(kinds, range(1, seeds + 1), HEADS)
    return [RarestWord(head=head, seed=seed, **kind, **small) for kind, seed, head in combinations]


def sweep(seeds: int) -> list[RarestWord]:
    """Small runs over p and over the size of the training set, to see where pointing wins and where it does not.

    For each fixed training set there are two kinds of runs: rare words of that set are read as they are, or as unknown.
    """
    fixed = [{"training": size, "min_count": count} for size, count in product((20_000, 5_000), (1, 5))]
    kinds: list[dict[str, Any]] = [{}, *fixed]
    combinations = product(range(1, seeds + 1), (0.001, 0.002, 0.005, 0.01), kinds, HEADS)
    small = {"hidden": 128, "updates": 1000}
    return [RarestWord(head=head, p=p, seed=seed, **kind, **small) for seed, p, kind, head in combinations]


def reproduce_rarest_word(
    runs: Sequence[RarestWord], out: Path, command: str, workers: int | None = None
) -> dict[str, Any]:
    """Makes the runs that are not in `out` yet, then writes the results of all of them, and returns them."""
    require_matplotlib()
    _train([settings for settings in runs if not _path(settings, out).exists()], out, workers)
    kind = "a run's result; remove it, and it is made anew"
    results = [read_object(_path(settings, out), kind) for settings in runs]
    return _write_results(results, out, command)


def _train(runs: Sequence[RarestWord], out: Path, workers: int | None) -> None:
    """One process for each core and one thread for each process: small matrices gain nothing from a second thread."""
    updates = get_context("spawn").Value("l", 0)
    total = sum(settings.updates for settings in runs)
    with progress("training", total, "updates") as bar, following(bar, lambda: updates.value):
        for settings, result in zip(runs, in_order(_train_one, runs, workers, _set_up, updates), strict=True):
            about = {**asdict(result), "settings": settings.model_dump(), "made_by": versions()}
            write_text(_path(settings, out), json.dumps(about))


def _set_up(updates: Synchronized[int]) -> None:
    global _updates
    _updates = updates
    torch.set_num_threads(1)


def _train_one(settings: RarestWord) -> RarestWordResult:
    """One run, in a worker process."""

    def count_update() -> None:
        with _updates.get_lock():
            _updates.value += 1

    return train_and_test(settings, count_update)


def _path(settings: RarestWord, out: Path) -> Path:
    """The file of a run's result. Its name is a hash of everything that decides the result."""
    text = json.dumps([settings.model_dump(), __version__], sort_keys=True)
    return out / "runs" / f"{sha256(text.encode()).hexdigest()[:16]}.json"


def _write_results(runs: Sequence[dict[str, Any]], out: Path, command: str) -> dict[str, Any]:
    """Writes results.json and the pictures of the learning curves to `out`; returns what results.json holds."""
    results = {"experiment": KEY, "command": command, "made_by": runs[0]["made_by"], "runs": list(runs)}
    panels = {
        title: {HEADS[head]: [_curve(run) for run in same] for head, same in heads.items()}
        for title, heads in _cells(runs).items()
    }
    for name in ("curves.png", "curves.svg"):
        learning_curves(out / name, panels, "updates", "validation error (%)")
    write_text(out / RESULTS, json.dumps(results) + "\n")
    return results


def section(results: Mapping[str, Any], address: str) -> str:
    """The experiment's section in Markdown; `address` is the folder of its picture, relative to the page."""
    drawing = mean(run["drawing_share"] for run in results["runs"])
    notes = (
        "Error in percent on the test set, of the weights with the least validation error; ± is the standard "
        "deviation over seeds. *rare*: the answer is one of the rarest words, which are pointed at, and in the "
        "training set; *unseen*: one of them that is not; *other*: the rest. Drawing the batches took "
        f"{drawing:.1%} of the training time."
    )
    cells = _cells(results["runs"])
    kind = next(iter(cells)) if len(cells) == 1 else f"{len(cells)} kinds of training"
    title = f"## The rarest word: {kind} (paper §5.1)"
    picture = f"![validation error]({address}/curves.png)"
    return f"{title}\n\n{table(results).markdown()}\n{notes}\n\n{picture}\n\nMade by `{results['command']}`.\n"


def summary_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """Both pointer softmaxes against the softmax, trained as in the paper: fresh sequences, our default p."""
    default = RarestWord()
    papers_training = {"p": default.p, "training": default.training}
    cells = _cells(run for run in results["runs"] if papers_training.items() <= run["settings"].items())
    paper = {"summary": f"{PAPER['softmax']} → {PAPER['summary']}"}
    rows = []
    for title, heads in cells.items():
        errors = {head: mean(run["test"]["all"] for run in runs) for head, runs in heads.items()}
        softmax = errors.pop("softmax")
        for head, error in errors.items():
            name = f"The rarest word: {title}, {HEADS[head].partition(', ')[2]}"
            rows.append([name, "", "error %", paper.get(head, ""), f"{softmax:.1f} → {error:.1f}", ""])
    return rows


def _cells(results: Iterable[dict[str, Any]]) -> dict[str, dict[Head, Any]]:
    """Runs that differ only in head and seed have the same title: title → head → runs."""
    cells: dict[str, Any] = {}
    for run in results:
        s = run["settings"]
        reading = "" if s["min_count"] == 1 else f" (words seen < {s['min_count']} times: read as unknown)"
        drawn = "drawn afresh" if s["training"] is None else f"{s['training']:,} sequences{reading}"
        title = f"p = {s['p']:g}, {drawn}, hidden {s['hidden']}"
        cells.setdefault(title, {}).setdefault(s["head"], []).append(run)
    return cells


def table(results: Mapping[str, Any]) -> Table:
    """The paper's errors and ours; with several seeds mean and standard deviation."""
    rows = [["the paper", HEADS[head], "–", f"{error}", "", "", ""] for head, error in PAPER.items()]
    for title, heads in _cells(results["runs"]).items():
        for head, runs in heads.items():
            errors = [[run["test"][group] for run in runs if run["test"][group] is not None] for group in GROUPS]
            updates = f"{mean(run['best_update'] for run in runs):,.0f}"
            rows.append([title, HEADS[head], updates, *(mean_and_spread(e) if e else "" for e in errors)])
    return Table("The rarest word: error in %", ["training", "output layer", "updates", *GROUPS], rows)


def _curve(run: dict[str, Any]) -> list[tuple[float, float]]:
    return [(point["update"], point["all"]) for point in run["curve"]]
