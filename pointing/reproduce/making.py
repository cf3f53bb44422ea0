"""An experiment from its recipe to its report: the runs that are missing, the scores that are missing, the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pointing.config import Config, Parallel, read_config
from pointing.errors import Misuse
from pointing.plots import require_matplotlib
from pointing.reproduce import page, results, runs
from pointing.reproduce.experiments import EXPERIMENTS, Experiment


def make(
    experiment: Experiment,
    recipe: Path,
    out: Path,
    command: str,
    *,
    changes: Mapping[str, Any] | None = None,
    rows: Sequence[str] = (),
    seeds: int = 1,
    also: Mapping[str, Parallel] | None = None,
    dictionary: Path | None = None,
    workers: int | None = None,
) -> Path:
    """Everything about one experiment on one recipe; what `out` has already is not made again.

    Runs and corpora are in OUT/RECIPE, shared by the experiments on that recipe; returned: the folder of this one's
    results, with results.json, report.md, report.html and pictures.
    """
    require_matplotlib()
    groups = runs.choose(experiment, rows, seeds, dictionary)
    chosen = [row for group in groups for row in group]
    jobs = runs.plan(chosen, recipe, changes or {}, out / recipe.stem, dictionary)
    tests = {**_own_test(next(iter(jobs.values())).config, recipe), **(also or {})} if experiment.shown else {}
    for files in tests.values():
        _check(files)
    runs.train(list(jobs.values()), workers)
    folder = out / recipe.stem / experiment.key
    asked = results.Asked(experiment, groups, recipe.stem, jobs, tests, command)
    results.gather(asked, folder)
    page.draw(folder)
    page.write([folder], folder)
    return folder


def _own_test(config: Config, recipe: Path) -> dict[str, Parallel]:
    test = config.data.test
    if test is None:
        raise Misuse("the recipe names no test files: set data.test", recipe)
    return {f"{test.source.parent.name}/{test.source.name.split('.')[0]}": test}


def _check(files: Parallel) -> None:
    for path in (files.source, files.target):
        if not path.exists():
            raise Misuse("there is no such file to test on", path)


def available(experiment: Experiment, recipes: Path) -> tuple[list[Path], list[str]]:
    """The recipes whose data are on this machine; and of the others, what is missing."""
    found, missing = [], []
    for name in experiment.recipes:
        recipe = recipes / f"{name}.yaml"
        config = read_config(recipe)
        files = [path for split in config.data.splits().values() for path in split.model_dump().values() if path]
        lost = [path for path in files if not path.exists()]
        if lost:
            missing.append(
                f"{experiment.key} on {name} is left out: {lost[0]} is not there ({recipe} says what it needs)"
            )
        else:
            found.append(recipe)
    return found, missing


def everything(
    recipes: Path, out: Path, command: str, seeds: int, dictionary: Path | None, workers: int | None
) -> tuple[list[Path], list[str]]:
    """All experiments on all recipes whose data are here; the results' folders, and what was left out."""
    planned = {key: available(experiment, recipes) for key, experiment in EXPERIMENTS.items()}
    folders = [
        make(EXPERIMENTS[key], recipe, out, command, seeds=seeds, dictionary=dictionary, workers=workers)
        for key, (found, _) in planned.items()
        for recipe in found
    ]
    return folders, [line for _, missing in planned.values() for line in missing]
