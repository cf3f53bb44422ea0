"""Paper §5.1, made again: which runs, side by side on the machine's cores, and what they show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pointing import __version__
from pointing.config import RarestWord, checked
from pointing.evaluation.plots import learning_curves, require_matplotlib
from pointing.reproduce.results import RESULTS, versions
from pointing.system.files import write_text
from pointing.system.progress import following, progress
from pointing.system.tables import Table, mean_and_spread
from pointing.system.workers import in_order

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

    from pointing.reproduce.rarest_word_task import Run

KEY = "rarest-word"
PAPER = {"softmax": 48.2, "summary": 17.4}
HEADS: dict[Literal["softmax", "summary", "annotations"], str] = {
    "softmax": "softmax over all words",
    "summary": "pointer softmax, l from the summary",
    "annotations": "pointer softmax, l over the annotations",
}
GROUPS = ("all", "rare", "unseen", "other")

_made: Synchronized[int] | None = None  # updates made by all workers together, shared with them


def paper_size(changes: Mapping[str, Any], seeds: int) -> list[RarestWord]:
    """Every head with the same everything else, for each seed: the paper's settings but for some changes."""
    every = product(range(1, seeds + 1), HEADS)
    return [checked(RarestWord, {**changes, "head": head, "seed": seed}) for seed, head in every]


def quick(seeds: int = 1) -> list[RarestWord]:
    """Two minutes on 2 cores: the paper's setting in small, and one where rare words are truly rare."""
    small = {"hidden": 128, "test": 20_000, "validation": 2_000, "updates": 600}
    kinds: list[dict[str, Any]] = [{}, {"training": 20_000, "p": 0.01}]
    every = product(kinds, range(1, seeds + 1), HEADS)
    return [RarestWord(head=head, seed=seed, **kind, **small) for kind, seed, head in every]


def sweep(seeds: int) -> list[RarestWord]:
    """Over p and over the size of the training set, in small, to see where pointing wins and where it does not.

    With a fixed training set words that it hardly has are read once as what they are, once as one unknown word.
    """
    fixed = [{"training": size, "min_count": least} for size, least in product((20_000, 5_000), (1, 5))]
    kinds: list[dict[str, Any]] = [{}, *fixed]
    every = product(range(1, seeds + 1), (0.001, 0.002, 0.005, 0.01), kinds, HEADS)
    return [RarestWord(head=head, p=p, hidden=128, updates=1000, seed=seed, **kind) for seed, p, kind, head in every]


def reproduce(runs: Sequence[RarestWord], out: Path, command: str, workers: int | None = None) -> Report:
    """Makes the runs that `out` does not hold yet, then writes and returns the report on all of them."""
    require_matplotlib()
    _train([settings for settings in runs if not _path(settings, out).exists()], out, workers)
    results = [json.loads(_path(settings, out).read_text()) for settings in runs]
    return report(results, out, command)


def _train(runs: Sequence[RarestWord], out: Path, workers: int | None) -> None:
    """One process a core, one thread each: small matrices gain nothing from two."""
    made = get_context("spawn").Value("l", 0)  # updates, by all workers together
    total = sum(settings.updates for settings in runs)
    with progress("training", total, "updates") as bar, following(bar, lambda: made.value):
        for settings, result in zip(runs, in_order(_run, runs, workers, _set_up, made), strict=True):
            about = {**asdict(result), "settings": settings.model_dump(), "made_by": versions()}
            write_text(_path(settings, out), json.dumps(about))


def _set_up(made: Synchronized[int]) -> None:
    global _made
    import torch

    _made = made
    torch.set_num_threads(1)


def _run(settings: RarestWord) -> Run:
    """In a worker."""
    from pointing.reproduce.rarest_word_task import run

    def count() -> None:
        assert _made is not None
        with _made.get_lock():
            _made.value += 1

    return run(settings, count)


def _path(settings: RarestWord, out: Path) -> Path:
    """Where the result of a run is kept: named by all that decides it."""
    text = json.dumps([settings.model_dump(), __version__], sort_keys=True)
    return out / "runs" / f"{sha256(text.encode()).hexdigest()[:16]}.json"


class Report(NamedTuple):
    table: Table
    results: dict[str, Any]


def report(results: Sequence[dict[str, Any]], out: Path, command: str) -> Report:
    """The table; JSON and pictures are in `out` afterwards."""
    summary = {"experiment": KEY, "command": command, "made_by": results[0]["made_by"], "runs": list(results)}
    cells = _cells(results)
    panels = {
        title: {HEADS[head]: [_curve(run) for run in runs] for head, runs in heads.items()}
        for title, heads in cells.items()
    }
    for name in ("curves.png", "curves.svg"):
        learning_curves(out / name, panels, "updates", "validation error (%)")
    write_text(out / RESULTS, json.dumps(summary) + "\n")
    return Report(_table(cells), summary)


def section(results: Mapping[str, Any], seen: str) -> str:
    """The experiment in Markdown; its picture is in the folder that readers find at `seen`."""
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
    table = _table(cells).markdown()
    picture = f"![validation error]({seen}/curves.png)"
    return f"{title}\n\n{table}\n{notes}\n\n{picture}\n\nMade by `{results['command']}`.\n"


def in_short(results: Mapping[str, Any]) -> list[list[str]]:
    """Both pointer softmaxes against the softmax, of the training that is the paper's: fresh words, our default p."""
    default = RarestWord()
    as_there = {"p": default.p, "training": default.training}
    cells = _cells(run for run in results["runs"] if as_there.items() <= run["settings"].items())
    paper = {"summary": f"{PAPER['softmax']} → {PAPER['summary']}"}
    lines = []
    for title, heads in cells.items():
        errors = {head: mean(run["test"]["all"] for run in runs) for head, runs in heads.items()}
        softmax = errors.pop("softmax")
        for head, error in errors.items():
            name = f"The rarest word: {title}, {HEADS[head].partition(', ')[2]}"
            lines.append([name, "", "error %", paper.get(head, ""), f"{softmax:.1f} → {error:.1f}", ""])
    return lines


def _cells(results: Iterable[dict[str, Any]]) -> dict[str, dict[Literal["softmax", "summary", "annotations"], Any]]:
    """Runs that differ only in head and seed belong together: title → head → runs."""
    cells: dict[str, Any] = {}
    for run in results:
        s = run["settings"]
        drawn = "drawn afresh" if s["training"] is None else f"{s['training']:,} sequences{_read(s['min_count'])}"
        title = f"p = {s['p']:g}, {drawn}, hidden {s['hidden']}"
        cells.setdefault(title, {}).setdefault(s["head"], []).append(run)
    return cells


def _read(min_count: int) -> str:
    """How words are read that a fixed training set hardly has."""
    return "" if min_count == 1 else f" (words seen < {min_count} times: read as unknown)"


def _table(cells: dict[str, Any]) -> Table:
    rows = [["the paper", HEADS[head], "–", f"{error}", "", "", ""] for head, error in PAPER.items()]  # type: ignore[index]
    for title, heads in cells.items():
        for head, runs in heads.items():
            errors = [[run["test"][group] for run in runs if run["test"][group] is not None] for group in GROUPS]
            updates = f"{mean(run['best_update'] for run in runs):,.0f}"
            rows.append([title, HEADS[head], updates, *(mean_and_spread(e) if e else "" for e in errors)])
    return Table("The rarest word: error in %", ["training", "output layer", "updates", *GROUPS], rows)


def _curve(run: dict[str, Any]) -> list[tuple[float, float]]:
    return [(point["update"], point["all"]) for point in run["curve"]]
