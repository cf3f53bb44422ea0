"""results.json → Markdown: the paper's numbers beside ours, learning curves, example outputs, versions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

from pointing.evaluation.report import COUNTS, NOT_DEFINED, p_text
from pointing.reproduce.experiments import EXPERIMENTS, Experiment
from pointing.reproduce.results import EXAMPLES
from pointing.system.border import entering, read_bytes, read_text_file
from pointing.system.tables import Table, mean_and_spread

CURVES = {  # a panel's title → the name of its measure in results.json
    "dev NLL a sentence": "nll",
    "dev NLL of the same events": "comparable_nll",
    "dev BLEU, greedy": "bleu",
    "dev ROUGE-L F1, greedy": "rouge",
}
TIMES = {"update": "minutes", "core_minutes": "core_minutes"}  # what learning curves are drawn over → a run's time
LABELS = {"update": "updates", "minutes": "minutes", "core_minutes": "minutes of one core"}
TOO_FEW_UNKNOWN = 10  # with fewer words outside the shortlist no share of them is shown; subwords leave hardly any
NOTES = "notes.md"  # comments on the results, written by hand


def section(results: Mapping[str, Any], folder: Path, address: str) -> str:
    """The section on one experiment and one recipe. `folder` has its notes, examples and picture.

    `address` is the same folder, relative to the page.
    """
    experiment = EXPERIMENTS[results["experiment"]]
    parts = [f"## {experiment.title}: {results['recipe']} ({experiment.place})"]
    if (folder / NOTES).exists():
        parts.append(read_text_file(folder / NOTES, "notes on results").strip())
    parts += [_titled(_scores(experiment, results, test)) for test in results["scores"]]
    parts += [_titled(_training(experiment, results)), f"![learning curves]({address}/curves.png)"]
    if (folder / EXAMPLES).exists():
        data = read_bytes(folder / EXAMPLES)
        with entering(folder / EXAMPLES, "examples of `pointing reproduce`; remove them, and make the results anew"):
            parts.append(_examples(json.loads(data)))
    parts += [_titled(_corpora(results)), _provenance(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """Pointer softmaxes against the softmax, in the paper and here, a row for each measure.

    No row if the results do not have both models.
    """
    experiment = EXPERIMENTS[results["experiment"]]
    rows = {row["key"]: row for row in results["rows"]}
    title = f"{experiment.title}: {results['recipe']}"
    first, *rest = experiment.highlights
    compared = [key for key in rest if key in rows]
    if first not in rows or not compared:
        return []
    if not results["scores"]:
        validations = [_tested_validation(_runs(results, key, 1)[0]) for key in (first, *compared)]
        name, paper_nll = f"{title}, {rows[compared[0]]['name']}", _paper_difference(experiment, "dev NLL")
        return [
            [name, "dev", heading, paper, _arrow(*(validation[nll] for validation in validations)), ""]
            for heading, nll, paper in (("NLL", "nll", paper_nll), ("NLL of the same events", "comparable_nll", ""))
            if all(nll in validation for validation in validations)
        ]
    lines = []
    for number, test in enumerate(results["scores"]):
        for key, column in product(compared, experiment.compared_columns):
            measure, name, baseline = experiment.columns[column], rows[key]["name"], rows[key]["baseline"]
            systems = [_of_row(results, test, "systems", row) for row in (rows[baseline]["name"], name)]
            pairs = zip(*systems, strict=False)  # for each seed that both have: the two systems
            ours = [mean(system["scores"][measure]["score"] for system in seeds) for seeds in zip(*pairs, strict=True)]
            paper = _paper_difference(experiment, column) if not number and baseline == first else ""
            _, interval = _difference(results, test, name, rows[baseline]["name"], measure)
            lines.append([f"{title}, {name}", test, column, paper, _arrow(*ours), interval])
    return lines


def _paper_difference(experiment: Experiment, column: str) -> str:
    """The paper's two numbers in a column; empty if it does not have two."""
    numbers = [numbers[column] for numbers in experiment.paper_numbers.values() if column in numbers]
    return _arrow(*numbers) if len(numbers) == 2 else ""


def _arrow(first: float, second: float) -> str:
    return f"{first:.2f} → {second:.2f} ({second - first:+.2f})"


def _titled(table: Table) -> str:
    return f"### {table.title}\n\n{table.markdown()}"


def main_table(results: Mapping[str, Any]) -> Table:
    """The scores on the first test set, or the table of the training if nothing was generated."""
    experiment = EXPERIMENTS[results["experiment"]]
    tests = list(results["scores"])
    return _scores(experiment, results, tests[0]) if tests else _training(experiment, results)


