"""results.json → Markdown: the paper's numbers beside ours, curves, examples, how it was made. Nothing is measured."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

from pointing.evaluation.report import NOT_DEFINED, p_text
from pointing.reproduce.experiments import EXPERIMENTS, Experiment
from pointing.reproduce.results import EXAMPLES
from pointing.system.tables import Table, mean_and_spread

COUNTS = {"UNKs left"}
CURVES = {  # a panel's title → what the validations call it
    "dev NLL a sentence": "nll",
    "dev NLL of the same events": "comparable_nll",
    "dev BLEU, greedy": "bleu",
    "dev ROUGE-L F1, greedy": "rouge",
}
FEW = 10  # unknown words, of which no share is told; subwords leave hardly any
NOTES = "notes.md"  # what people have to say about results, written by hand


def section(results: Mapping[str, Any], folder: Path, seen: str) -> str:
    """One experiment on one recipe; what else it shows is in `folder`, which is at `seen` for readers of the page."""
    experiment = EXPERIMENTS[results["experiment"]]
    parts = [f"## {experiment.title}: {results['recipe']} (paper {experiment.where})"]
    if (folder / NOTES).exists():
        parts.append((folder / NOTES).read_text(encoding="utf-8").strip())
    parts += [_shown(_scores(experiment, results, test)) for test in results["scores"]]
    parts += [_shown(_training(experiment, results)), f"![learning curves]({seen}/curves.png)"]
    if (folder / EXAMPLES).exists():
        parts.append(_examples(json.loads((folder / EXAMPLES).read_text(encoding="utf-8"))))
    parts += [_shown(_corpora(results)), _how(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def in_short(results: Mapping[str, Any]) -> list[list[str]]:
    """Pointer softmaxes against the softmax, in the paper and here: a line a measure; none if that is missing."""
    experiment = EXPERIMENTS[results["experiment"]]
    rows = {row["key"]: row for row in results["rows"]}
    title = f"{experiment.title}: {results['recipe']}"
    first, *others = experiment.shows
    others = [key for key in others if key in rows]
    if first not in rows or not others:
        return []
    if not results["scores"]:
        tested = [_tested(_runs(results, key, 1)[0]) for key in (first, *others)]
        name, printed = f"{title}, {rows[others[0]]['name']}", _printed(experiment, "dev NLL")
        return [
            [name, "dev", what, paper, _arrow(*(one[nll] for one in tested)), ""]
            for what, nll, paper in (("NLL", "nll", printed), ("NLL of the same events", "comparable_nll", ""))
            if all(nll in one for one in tested)
        ]
    lines = []
    for number, test in enumerate(results["scores"]):
        for key, column in product(others, experiment.compared):
            measure, name, baseline = experiment.shown[column], rows[key]["name"], rows[key]["baseline"]
            systems = [_told(results, test, "systems", one) for one in (rows[baseline]["name"], name)]
            pairs = zip(*systems, strict=False)  # of the seeds that both have
            ours = [mean(one["scores"][measure]["score"] for one in seeds) for seeds in zip(*pairs, strict=True)]
            paper = _printed(experiment, column) if not number and baseline == first else ""
            _, sure = _difference(results, test, name, rows[baseline]["name"], measure)
            lines.append([f"{title}, {name}", test, column, paper, _arrow(*ours), sure])
    return lines


def _printed(experiment: Experiment, column: str) -> str:
    """The paper's two figures."""
    paper = [numbers[column] for numbers in experiment.printed.values() if column in numbers]
    return _arrow(*paper) if len(paper) == 2 else ""


def _arrow(first: float, second: float) -> str:
    return f"{first:.2f} → {second:.2f} ({second - first:+.2f})"


def _shown(table: Table) -> str:
    return f"### {table.title}\n\n{table.markdown()}"


def main_table(results: Mapping[str, Any]) -> Table:
    """The first test set's scores, or how the runs ended if nothing was generated."""
    experiment = EXPERIMENTS[results["experiment"]]
    tests = list(results["scores"])
    return _scores(experiment, results, tests[0]) if tests else _training(experiment, results)


