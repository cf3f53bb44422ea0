"""Trained runs → results.json (scores on every test set and seed, learning curves, times) and some example outputs."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

import torch
from sacrebleu.metrics.chrf import CHRF

from pointing import __version__
from pointing.config import Parallel
from pointing.corpus.examples import Corpus
from pointing.errors import Misuse
from pointing.evaluation.evaluate import evaluate
from pointing.evaluation.evaluation_set import EvaluationSet, read_texts
from pointing.evaluation.report import Report, Scored, compare
from pointing.generation.output import Output
from pointing.model.run import load_run, run_settings
from pointing.reproduce.experiments import Experiment, Row
from pointing.reproduce.outputs import OutputOrigin, system_with_outputs
from pointing.reproduce.runs import PlannedRun, PlannedRuns
from pointing.system.border import read_object
from pointing.system.files import write_text
from pointing.system.workers import cores
from pointing.training.journal import read_journal
from pointing.training.state import read_state

KIND = "results of `pointing reproduce`; make them anew, or take them from a copy"
QUANTILES = (0.95, 0.75, 0.5, 0.25, 0.05)  # of the outputs in the order of their chrF: good, middling and bad ones
SPLIT_STATISTICS = ("pairs", "target_tokens", "pointers_per_100", "unknown_share", "reached_by_same_word_or_dictionary")
RESULTS, EXAMPLES = "results.json", "examples.json"
Tests = Mapping[str, Parallel]  # test sets by their names


class TrainedExperiment(NamedTuple):
    """An experiment whose runs are trained, and the test sets that it is scored on."""

    experiment: Experiment
    groups: Sequence[Sequence[Row]]  # the rows that were chosen
    recipe: str
    runs: PlannedRuns
    tests: Tests
    command: str  # that was typed to make it


def gather_results(trained: TrainedExperiment, out: Path) -> None:
    """Writes results.json to `out` and, if outputs were generated, examples.json."""
    rows = [row for group in trained.groups for row in group]
    (out / EXAMPLES).unlink(missing_ok=True)  # an older one may be of other rows
    scores: dict[str, Any] = {}
    for name, files in trained.tests.items():
        for seed in range(1, max(row.seeds for row in rows) + 1):
            groups = [[row for row in group if row.seeds >= seed] for group in trained.groups]
            reports = [_evaluate_rows(trained, group, name, files, seed, out) for group in groups if group]
            scores.setdefault(name, {})[str(seed)] = reports
    results = {
        "experiment": trained.experiment.key,
        "recipe": trained.recipe,
        "command": trained.command,
        "made_by": {**versions(), "machine": f"{platform.machine()}, {cores()} cores"},
        "rows": [
            {"key": row.key, "name": row.name, "run": row.run_key, "baseline": group[0].key, "seeds": row.seeds}
            for group in trained.groups
            for row in group
        ],
        "scores": scores,
        "runs": {f"{key}-{seed}": _training(run) for (key, seed), run in trained.runs.items()},
        "corpora": {run.corpus.name: _corpus(run.corpus) for run in trained.runs.values()},
    }
    write_text(out / RESULTS, json.dumps(results) + "\n")


def versions() -> dict[str, str]:
    """The versions of the programs that made the results."""
    return {"pointing": __version__, "torch": torch.__version__, "python": platform.python_version()}


def _training(run: PlannedRun) -> dict[str, Any]:
    """How a run was trained: its corpus, its updates, its time, its validations."""
    state, events = read_state(run.folder), read_journal(run.folder)
    rates = [event["words_per_second"] for event in events if event["event"] == "training"]
    validations = [event for event in events if event["event"] == "validation"]
    return {
        "corpus": run.corpus.name,
        "updates": state.update,
        "best_update": state.best_update,
        "minutes": round(state.seconds / 60, 1),
        "core_minutes": round(state.core_seconds / 60, 1),
        "words_per_second": round(median(rates)) if rates else None,
        "threads": run_settings(run.folder).training.threads,
        "curve": [_numbers(event, words=not run.config.text.uses_subwords) for event in validations],
    }


def _numbers(event: Mapping[str, Any], words: bool) -> dict[str, Any]:
    """A validation's numbers, without the bins of the calibration plot.

    A model of subwords has no NLL that can be compared with that of a model of words.
    """
    left_out = {"best"} if words else {"best", "comparable_nll", "comparable_nll_word"}
    numbers = {name: value for name, value in event.items() if isinstance(value, int | float) and name not in left_out}
    return {**numbers, **{f"switch_{name}": value for name, value in event.get("switch", {}).items() if name != "bins"}}


def _corpus(folder: Path) -> dict[str, Any]:
    corpus = Corpus(folder)
    statistics = corpus.about["statistics"].items()
    splits = {split: {key: numbers[key] for key in SPLIT_STATISTICS} for split, numbers in statistics}
    return {"source_words": len(corpus.lexicon.source), "target_words": len(corpus.lexicon.target), "splits": splits}


def _evaluate_rows(
    trained: TrainedExperiment, rows: Sequence[Row], test: str, files: Parallel, seed: int, out: Path
) -> dict[str, Any]:
    """The report on the systems of some rows, of which the first is the baseline; with comparisons to the rivals."""
    origins = [OutputOrigin.of(row, seed, trained.runs) for row in rows]
    planned = [origin.planned for origin in origins]
    loaded = {run.folder: load_run(run.folder) for run in planned}
    folder = out / "outputs" / re.sub(r"\W+", "-", test)
    systems = [system_with_outputs(origin, loaded[origin.planned.folder], files, folder) for origin in origins]
    entities = any(run.config.pointers.uses_entities for run in planned)
    tags = (files.source_tags, files.target_tags) if entities else (None, None)
    report = evaluate(systems, EvaluationSet.read(files.source, [files.target], *tags))
    _write_examples(trained, rows, test, seed, report, files, out)
    values = report.json()
    return {**values, "comparisons": values["comparisons"] + _with_rivals(trained.experiment, rows, report)}


def _with_rivals(experiment: Experiment, rows: Sequence[Row], report: Report) -> list[dict[str, Any]]:
    """The comparisons of the rows with the experiment's rivals, if these are among the rows."""
    names = {experiment.columns[column] for column in experiment.compared_columns}
    systems = [
        replace(system, measures=[measure for measure in system.measures if measure.name in names])
        for system in report.systems
    ]
    comparisons: list[dict[str, Any]] = []
    for rival, row in zip(systems, rows, strict=True):
        compared = [system for system in systems[1:] if system.name != row.name]
        if row.key in experiment.rivals and compared:
            comparisons += compare([rival, *compared]).json()["comparisons"]
    return comparisons


