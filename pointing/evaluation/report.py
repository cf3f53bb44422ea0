"""Systems' scores side by side: an interval for each, the others against the first; a table, JSON, Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pointing.evaluation import plots
from pointing.evaluation.copy_metrics import Bin
from pointing.evaluation.significance import (
    RESAMPLES,
    SEED,
    TRIALS,
    Comparison,
    Interval,
    Measure,
    intervals,
    paired_bootstrap,
    paired_randomisation,
)
from pointing.generation.output import Output
from pointing.system.files import write_text
from pointing.system.progress import track
from pointing.system.tables import Table

SIGNIFICANT = 0.05
COUNTS = ("words invented", "UNKs left")  # the others are in percent, or for 100 outputs
NONE = "–"


@dataclass(frozen=True, eq=False)
class Scored:
    """One system's outputs and what they are scored by."""

    name: str
    outputs: Sequence[Output | str]
    measures: Sequence[Measure]
    bins: tuple[Bin, ...] | None = None  # of the reliability plot, for a run with a switch
    generated: bool = False  # by a run of ours: then the outputs are kept
    about: Mapping[str, Any] | None = None  # more to be told in JSON


class Difference(NamedTuple):
    """A system's score against the first system's: by the paired bootstrap, and by approximate randomisation."""

    bootstrap: Comparison
    p_randomisation: float

    @property
    def significant(self) -> bool:
        return self.p_randomisation < SIGNIFICANT

    def json(self) -> dict[str, Any]:
        found = self.bootstrap
        sizes = {"difference": found.difference, "low": found.low, "high": found.high, "better": found.better}
        return {**sizes, "p_bootstrap": found.p_value, "p_randomisation": self.p_randomisation}