def _scores(experiment: Experiment, results: Mapping[str, Any], test: str) -> Table:
    """The paper's rows, only for the recipe's own test set, then ours: with several seeds mean and deviation."""
    paper_numbers = experiment.paper_numbers if test == next(iter(results["scores"])) else {}
    rows = [
        [f"*the paper: {name}*", *(f"{numbers[c]:.2f}" if c in numbers else "" for c in experiment.columns)]
        for name, numbers in paper_numbers.items()
    ]
    names = {row["key"]: row["name"] for row in results["rows"]}
    rivals = {names[key]: heading for key, heading in experiment.rivals.items() if key in names}
    baselines = [None, *rivals]  # None: the first row of a row's group
    against = [
        f"{column} against {heading}"
        for heading in ["the first", *rivals.values()]
        for column in experiment.compared_columns
    ]
    for row in results["rows"]:
        systems = _of_row(results, test, "systems", row["name"])
        scores = [system["scores"] for system in systems]
        cells = [
            _mean((score.get(measure, {}).get("score") for score in scores), 0 if column in COUNTS else 2)
            for column, measure in experiment.columns.items()
        ]
        differences = [
            _difference(results, test, row["name"], baseline or names[row["baseline"]], experiment.columns[column])
            for baseline in baselines
            for column in experiment.compared_columns
        ]
        rows.append([row["name"], *cells, *(" ".join(difference).strip() for difference in differences)])
    examples = next(iter(results["scores"][test].values()))[0]["examples"]
    spread = "; ±: standard deviation over seeds" if any(row["seeds"] > 1 for row in results["rows"]) else ""
    rows = [[*row, *[""] * (1 + len(experiment.columns) + len(against) - len(row))] for row in rows]
    return Table(f"{test}: {examples:,} examples{spread}", ["", *experiment.columns, *against], rows)


def _of_row(results: Mapping[str, Any], test: str, kind: str, name: str) -> list[dict[str, Any]]:
    """The entries on one row in the reports of a test set, seed by seed; `kind` is `systems` or `comparisons`."""
    reports = [report for seed in results["scores"][test].values() for report in seed]
    return [entry for report in reports for entry in report[kind] if name == entry.get("system", entry.get("name"))]


def _difference(results: Mapping[str, Any], test: str, name: str, baseline: str, measure: str) -> tuple[str, str]:
    """How far a row is above a baseline, and how certain that is.

    The second text has p, and with one seed the interval, with several seeds the difference of each.
    """
    comparisons = [entry for entry in _of_row(results, test, "comparisons", name) if entry["baseline"] == baseline]
    seeds = [entry["scores"][measure] for entry in comparisons if measure in entry["scores"]]
    if not seeds:
        return (NOT_DEFINED if comparisons else "", "")
    sizes = [f"{seed['difference']:+.2f}" for seed in seeds]
    p = f"p {' / '.join(p_text(seed['p_randomisation']) for seed in seeds)}"
    if len(seeds) == 1:
        return sizes[0], f"[{seeds[0]['low']:+.1f}, {seeds[0]['high']:+.1f}], {p}"
    return f"{mean(seed['difference'] for seed in seeds):+.2f}", f"of {' / '.join(sizes)}, {p}"


def _training(experiment: Experiment, results: Mapping[str, Any]) -> Table:
    """Every run's validation at the tested update, and the update at which it reached the baseline's best NLL."""
    rows = [
        [f"*the paper: {name}*", f"{numbers['dev NLL']:.2f}", "", "", f"{numbers['updates']:,.0f}", "", ""]
        for name, numbers in experiment.paper_numbers.items()
        if "dev NLL" in numbers
    ]
    scores = {"bleu": "dev BLEU, greedy", "rouge": "dev ROUGE-L, greedy"}
    score = next((name for run in results["runs"].values() for name in scores if name in run["curve"][0]), "none")
    for row in _rows_with_runs(results):
        runs = _runs(results, row["key"], row["seeds"])
        baselines = _runs(results, row["baseline"], row["seeds"])
        validations = [_tested_validation(run) for run in runs]
        cells = [_mean(point.get(name) for point in validations) for name in ("nll", "comparable_nll", score)]
        passed = mean(_passes_baseline(run, baseline) for run, baseline in zip(runs, baselines, strict=True))
        cells += [f"{mean(run['best_update'] for run in runs):,.0f}"]
        cells += [f"{passed:,.0f}" if math.isfinite(passed) else NOT_DEFINED]
        rows.append([row["name"], *cells, f"{mean(run[TIMES[experiment.curves_by]] for run in runs):.0f}"])
    header = ["", "dev NLL", "of the same events", scores.get(score, "dev score"), "tested after updates"]
    header += ["updates to the first's best", LABELS[TIMES[experiment.curves_by]]]
    return Table("Training", header, rows)


def _tested_validation(run: Mapping[str, Any]) -> dict[str, Any]:
    """The validation of the weights that were tested: the best ones."""
    validation: dict[str, Any] = next(point for point in run["curve"] if point["update"] == run["best_update"])
    return validation


