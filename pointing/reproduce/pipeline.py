"""An experiment from its recipe to its report: plan the runs, train them, gather the results, write the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pointing.config import Parallel
from pointing.errors import Misuse
from pointing.evaluation.plots import require_matplotlib
from pointing.reproduce.experiments import EXPERIMENTS, Experiment
from pointing.reproduce.page import draw_curves, write_report
from pointing.reproduce.results import Tests, TrainedExperiment, gather_results
from pointing.reproduce.runs import PlannedRuns, choose_rows, plan_runs, train_runs
from pointing.settings_file import read_config


def reproduce_experiment(
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
    """Runs one experiment on one recipe; runs and outputs that are in `out` already are used again.

    Runs and corpora are in OUT/RECIPE, shared by all experiments on that recipe. Returns the folder of this
    experiment's results, with results.json, report.md, report.html and pictures.
    """
    require_matplotlib()
    groups = choose_rows(experiment, rows, seeds, dictionary)
    chosen = [row for group in groups for row in group]
    planned = plan_runs(chosen, recipe, {**experiment.changes, **(changes or {})}, out / recipe.stem, dictionary)
    tests = _tests(experiment, planned, recipe, also or {})
    train_runs(list(planned.values()), workers)
    folder = out / recipe.stem / experiment.key
    gather_results(TrainedExperiment(experiment, groups, recipe.stem, planned, tests, command), folder)
    draw_curves(folder)
    write_report([folder], folder)
    return folder


def _tests(experiment: Experiment, planned: PlannedRuns, recipe: Path, also: Mapping[str, Parallel]) -> Tests:
    """The recipe's own test set, then the others. They are checked here, before anything is trained."""
    if also and not experiment.columns:
        raise Misuse(f"{experiment.key} tests nothing: leave out --also")
    pointers = [run.config.pointers for run in planned.values()]
    if also and any(settings.uses_entities and settings.tagger is None for settings in pointers):
        raise Misuse(f"{experiment.key} needs a tag for every token, which --also does not give: leave it out")
    if not experiment.columns:
        return {}
    own = next(iter(planned.values())).config.data.test
    if not isinstance(own, Parallel):
        raise Misuse("the recipe names no test files: set data.test to a source and a target file", recipe)
    tests = {f"{own.source.parent.name}/{own.source.name.split('.')[0]}": own, **also}
    for path in (path for files in tests.values() for path in (files.source, files.target)):
        if not path.exists():
            raise Misuse("there is no such file to test on", path)
    return tests


def recipes_with_data(experiment: Experiment, recipes: Path) -> tuple[list[Path], list[str]]:
    """The experiment's recipes whose data are on this machine, and messages that say what the others miss."""
    complete, missing = [], []
    for name in experiment.recipes:
        recipe = recipes / f"{name}.yaml"
        config = read_config(recipe)
        files = [path for split in config.data.given().values() for path in split.model_dump().values() if path]
        absent = [path for path in files if not path.exists()]
        if absent:
            missing.append(
                f"{experiment.key} on {name} is left out: {absent[0]} is not there ({recipe} says what it needs)"
            )
        else:
            complete.append(recipe)
    return complete, missing


def reproduce_everything(
    recipes: Path, out: Path, command: str, seeds: int, dictionary: Path | None, workers: int | None
) -> tuple[list[Path], list[str]]:
    """Runs all experiments on all recipes whose data are here. Returns the results' folders, and what was left out."""
    folders, missing = [], []
    for experiment in EXPERIMENTS.values():
        complete, messages = recipes_with_data(experiment, recipes)
        missing += messages
        words = dictionary if experiment.takes_dictionary else None
        folders += [
            reproduce_experiment(experiment, recipe, out, command, seeds=seeds, dictionary=words, workers=workers)
            for recipe in complete
        ]
    return folders, missing