def _scores(experiment: Experiment, results: Mapping[str, Any], test: str) -> Table:
    """The paper's rows beside the recipe's own test set, then ours; of several seeds the mean and the deviation."""
    printed = experiment.printed if test == next(iter(results["scores"])) else {}
    rows = [
        [f"*the paper: {name}*", *(f"{numbers[c]:.2f}" if c in numbers else "" for c in experiment.shown)]
        for name, numbers in printed.items()
    ]
    names = {row["key"]: row["name"] for row in results["rows"]}
    rivals = {names[key]: called for key, called in experiment.rivals.items() if key in names}
    baselines = [None, *rivals]  # None: the first of a row's group
    against = [
        f"{column} against {called}" for called in ["the first", *rivals.values()] for column in experiment.compared
    ]
    for row in results["rows"]:
        systems = _told(results, test, "systems", row["name"])
        cells = [_cell([s["scores"].get(measure) for s in systems], c) for c, measure in experiment.shown.items()]
        differences = [
            _difference(results, test, row["name"], baseline or names[row["baseline"]], experiment.shown[column])
            for baseline in baselines
            for column in experiment.compared
        ]
        rows.append([row["name"], *cells, *(" ".join(told).strip() for told in differences)])
    examples = next(iter(results["scores"][test].values()))[0]["examples"]
    spread = "; ±: standard deviation over seeds" if any(row["seeds"] > 1 for row in results["rows"]) else ""
    rows = [[*row, *[""] * (1 + len(experiment.shown) + len(against) - len(row))] for row in rows]
    return Table(f"{test}: {examples:,} examples{spread}", ["", *experiment.shown, *against], rows)


def _told(results: Mapping[str, Any], test: str, kind: str, name: str) -> list[dict[str, Any]]:
    """What the reports say of a row, seed by seed: in their `systems`, or in their `comparisons` with others."""
    reports = [report for seed in results["scores"][test].values() for report in seed]
    return [one for report in reports for one in report[kind] if name == one.get("system", one.get("name"))]


def _cell(scores: Sequence[Mapping[str, Any] | None], column: str) -> str:
    found = [one["score"] for one in scores if one is not None and one["score"] is not None]
    return mean_and_spread(found, 0 if column in COUNTS else 2) if found else NOT_DEFINED


def _difference(results: Mapping[str, Any], test: str, name: str, baseline: str, measure: str) -> tuple[str, str]:
    """By how much a row is above another one, and how sure that is: of one seed its interval, of several each; p."""
    told = [one for one in _told(results, test, "comparisons", name) if one["baseline"] == baseline]
    those = [one["scores"][measure] for one in told if measure in one["scores"]]
    if not those:
        return (NOT_DEFINED if told else "", "")
    sizes = [f"{one['difference']:+.2f}" for one in those]
    p = f"p {' / '.join(p_text(one['p_randomisation']) for one in those)}"
    if len(those) == 1:
        return sizes[0], f"[{those[0]['low']:+.1f}, {those[0]['high']:+.1f}], {p}"
    return f"{mean(one['difference'] for one in those):+.2f}", f"of {' / '.join(sizes)}, {p}"


def _training(experiment: Experiment, results: Mapping[str, Any]) -> Table:
    """Every run's validation at the update that is tested, and when it passed the best of the first row's run."""
    rows = [
        [f"*the paper: {name}*", f"{numbers['dev NLL']:.2f}", "", "", f"{numbers['updates']:,.0f}", "", ""]
        for name, numbers in experiment.printed.items()
        if "dev NLL" in numbers
    ]
    scores = {"bleu": "dev BLEU, greedy", "rouge": "dev ROUGE-L, greedy"}
    score = next((name for run in results["runs"].values() for name in scores if name in run["curve"][0]), "none")
    for row in _trained(results):
        runs = _runs(results, row["key"], row["seeds"])
        baselines = _runs(results, row["baseline"], row["seeds"])
        tested = [_tested(run) for run in runs]
        passed = [_passed(run, baseline) for run, baseline in zip(runs, baselines, strict=True)]
        rows.append(
            [
                row["name"],
                _mean(tested, "nll", 2),
                _mean(tested, "comparable_nll", 2),
                _mean(tested, score, 2),
                f"{mean(run['best_update'] for run in runs):,.0f}",
                NOT_DEFINED
                if any(one is None for one in passed)
                else f"{mean(one for one in passed if one is not None):,.0f}",
                f"{mean(run['minutes'] for run in runs):.0f}",
            ]
        )
    header = ["", "dev NLL", "of the same events", scores.get(score, "dev score"), "tested after updates"]
    header += ["updates to the first's best", "minutes"]
    return Table("Training", header, rows)