def compare(
    systems: Sequence[Scored],
    *,
    about: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
    seed: int = SEED,
) -> Report:
    """Intervals of every score; differences from the first system wherever a score was computed in the same way."""
    found = [
        intervals(system.measures, resamples, seed)
        for system in track(systems, "intervals of the scores", len(systems), "systems")
    ]
    differences = []
    for system in track(systems[1:], "comparing with the first", len(systems) - 1, "systems"):
        same = {measure.signature: measure for measure in systems[0].measures}
        ours = [measure for measure in system.measures if measure.signature in same]
        theirs = [same[measure.signature] for measure in ours]
        tests = zip(
            ours,
            paired_bootstrap(ours, theirs, resamples, seed) if ours else [],
            paired_randomisation(ours, theirs, trials, seed) if ours else [],
            strict=True,
        )
        differences.append({m.name: Difference(c, p) for m, c, p in tests if c is not None and p is not None})
    how = {"resamples": resamples, "trials": trials, "seed": seed}
    return Report(list(systems), found, differences, list(notes), {**(about or {}), **how})


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that was found; shown as a table, as JSON, as Markdown."""

    systems: list[Scored]
    intervals: list[list[Interval | None]]  # of every system's measures
    differences: list[dict[str, Difference]]  # of every system but the first, by the measures' names
    notes: list[str]
    about: dict[str, Any]

    def table(self) -> Table:
        """A row a measure, a column a system: score [interval], and * where it differs from the first system's."""
        columns: list[dict[str, str]] = []
        for number, (system, found) in enumerate(zip(self.systems, self.intervals, strict=True)):
            cells = {m.name: _cell(m, interval) for m, interval in zip(system.measures, found, strict=True)}
            differs = [name for name, d in self.differences[number - 1].items() if d.significant] if number else []
            columns.append(cells | {name: f"{cells[name]} *" for name in differs})
        rows = [[name, *(column.get(name, NONE) for column in columns)] for name in self._names()]
        title = f"{len(self.systems[0].outputs):,} examples; score [95 % interval]"
        if self.differences:
            title += f"; * differs from {self.systems[0].name} (approximate randomisation, p < {SIGNIFICANT})"
        return Table(title, ["", *(system.name for system in self.systems)], rows)

    def differences_table(self) -> Table:
        """By how much each further system's score is above the first one's, and how sure that is."""
        columns = [{name: _difference(name, d) for name, d in found.items()} for found in self.differences]
        names = [name for name in self._names() if any(name in column for column in columns)]
        rows = [[name, *(column.get(name, NONE) for column in columns)] for name in names]
        title = f"minus {self.systems[0].name}: difference [95 % interval], p by paired bootstrap / randomisation"
        return Table(title, ["", *(system.name for system in self.systems[1:])], rows)

    def signatures(self) -> list[str]:
        """How each score was computed: `name, name, …|how`, those that share all but the name together."""
        names: dict[str, dict[str, None]] = {}
        for signature in (measure.signature for system in self.systems for measure in system.measures):
            name, _, how = signature.partition("|")
            names.setdefault(how, {})[name] = None
        return [f"{', '.join(those)}|{how}" for how, those in names.items()]

    def json(self) -> dict[str, Any]:
        systems = []
        for system, found in zip(self.systems, self.intervals, strict=True):
            scores = {m.name: _json(m, interval) for m, interval in zip(system.measures, found, strict=True)}
            bins = None if system.bins is None else [one._asdict() for one in system.bins]
            systems.append({"name": system.name, **(system.about or {}), "scores": scores, "reliability": bins})
        comparisons = [
            {
                "system": system.name,
                "baseline": self.systems[0].name,
                "scores": {name: difference.json() for name, difference in found.items()},
            }
            for system, found in zip(self.systems[1:], self.differences, strict=True)
        ]
        return {**self.about, "systems": systems, "comparisons": comparisons, "notes": self.notes}

    def markdown(self, picture: str | None = None) -> str:
        """The report as a page, with the reliability plot's file if there is one."""
        shown = [("# Evaluation", self.table())]
        if self.differences:
            shown.append(("## Differences", self.differences_table()))
        parts = [f"{heading}\n\n{table.title}\n\n{table.markdown()}" for heading, table in shown]
        if picture is not None:
            parts.append(f"## The switch\n\n![how often the shortlist was right, by d_t]({picture})\n")
        if self.notes:
            parts.append("## Notes\n\n" + "".join(f"- {note}\n" for note in self.notes))
        parts.append("## How it was computed\n\n" + "".join(f"- `{one}`\n" for one in self.signatures()))
        return "\n".join(parts)

    def write(self, folder: Path) -> list[str]:
        """report.md, results.json, what every run wrote (NAME.txt), reliability.png; the files' names."""
        texts: dict[str, str] = {}
        for number, system in enumerate(self.systems, 1):
            if system.generated:
                name = re.sub(r"[^\w.+-]+", "-", system.name)
                name = f"{name}.txt" if f"{name}.txt" not in texts else f"{name}-{number}.txt"
                texts[name] = "".join(f"{one if isinstance(one, str) else one.text}\n" for one in system.outputs)
        bins = {system.name: system.bins for system in self.systems if system.bins is not None}
        picture = "reliability.png" if bins and plots.installed() else None
        if picture is not None:
            plots.reliability(folder / picture, bins)
        whole = json.dumps(self.json(), ensure_ascii=False, indent=1)
        files = {"report.md": self.markdown(picture), "results.json": f"{whole}\n", **texts}
        for name, text in files.items():
            write_text(folder / name, text)
        return [*files, *([] if picture is None else [picture])]

    def _names(self) -> list[str]:
        return list(dict.fromkeys(measure.name for system in self.systems for measure in system.measures))


def _cell(measure: Measure, interval: Interval | None) -> str:
    if measure.score is None:
        return NONE
    digits = 0 if measure.name in COUNTS else 1
    between = "" if interval is None else f" [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"
    return f"{measure.score:,.{digits}f}{between}"


def _difference(name: str, found: Difference) -> str:
    digits = 0 if name in COUNTS else 1
    sizes = (found.bootstrap.difference, found.bootstrap.low, found.bootstrap.high)
    size, low, high = (f"{number:+,.{digits}f}" for number in sizes)
    return f"{size} [{low}, {high}], p {p_text(found.bootstrap.p_value)} / {p_text(found.p_randomisation)}"


def p_text(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def _json(measure: Measure, interval: Interval | None) -> dict[str, Any]:
    low, high = (None, None) if interval is None else interval[:2]
    return {"score": measure.score, "low": low, "high": high, "signature": measure.signature}
