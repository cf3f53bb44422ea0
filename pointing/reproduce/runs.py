"""The runs of an experiment: one for every row and seed, several at a time; a run that was cut off is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pointing.config import CORPUS, Config
from pointing.corpus.preparation import prepare
from pointing.errors import Misuse
from pointing.model.run import SETTINGS
from pointing.reproduce.experiments import Experiment, Row
from pointing.settings_file import read_config
from pointing.system.progress import following, progress, say
from pointing.system.workers import cores, in_order
from pointing.training import loop
from pointing.training.journal import read_journal
from pointing.training.state import finished_state


class PlannedRun(NamedTuple):
    """A run that an experiment needs, trained already or not."""

    config: Config
    corpus: Path
    folder: Path


PlannedRuns = Mapping[tuple[str, int], PlannedRun]  # by the row's key and the seed


def choose_rows(
    experiment: Experiment, rows: Sequence[str] = (), seeds: int = 1, dictionary: Path | None = None
) -> list[list[Row]]:
    """All rows of the experiment, or those that `rows` names: `KEY`, or `KEY=N` with N seeds. Groups stay groups."""
    by_key = {row.key: row for row in experiment.rows}
    chosen = dict(_key_and_seeds(text, seeds) for text in rows) or dict.fromkeys(by_key, seeds)
    if wrong := [key for key in chosen if key not in by_key]:
        raise Misuse(f"there is no row {wrong[0]} in {experiment.key}; there are {', '.join(by_key)}")
    if dictionary is None:
        without = [key for key in chosen if by_key[key].takes_dictionary]
        if rows and without:
            raise Misuse(f"the row {without[0]} needs word pairs: give --dictionary too")
        chosen = {key: count for key, count in chosen.items() if key not in without}
    elif not experiment.takes_dictionary:
        raise Misuse(f"no row of {experiment.key} takes word pairs: leave out --dictionary")
    groups = [
        [row._replace(seeds=chosen[row.key]) for row in group if row.key in chosen] for group in experiment.groups
    ]
    groups = [group for group in groups if group]
    for group in groups:
        for row in group:
            for needed in (row.run_key, row.translated_by, group[0].key):  # group[0] is its baseline
                if needed is not None and chosen.get(needed, 0) < row.seeds:
                    more = f"=N with N at least {row.seeds}" if needed in chosen else ""
                    raise Misuse(f"the row {row.key} needs the runs of {needed}: ask for --row {needed}{more} too")
    return groups


def _key_and_seeds(text: str, seeds: int) -> tuple[str, int]:
    key, equals, number = text.partition("=")
    if equals and not (number.isascii() and number.isdecimal() and int(number)):
        raise Misuse(f"--row {text}: after the = comes how many seeds")
    return key, int(number) if equals else seeds


def plan_runs(
    rows: Sequence[Row], recipe: Path, changes: Mapping[str, Any], out: Path, dictionary: Path | None = None
) -> PlannedRuns:
    """The runs of all rows that have runs of their own, one for each seed."""
    planned = {}
    for row in (row for row in rows if row.shared_run is None):
        for seed in range(1, row.seeds + 1):
            given = {"pointers.dictionary": str(dictionary)} if row.takes_dictionary else {}
            config = read_config(recipe, {**changes, **row.changes, **given, "training.seed": seed})
            corpus = out / "corpora" / _corpus_name(config)
            planned[row.key, seed] = PlannedRun(config, corpus, out / f"{row.key}-{seed}")
    return planned


def _corpus_name(config: Config) -> str:
    """The name of the folder of a run's corpus; runs with the same settings of text and pointers share a corpus."""
    settings = config.model_dump(mode="json", include=CORPUS, exclude_defaults=True)
    return f"{config.pointers.policy}-{sha256(json.dumps(settings).encode()).hexdigest()[:8]}"


def train_runs(planned: Sequence[PlannedRun], workers: int | None = None) -> None:
    """Trains the runs that are not finished, several at a time: small matrices gain little from a second core."""
    corpora = {run.corpus: run.config for run in planned}  # of finished runs too: the report has their statistics
    made_from = {folder: prepare(config, folder)[0].about["made_from"] for folder, config in corpora.items()}
    unfinished = [run for run in planned if finished_state(run.folder, run.config, made_from[run.corpus]) is None]
    workers = min(workers or cores(), len(unfinished))
    if workers < 2:
        for run in unfinished:
            say(f"\n{run.folder}")
            loop.train(run.config, run.corpus, run.folder, _has_begun(run))
        return
    unfinished = [run._replace(config=_on_one_core(run.config)) for run in unfinished]
    for run in unfinished:
        say(f"to be trained: {run.folder}; its log: {_log(run)}")
    total = sum(run.config.training.updates or 0 for run in unfinished)
    with (
        progress(f"training {len(unfinished)} runs", total or None, "updates") as bar,
        following(bar, lambda: sum(map(_updates, unfinished)), seconds=5.0),
    ):
        for _ in in_order(_train, unfinished, workers, _nothing):
            pass


def _has_begun(run: PlannedRun) -> bool:
    return (run.folder / SETTINGS).exists()


def _updates(run: PlannedRun) -> int:
    """The number of updates so far, by the run's journal."""
    return max((line["update"] for line in read_journal(run.folder)), default=0)


def _on_one_core(config: Config) -> Config:
    return config.model_copy(update={"training": config.training.model_copy(update={"threads": 1})})


def _log(run: PlannedRun) -> Path:
    return run.folder.parent / f"{run.folder.name}.log"


def _nothing() -> None:
    """Worker processes that train need no setting up."""


def _train(run: PlannedRun) -> None:
    """Trains one run in a worker process, whose messages go to the run's log."""
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    with _log(run).open("a", encoding="utf-8") as log, redirect_stderr(log):
        loop.train(run.config, run.corpus, run.folder, _has_begun(run))
