"""Trained runs → everything that a report tells of them, as one JSON file: scores of every test set and seed, curves,
times; and a few outputs, chosen by a rule."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pointing import __version__
from pointing.config import Parallel
from pointing.errors import Misuse
from pointing.reproduce import outputs
from pointing.reproduce.experiments import Experiment, Row
from pointing.reproduce.runs import Job
from pointing.system.files import read_text, write_text
from pointing.system.workers import cores

if TYPE_CHECKING:
    from pointing.evaluation.report import Report, Scored
    from pointing.generation.output import Output

QUANTILES = (0.95, 0.75, 0.5, 0.25, 0.05)  # of the shown outputs: good ones, middling ones, bad ones
TOLD = ("pairs", "target_tokens", "pointers_per_100", "unknown_share", "reached_by_same_word_or_dictionary")
RESULTS, EXAMPLES = "results.json", "examples.json"
Jobs = Mapping[tuple[str, int], Job]
Tests = Mapping[str, Parallel]  # by their names


class Asked(NamedTuple):
    """What is to be told, and of what."""

    experiment: Experiment
    groups: Sequence[Sequence[Row]]
    recipe: str
    jobs: Jobs
    tests: Tests
    command: str


def gather(asked: Asked, out: Path) -> dict[str, Any]:
    """results.json and, where outputs were made, examples.json in `out`; returned: the former."""
    experiment = asked.experiment
    rows = [row for group in asked.groups for row in group]
    (out / EXAMPLES).unlink(missing_ok=True)  # of other rows, perhaps
    scores: dict[str, Any] = {}
    for name, files in asked.tests.items():
        for seed in range(1, max(row.seeds for row in rows) + 1):
            groups = [[row for row in group if row.seeds >= seed] for group in asked.groups]
            told = [_evaluated(asked, group, name, files, seed, out) for group in groups if group]
            scores.setdefault(name, {})[str(seed)] = told
    results = {
        "experiment": experiment.key,
        "recipe": asked.recipe,
        "command": asked.command,
        "made_by": {**versions(), "machine": f"{platform.machine()}, {cores()} cores"},
        "rows": [
            {"key": row.key, "name": row.name, "run": row.trained, "baseline": group[0].key, "seeds": row.seeds}
            for group in asked.groups
            for row in group
        ],
        "scores": scores,
        "runs": {f"{key}-{seed}": _run(job) for (key, seed), job in asked.jobs.items()},
        "corpora": {job.corpus.name: _corpus(job.corpus) for job in asked.jobs.values()},
    }
    write_text(out / RESULTS, json.dumps(results) + "\n")
    return results


def versions() -> dict[str, str]:
    """What results were made with."""
    import torch

    return {"pointing": __version__, "torch": torch.__version__, "python": platform.python_version()}


def _run(job: Job) -> dict[str, Any]:
    """How a run went: its settings where they matter, its time, its validations."""
    from pointing.model.run import STATE, read_header, run_settings
    from pointing.training import journal
    from pointing.training.state import State

    state = State(**read_header(job.folder / STATE)["state"])
    events = journal.read(job.folder)
    rates = [event["words_per_second"] for event in events if event["event"] == "training"]
    validations = [event for event in events if event["event"] == "validation"]
    return {
        "corpus": job.corpus.name,
        "updates": state.update,
        "best_update": state.best_update,
        "minutes": round(state.seconds / 60, 1),
        "words_per_second": round(median(rates)) if rates else None,
        "threads": run_settings(job.folder).training.threads,
        "curve": [_numbers(event, words=job.config.text.subwords is None) for event in validations],
    }


def _numbers(event: Mapping[str, Any], words: bool) -> dict[str, Any]:
    """A validation without what is only for pictures; of pieces of words nothing compares with words."""
    left_out = {"best"} if words else {"best", "comparable_nll", "comparable_nll_word"}
    kept = {name: value for name, value in event.items() if isinstance(value, int | float) and name not in left_out}
    return {**kept, **{f"switch_{name}": value for name, value in event.get("switch", {}).items() if name != "bins"}}


def _corpus(folder: Path) -> dict[str, Any]:
    from pointing.corpus.examples import Corpus

    corpus = Corpus(folder)
    splits = {name: {key: some[key] for key in TOLD} for name, some in corpus.about["statistics"].items()}
    return {"source_words": len(corpus.lexicon.source), "target_words": len(corpus.lexicon.target), "splits": splits}


def _evaluated(asked: Asked, rows: Sequence[Row], test: str, files: Parallel, seed: int, out: Path) -> dict[str, Any]:
    """Scores of some rows' systems, the first one the baseline."""
    origins = [outputs.Origin.of(row, seed, asked.jobs) for row in rows]
    report = _evaluate(origins, files, out / "outputs" / re.sub(r"\W+", "-", test))
    _keep_examples(asked, rows, test, seed, report, files, out)
    told = report.json()
    return {**told, "comparisons": told["comparisons"] + _with_rivals(asked.experiment, rows, report)}


