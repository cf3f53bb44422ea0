"""The runs of an experiment: every row and seed once, side by side on the machine's cores, taken up if cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pointing.config import CORPUS, Config, read_config
from pointing.errors import Misuse
from pointing.reproduce.experiments import Experiment, Row
from pointing.system.progress import following, progress
from pointing.system.workers import cores, in_order


class Job(NamedTuple):
    """A run to be made."""

    config: Config
    corpus: Path
    folder: Path


def choose(
    experiment: Experiment, rows: Sequence[str] = (), seeds: int = 1, dictionary: Path | None = None
) -> list[list[Row]]:
    """The experiment's rows, or those that are asked for: `KEY`, or `KEY=N` with N seeds; groups stay groups."""
    known = {row.key: row for row in experiment.rows}
    asked = dict(_asked(text, seeds) for text in rows) or dict.fromkeys(known, seeds)
    if wrong := [key for key in asked if key not in known]:
        raise Misuse(f"there is no row {wrong[0]} in {experiment.key}; there are {', '.join(known)}")
    if dictionary is None:
        given = [key for key in asked if known[key].given_words]
        if rows and given:
            raise Misuse(f"the row {given[0]} needs word pairs: give --dictionary too")
        asked = {key: n for key, n in asked.items() if key not in given}
    elif not experiment.takes_words:
        raise Misuse(f"no row of {experiment.key} takes word pairs: leave out --dictionary")
    chosen = [[row._replace(seeds=asked[row.key]) for row in group if row.key in asked] for group in experiment.groups]
    groups = [group for group in chosen if group]
    for group in groups:
        for row in group:
            for needed in (row.trained, row.translated_by, group[0].key):  # the last one: what it is compared with
                if needed is not None and asked.get(needed, 0) < row.seeds:
                    more = f"=N with N at least {row.seeds}" if needed in asked else ""
                    raise Misuse(f"the row {row.key} needs the runs of {needed}: ask for --row {needed}{more} too")
    return groups


def _asked(text: str, seeds: int) -> tuple[str, int]:
    key, equals, number = text.partition("=")
    if equals and not (number.isascii() and number.isdecimal() and int(number)):
        raise Misuse(f"--row {text}: after the = comes how many seeds")
    return key, int(number) if equals else seeds


def plan(
    rows: Sequence[Row],
    recipe: Path,
    changes: Mapping[str, Any],
    out: Path,
    dictionary: Path | None = None,
) -> dict[tuple[str, int], Job]:
    """By row and seed, the run that is needed; rows that share one are not in it."""
    jobs = {}
    for row in (row for row in rows if row.run is None):
        for seed in range(1, row.seeds + 1):
            given = {"pointers.dictionary": str(dictionary)} if row.given_words else {}
            config = read_config(recipe, {**changes, **row.changes, **given, "training.seed": seed})
            jobs[row.key, seed] = Job(config, out / "corpora" / _corpus(config), out / f"{row.key}-{seed}")
    return jobs


def _corpus(config: Config) -> str:
    """A name for the corpus that a run is prepared from: rows with the same one share it."""
    decides = config.model_dump(mode="json", include=CORPUS, exclude_defaults=True)
    return f"{config.pointers.policy}-{sha256(json.dumps(decides).encode()).hexdigest()[:8]}"


def train(jobs: Sequence[Job], workers: int | None = None) -> None:
    """Makes the runs that are not there yet, several at a time: small matrices gain little from a second core."""
    from pointing.corpus.preparation import prepare
    from pointing.system.progress import say
    from pointing.training import loop as training
    from pointing.training.state import ended

    corpora = {job.corpus: job.config for job in jobs}  # also of runs that are there: the report tells of them
    made_from = {folder: prepare(config, folder)[0].about["made_from"] for folder, config in corpora.items()}
    to_do = [job for job in jobs if ended(job.folder, job.config, made_from[job.corpus]) is None]
    workers = min(workers or cores(), len(to_do))
    if workers < 2:
        for job in to_do:
            say(f"\n{job.folder}")
            training.train(job.config, job.corpus, job.folder, _begun(job))
        return
    to_do = [job._replace(config=_on_one_core(job.config)) for job in to_do]
    for job in to_do:
        say(f"to be trained: {job.folder}; what it tells: {_log(job)}")
    total = sum(job.config.training.updates or 0 for job in to_do)
    with (
        progress(f"training {len(to_do)} runs", total or None, "updates") as bar,
        following(bar, lambda: sum(map(_made, to_do)), seconds=5.0),
    ):
        for _ in in_order(_train, to_do, workers, _nothing):
            pass


def _begun(job: Job) -> bool:
    return (job.folder / "config.yaml").exists()


def _made(job: Job) -> int:
    """Updates so far, as the run's journal tells."""
    from pointing.training.journal import read

    return max((line["update"] for line in read(job.folder)), default=0)


def _on_one_core(config: Config) -> Config:
    return config.model_copy(update={"training": config.training.model_copy(update={"threads": 1})})


def _log(job: Job) -> Path:
    return job.folder.parent / f"{job.folder.name}.log"


def _nothing() -> None:
    pass


def _train(job: Job) -> None:
    """In a worker, whose words go into a file of their own."""
    from pointing.training.loop import train

    job.folder.parent.mkdir(parents=True, exist_ok=True)
    with _log(job).open("a", encoding="utf-8") as log, redirect_stderr(log):
        train(job.config, job.corpus, job.folder, _begun(job))