def _write_examples(
    trained: TrainedExperiment, rows: Sequence[Row], test: str, seed: int, report: Report, files: Parallel, out: Path
) -> None:
    """Writes example outputs of seed 1 on the recipe's own test set, if `rows` has the first two highlighted rows."""
    keys = [row.key for row in rows]
    highlights = trained.experiment.highlights
    if seed != 1 or test != next(iter(trained.tests)) or not set(highlights[:2]) <= set(keys):
        return
    systems = [report.systems[keys.index(key)] for key in highlights if key in keys]
    values = {"test": test, "seed": seed, "examples": examples(systems, files)}
    write_text(out / EXAMPLES, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def examples(systems: Sequence[Scored], files: Parallel) -> list[dict[str, Any]]:
    """The lines at fixed quantiles of the second system's chrF, out of the lines where this system copied a word."""
    references, chrf = read_texts(files.target), CHRF()
    outputs = {system.name: cast(Sequence[Output], system.outputs) for system in systems}  # our runs wrote them
    second = outputs[systems[1].name]
    ranked = sorted(
        (chrf.sentence_score(output.text.lower(), [reference.lower()]).score, number)
        for number, (output, reference) in enumerate(zip(second, references, strict=True))
        if any(token.origin != "shortlist" for token in output.tokens)
    )
    chosen = {ranked[round(quantile * (len(ranked) - 1))]: quantile for quantile in QUANTILES if ranked}
    return [
        {
            "quantile": quantile,
            "of": len(ranked),
            "line": number + 1,
            "chrF2": round(score, 1),
            "source": _source(second[number]),
            "reference": references[number],
            "outputs": {name: [(t.text, t.origin) for t in lines[number].tokens] for name, lines in outputs.items()},
        }
        for (score, number), quantile in chosen.items()
    ]


def _source(output: Output) -> list[tuple[str, bool]]:
    """The raw source line in pieces, each with whether it was copied."""
    line, copied = output.source, {token.source for token in output.tokens}
    pieces, last_end = [], 0
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        if position in copied:
            pieces += [(line.text[last_end:start], False), (line.text[start:end], True)]
            last_end = end
    return [piece for piece in [*pieces, (line.text[last_end:], False)] if piece[0]]


def read_results(folder: Path) -> dict[str, Any]:
    """What results.json holds."""
    path = folder / RESULTS
    if not path.exists():
        raise Misuse("there are no results in this folder; `pointing reproduce` makes them", folder)
    return read_object(path, KIND)
