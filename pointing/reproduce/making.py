"""An experiment from its recipe to its report: the runs that are missing, the scores that are missing, the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pointing.config import Parallel, read_config
from pointing.errors import Misuse
from pointing.evaluation.plots import require_matplotlib
from pointing.reproduce import page, results, runs
from pointing.reproduce.experiments import EXPERIMENTS, Experiment
from pointing.reproduce.outputs import tagged


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
    tests = _tests(experiment, jobs, recipe, also or {})
    runs.train(list(jobs.values()), workers)
    folder = out / recipe.stem / experiment.key
    asked = results.Asked(experiment, groups, recipe.stem, jobs, tests, command)
    results.gather(asked, folder)
    page.draw(folder)
    page.write([folder], folder)
    return folder


def _tests(experiment: Experiment, jobs: results.Jobs, recipe: Path, also: Mapping[str, Parallel]) -> results.Tests:
    """The recipe's own test set, then the others; what is wrong with them is said before anything is trained."""
    if also and not experiment.shown:
        raise Misuse(f"{experiment.key} tests nothing: leave out --also")
    if also and any(tagged(job) and job.config.pointers.tagger is None for job in jobs.values()):
        raise Misuse(f"{experiment.key} needs a tag for every token, which --also does not give: leave it out")
    if not experiment.shown:
        return {}
    own = next(iter(jobs.values())).config.data.test
    if own is None:
        raise Misuse("the recipe names no test files: set data.test", recipe)
    tests = {f"{own.source.parent.name}/{own.source.name.split('.')[0]}": own, **also}
    for path in (path for files in tests.values() for path in (files.source, files.target)):
        if not path.exists():
            raise Misuse("there is no such file to test on", path)
    return tests


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
    folders, missing = [], []
    for experiment in EXPERIMENTS.values():
        found, lost = available(experiment, recipes)
        missing += lost
        words = dictionary if experiment.takes_words else None
        folders += [
            make(experiment, one, out, command, seeds=seeds, dictionary=words, workers=workers) for one in found
        ]
    return folders, missing