def _rows_with_runs(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that have runs of their own."""
    return [row for row in results["rows"] if row["run"] == row["key"]]


def _runs(results: Mapping[str, Any], key: str, seeds: int) -> list[dict[str, Any]]:
    return [results["runs"][f"{key}-{seed}"] for seed in range(1, seeds + 1)]


def _passes_baseline(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> float:
    """The update of the first validation whose comparable NLL is as low as the baseline's lowest; inf if none is."""
    ours, theirs = (_points(side["curve"], "comparable_nll") for side in (run, baseline))
    lowest = min((nll for _, nll in theirs), default=-math.inf)
    return next((update for update, nll in ours if nll <= lowest), math.inf)


def _points(curve: Sequence[Mapping[str, Any]], measure: str, by: str = "update") -> list[tuple[float, float]]:
    """(update, value) of the validations that have the measure."""
    return [(point[by], point[measure]) for point in curve if point.get(measure) is not None]


def _mean(values: Iterable[float | None], digits: int = 2) -> str:
    defined = [value for value in values if value is not None]
    return mean_and_spread(defined, digits) if defined else NOT_DEFINED


def curves_by(results: Mapping[str, Any]) -> tuple[str, str]:
    """What the learning curves are drawn over: its name in results.json, and the axis' label."""
    measure = EXPERIMENTS[results["experiment"]].curves_by
    return measure, LABELS[measure]


def panels(results: Mapping[str, Any]) -> dict[str, dict[str, list[list[tuple[float, float]]]]]:
    """The learning curves of all runs, by measure and row, in the form that `plots.learning_curves` takes."""
    by_title: dict[str, dict[str, list[list[tuple[float, float]]]]] = {}
    for title, measure in CURVES.items():
        for row in _rows_with_runs(results):
            runs = _runs(results, row["key"], row["seeds"])
            curves = [_points(run["curve"], measure, curves_by(results)[0]) for run in runs]
            if all(curves):
                by_title.setdefault(title, {})[row["name"]] = curves
    return by_title


def _examples(values: Mapping[str, Any]) -> str:
    """Example outputs, as in the paper's Table 4; copied words are bold in the output and in the source."""
    examples = values["examples"]
    if not examples:
        return "### Outputs\n\nNo output copied a word."
    quantiles = ", ".join(f"{example['quantile']:.0%}" for example in examples)
    rule = (
        f"Of the {examples[0]['of']:,} outputs on {values['test']} that copied a word, in the order of their "
        f"chrF, those at {quantiles} of the way from the worst to the best."
    )
    rows = []
    for example in examples:
        groups = groupby(example["source"], itemgetter(1))
        pieces = [(copied, "".join(text for text, _ in group)) for copied, group in groups]
        source = "".join(_bold(text) if copied else _escaped(text) for copied, text in pieces)
        rows.append([f"**source, line {example['line']}**", source])
        rows.append(["reference", _escaped(example["reference"])])
        for name, words in example["outputs"].items():
            output = " ".join(_escaped(text) if origin == "shortlist" else _bold(text) for text, origin in words)
            rows.append([name, output or NOT_DEFINED])
    table = Table("", ["", ""], rows).markdown().replace("|---:|", "|---|")
    return f"### Outputs, copied words in bold\n\n{rule}\n\n{table}"


def _bold(text: str) -> str:
    return f"**{_escaped(text)}**"


def _escaped(text: str) -> str:
    """Text with escapes, so that Markdown shows it as it is in a table."""
    return re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", " ".join(re.split(r"\s+", text)))


def _corpora(results: Mapping[str, Any]) -> Table:
    """Statistics of our corpora, the same as the paper gives of its own."""
    rows = []
    for name, corpus in results["corpora"].items():
        first = next(
            row["name"] for row in _rows_with_runs(results) if _runs(results, row["key"], 1)[0]["corpus"] == name
        )
        for split, numbers in corpus["splits"].items():
            few = numbers["unknown_share"] * numbers["target_tokens"] < TOO_FEW_UNKNOWN
            reached = NOT_DEFINED if few else f"{numbers['reached_by_same_word_or_dictionary']:.1%}"
            cells = [f"{numbers['pairs']:,}", f"{numbers['pointers_per_100']:.1f}", f"{numbers['unknown_share']:.2%}"]
            rows.append([f"{split}, of {first}", *cells, reached])
    header = ["", "pairs", "pointers per 100", "target words outside the shortlist"]
    header += ["of those, in the source or its words' translations"]
    return Table("Corpora", header, rows)


def _provenance(results: Mapping[str, Any]) -> str:
    """The command and the versions that made the results."""
    about = results["made_by"]
    versions = f"pointing {about['pointing']}, torch {about['torch']}, Python {about['python']}, {about['machine']}"
    return f"Made by `{results['command']}` with {versions}."
