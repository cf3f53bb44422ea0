"""The scores of several systems with their intervals and their differences, as a table, JSON and Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pointing.errors import Misuse
from pointing.evaluation import plots, significance
from pointing.evaluation.copy_metrics import Bin
from pointing.evaluation.significance import Comparison, Interval, Measure, Resampling
from pointing.evaluation.span_metrics import INVENTED, LOST
from pointing.generation.output import Output
from pointing.system.border import read_object
from pointing.system.files import write_text
from pointing.system.progress import track
from pointing.system.tables import Table

REPORT, RESULTS, PICTURE = "report.md", "results.json", "reliability.png"
SIGNIFICANCE_LEVEL = 0.05
COUNTS = (
    "words invented",
    "UNKs left",
    LOST,
    INVENTED,
)  # measures that are counts; the others are in percent, or per 100 outputs
AS_IT_IS = "as it is"  # the form of text that is not normalised
NOT_DEFINED = "–"  # a table's cell for a score that is not defined or was not computed


@dataclass(frozen=True, eq=False)
class Scored:
    """The outputs of a system and their measures."""

    name: str
    outputs: Sequence[Output | str]
    measures: Sequence[Measure]
    bins: tuple[Bin, ...] | None = None  # of the reliability plot, for a run with a switch
    generated: bool = False  # True: a run of ours wrote the outputs, and `Report.write` keeps them
    about: Mapping[str, Any] | None = None  # more entries for JSON


class Difference(NamedTuple):
    """A system's score against the first system's: by the paired bootstrap, and by approximate randomisation."""

    bootstrap: Comparison
    p_randomisation: float

    @property
    def significant(self) -> bool:
        return self.p_randomisation < SIGNIFICANCE_LEVEL

    def json(self) -> dict[str, Any]:
        sizes = {name: getattr(self.bootstrap, name) for name in ("difference", "low", "high", "better")}
        return {**sizes, "p_bootstrap": self.bootstrap.p_value, "p_randomisation": self.p_randomisation}


def compare(
    systems: Sequence[Scored],
    *,
    about: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    resampling: Resampling | None = None,
) -> Report:
    """Intervals of all scores, and differences from those of the first system that were computed in the same way."""
    resamples, trials, seed = how = resampling or Resampling()
    bounds = [
        significance.intervals(system.measures, resamples, seed)
        for system in track(systems, "intervals of the scores", len(systems), "systems")
    ]
    differences = []
    for system in track(systems[1:], "comparing with the first", len(systems) - 1, "systems"):
        same = {measure.signature: measure for measure in systems[0].measures}
        ours = [measure for measure in system.measures if measure.signature in same]
        theirs = [same[measure.signature] for measure in ours]
        comparisons = significance.paired_bootstrap(ours, theirs, resamples, seed) if ours else []
        p_values = significance.paired_randomisation(ours, theirs, trials, seed) if ours else []
        tests = zip(ours, comparisons, p_values, strict=True)
        differences.append({m.name: Difference(c, p) for m, c, p in tests if c is not None and p is not None})
    return Report(list(systems), bounds, differences, list(notes), {**(about or {}), **how._asdict()})


@dataclass(frozen=True, eq=False)
class Report:
    """The result of an evaluation."""

    systems: list[Scored]
    intervals: list[list[Interval | None]]  # of the measures of each system
    differences: list[dict[str, Difference]]  # of each system but the first, by the name of the measure
    notes: list[str]
    about: dict[str, Any]

    def table(self) -> Table:
        """A row for each measure, a column for each system: score [interval], * if it differs from the first's."""
        columns: list[dict[str, str]] = []
        for system, bounds, differences in zip(self.systems, self.intervals, [{}, *self.differences], strict=True):
            cells = {m.name: _cell(m, interval) for m, interval in zip(system.measures, bounds, strict=True)}
            marked = {name: f"{cells[name]} *" for name, difference in differences.items() if difference.significant}
            columns.append(cells | marked)
        rows = [[name, *(column.get(name, NOT_DEFINED) for column in columns)] for name in self._names()]
        data = f", {self.about['data']}" if self.about.get("data") else ""
        title = f"{len(self.systems[0].outputs):,} examples{data}; score [95 % interval]"
        if self.differences:
            title += f"; * differs from {self.systems[0].name} (approximate randomisation, p < {SIGNIFICANCE_LEVEL})"
        return Table(title, ["", *(system.name for system in self.systems)], rows)

    def differences_table(self) -> Table:
        """How much each further system scores above the first one, with interval and p-values."""
        columns = [{name: _difference(name, d) for name, d in of_system.items()} for of_system in self.differences]
        names = [name for name in self._names() if any(name in column for column in columns)]
        rows = [[name, *(column.get(name, NOT_DEFINED) for column in columns)] for name in names]
        title = f"minus {self.systems[0].name}: difference [95 % interval], p by paired bootstrap / randomisation"
        return Table(title, ["", *(system.name for system in self.systems[1:])], rows)

    def forms(self) -> list[str]:
        """In which form text was compared, as a sentence; none if that is not known."""
        text, copies = self.about.get("form"), self.about.get("copy_form")
        if text is None:
            return []
        if text != AS_IT_IS:
            return [f"text is compared in the form {text}, but for exact match: that is of the text as it is delivered"]
        words = "" if copies == AS_IT_IS else f", the words of copy measures in the form {copies}"
        return [f"text is compared as it is delivered{words}"]

    def signatures(self) -> list[str]:
        """How each score was computed: `name|how`, or `name, name, …|how` if several were computed in the same way."""
        names: dict[str, dict[str, None]] = {}
        for signature in (measure.signature for system in self.systems for measure in system.measures):
            name, _, how = signature.partition("|")
            names.setdefault(how, {})[name] = None
        return [f"{', '.join(same)}|{how}" for how, same in names.items()]

    def json(self) -> dict[str, Any]:
        systems = []
        for system, bounds in zip(self.systems, self.intervals, strict=True):
            scores = {m.name: _json(m, interval) for m, interval in zip(system.measures, bounds, strict=True)}
            bins = None if system.bins is None else [bin._asdict() for bin in system.bins]
            systems.append({"name": system.name, **(system.about or {}), "scores": scores, "reliability": bins})
        comparisons = []
        for system, differences in zip(self.systems[1:], self.differences, strict=True):
            of_system = {name: difference.json() for name, difference in differences.items()}
            comparisons.append({"system": system.name, "baseline": self.systems[0].name, "scores": of_system})
        return {**self.about, "systems": systems, "comparisons": comparisons, "notes": self.notes}

    def markdown(self, picture: str | None = None) -> str:
        """The report as a page; `picture` is the file of the reliability plot."""
        tables = [("# Evaluation", self.table())]
        if self.differences:
            tables.append(("## Differences", self.differences_table()))
        parts = [f"{heading}\n\n{table.title}\n\n{table.markdown()}" for heading, table in tables]
        if picture is not None:
            parts.append(f"## The switch\n\n![how often the shortlist was right, by d_t]({picture})\n")
        if notes := [*self.forms(), *self.notes]:
            parts.append("## Notes\n\n" + "".join(f"- {note}\n" for note in notes))
        parts.append("## How it was computed\n\n" + "".join(f"- `{line}`\n" for line in self.signatures()))
        return "\n".join(parts)

    def write(self, folder: Path) -> list[str]:
        """Writes report.md, results.json, each run's outputs (NAME.txt) and reliability.png; returns their names."""
        texts: dict[str, str] = {}
        for name, system in zip(_names_of_texts([each.name for each in self.systems]), self.systems, strict=True):
            if system.generated:
                texts[name] = "".join(f"{o if isinstance(o, str) else o.text}\n" for o in system.outputs)
        bins = {system.name: system.bins for system in self.systems if system.bins is not None}
        picture = PICTURE if bins and plots.installed() else None
        if picture is not None:
            plots.reliability(folder / picture, bins)
        results = json.dumps(self.json(), ensure_ascii=False, indent=1)
        files = {REPORT: self.markdown(picture), RESULTS: f"{results}\n", **texts}
        for name, text in files.items():
            write_text(folder / name, text)
        return [*files, *([] if picture is None else [picture])]

    def _names(self) -> list[str]:
        return list(dict.fromkeys(measure.name for system in self.systems for measure in system.measures))