def _with_rivals(experiment: Experiment, rows: Sequence[Row], report: Report) -> list[dict[str, Any]]:
    """The rows compared with the experiment's rivals, where these are among them."""
    from pointing.evaluation.report import compare

    wanted = {experiment.shown[column] for column in experiment.compared}
    fewer = [replace(one, measures=[m for m in one.measures if m.name in wanted]) for one in report.systems]
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        others = [one for one in fewer[1:] if one.name != row.name]
        if row.key in experiment.rivals and others:
            found += compare([fewer[number], *others]).json()["comparisons"]
    return found


def _evaluate(origins: Sequence[outputs.Origin], files: Parallel, kept: Path) -> Report:
    from pointing.evaluation.evaluate import evaluate
    from pointing.evaluation.measures import EvaluationSet
    from pointing.model.run import load_run

    jobs = [origin.job for origin in origins]
    loaded = {job.folder: load_run(job.folder) for job in jobs}
    systems = [outputs.system(origin, loaded[origin.job.folder], files, kept) for origin in origins]
    tags = (files.source_tags, files.target_tags) if any(map(outputs.tagged, jobs)) else (None, None)
    return evaluate(systems, EvaluationSet.read(files.source, [files.target], *tags))


def _keep_examples(
    asked: Asked, rows: Sequence[Row], test: str, seed: int, report: Report, files: Parallel, out: Path
) -> None:
    """Of seed 1 and the recipe's own test set, if the rows to be shown are among these."""
    keys = [row.key for row in rows]
    shows = asked.experiment.shows
    if seed != 1 or test != next(iter(asked.tests)) or not set(shows[:2]) <= set(keys):
        return
    shown = [report.systems[keys.index(key)] for key in shows if key in keys]
    told = {"test": test, "seed": seed, "examples": examples(shown, files)}
    write_text(out / EXAMPLES, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def examples(shown: Sequence[Scored], files: Parallel) -> list[dict[str, Any]]:
    """Lines where the second system copied something, in the order of its chrF: the ones at fixed quantiles of it."""
    from sacrebleu.metrics.chrf import CHRF

    references = [text for _, text in read_text(files.target)]
    score = CHRF()
    ranked = []
    for number, output in enumerate(shown[1].outputs):
        assert not isinstance(output, str)
        if any(token.origin != "shortlist" for token in output.tokens):
            found = score.sentence_score(output.text.lower(), [references[number].lower()]).score
            ranked.append((found, number))
    ranked.sort()
    chosen = {ranked[round(quantile * (len(ranked) - 1))]: quantile for quantile in QUANTILES if ranked}
    return [
        {
            "quantile": quantile,
            "of": len(ranked),
            "line": number + 1,
            "chrF2": round(found, 1),
            "source": _source(shown[1].outputs[number]),
            "reference": references[number],
            "outputs": {one.name: _words(one.outputs[number]) for one in shown},
        }
        for (found, number), quantile in chosen.items()
    ]


def _source(output: Output | str) -> list[tuple[str, bool]]:
    """Pieces of the raw line, and whether each was copied."""
    assert not isinstance(output, str)
    line, used = output.source, {token.source for token in output.tokens}
    pieces, at = [], 0
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        if position in used:
            pieces += [(line.text[at:start], False), (line.text[start:end], True)]
            at = end
    return [piece for piece in [*pieces, (line.text[at:], False)] if piece[0]]


def _words(output: Output | str) -> list[tuple[str, str]]:
    assert not isinstance(output, str)
    return [(token.text, token.origin) for token in output.tokens]


def read(folder: Path) -> dict[str, Any]:
    """What `gather` wrote."""
    path = folder / RESULTS
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Misuse("there are no results in this folder; `pointing reproduce` makes them", folder) from None
    return results if isinstance(results, dict) else {}