def _tested(run: Mapping[str, Any]) -> dict[str, Any]:
    """The validation whose weights were kept."""
    tested: dict[str, Any] = next(point for point in run["curve"] if point["update"] == run["best_update"])
    return tested


def _trained(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that have runs of their own."""
    return [row for row in results["rows"] if row["run"] == row["key"]]


def _runs(results: Mapping[str, Any], key: str, seeds: int) -> list[dict[str, Any]]:
    return [results["runs"][f"{key}-{seed}"] for seed in range(1, seeds + 1)]


def _passed(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> int | None:
    """The first validation at which a run's comparable NLL is as low as the baseline's lowest."""
    theirs, ours = ([p for p in one["curve"] if p.get("comparable_nll") is not None] for one in (baseline, run))
    lowest = min((point["comparable_nll"] for point in theirs), default=-math.inf)
    return next((point["update"] for point in ours if point["comparable_nll"] <= lowest), None)


def _mean(points: Sequence[Mapping[str, Any]], name: str, digits: int) -> str:
    values = [point[name] for point in points if point.get(name) is not None]
    return mean_and_spread(values, digits) if values else NOT_DEFINED


def panels(results: Mapping[str, Any]) -> dict[str, dict[str, list[list[tuple[float, float]]]]]:
    """The curves of all runs, by measure and row, as `plots.learning_curves` takes them."""
    found: dict[str, dict[str, list[list[tuple[float, float]]]]] = {}
    for title, measure in CURVES.items():
        for row in _trained(results):
            runs = [run["curve"] for run in _runs(results, row["key"], row["seeds"])]
            curves = [[(p["update"], p[measure]) for p in curve if p.get(measure) is not None] for curve in runs]
            if all(curves):
                found.setdefault(title, {})[row["name"]] = curves
    return found


def _examples(told: Mapping[str, Any]) -> str:
    """The paper's Table 4: copied words in bold, in the output and in the source."""
    if not told["examples"]:
        return "### Outputs\n\nNo output copied a word."
    places = ", ".join(f"{one['quantile']:.0%}" for one in told["examples"])
    rule = (
        f"Of the {told['examples'][0]['of']:,} outputs on {told['test']} that copied a word, in the order of their "
        f"chrF, those at {places} of the way from the worst to the best."
    )
    rows = []
    for one in told["examples"]:
        pieces = [(copied, "".join(text for text, _ in some)) for copied, some in groupby(one["source"], itemgetter(1))]
        source = "".join(_bold(text) if copied else _plain(text) for copied, text in pieces)
        rows.append([f"**source, line {one['line']}**", source])
        rows.append(["reference", _plain(one["reference"])])
        for name, words in one["outputs"].items():
            shown = " ".join(_plain(text) if origin == "shortlist" else _bold(text) for text, origin in words)
            rows.append([name, shown or NOT_DEFINED])
    table = Table("", ["", ""], rows).markdown().replace("|---:|", "|---|")
    return f"### Outputs, copied words in bold\n\n{rule}\n\n{table}"


def _bold(text: str) -> str:
    return f"**{_plain(text)}**"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, in a table."""
    return re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", " ".join(re.split(r"\s+", text)))


def _corpora(results: Mapping[str, Any]) -> Table:
    """The paper's own statistics of its data."""
    rows = []
    for name, corpus in results["corpora"].items():
        first = next(row["name"] for row in _trained(results) if _runs(results, row["key"], 1)[0]["corpus"] == name)
        for split, some in corpus["splits"].items():
            rows.append(
                [
                    f"{split}, of {first}",
                    f"{some['pairs']:,}",
                    f"{some['pointers_per_100']:.1f}",
                    f"{some['unknown_share']:.2%}",
                    NOT_DEFINED
                    if some["unknown_share"] * some["target_tokens"] < FEW
                    else f"{some['reached_by_same_word_or_dictionary']:.1%}",
                ]
            )
    header = [
        "",
        "pairs",
        "pointers per 100",
        "target words outside the shortlist",
        "of those, in the source or its words' translations",
    ]
    return Table("Corpora", header, rows)


def _how(results: Mapping[str, Any]) -> str:
    made = results["made_by"]
    versions = f"pointing {made['pointing']}, torch {made['torch']}, Python {made['python']}, {made['machine']}"
    return f"Made by `{results['command']}` with {versions}."