def read_scores(run: Path) -> dict[str, dict[str, Any]]:
    """What `pointing evaluate RUN --out RUN/evaluation` found, or `--out RUN`: measure → score, interval, signature."""
    path = next((place for place in (run / RESULTS, run / "evaluation" / RESULTS) if place.is_file()), None)
    if path is None:
        return {}
    try:
        scores = read_object(path, "results")["systems"][0]["scores"]
        return {str(measure): dict(values) for measure, values in scores.items()}
    except (Misuse, LookupError, TypeError, ValueError, AttributeError):
        return {}  # a file of that name that something else wrote


def names_of_report(systems: Sequence[str]) -> list[str]:
    """The files that a report of systems with these names may have."""
    return [REPORT, RESULTS, PICTURE, *_names_of_texts(systems)]


def _names_of_texts(systems: Sequence[str]) -> list[str]:
    names: list[str] = []
    for number, system in enumerate(systems, 1):
        name = re.sub(r"[^\w.+-]+", "-", system)
        names.append(f"{name}.txt" if f"{name}.txt" not in names else f"{name}-{number}.txt")
    return names


def _cell(measure: Measure, interval: Interval | None) -> str:
    if measure.score is None:
        return NOT_DEFINED
    digits = 0 if measure.name in COUNTS else 1
    bounds = "" if interval is None else f" [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"
    return f"{measure.score:,.{digits}f}{bounds}"


def _difference(name: str, difference: Difference) -> str:
    digits, comparison = 0 if name in COUNTS else 1, difference.bootstrap
    size, low, high = (f"{number:+,.{digits}f}" for number in comparison[:3])
    return f"{size} [{low}, {high}], p {p_text(comparison.p_value)} / {p_text(difference.p_randomisation)}"


def p_text(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def _json(measure: Measure, interval: Interval | None) -> dict[str, Any]:
    low, high = (None, None) if interval is None else interval[:2]
    return {"score": measure.score, "low": low, "high": high, "signature": measure.signature}
