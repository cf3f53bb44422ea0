"""Pictures: learning curves, attention with the switch, reliability of the switch and of the confidence.

Only this module uses matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pointing.errors import Misuse, missing_extra
from pointing.evaluation.copy_metrics import Bin
from pointing.generation.confidence import Bin as ConfidenceBin
from pointing.generation.output import Output
from pointing.system.files import whole_file
from pointing.system.terminal import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, float]]
PANELS_PER_ROW = 3


def installed() -> bool:
    """True if matplotlib, which is an optional dependency, is installed."""
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raises an error without matplotlib. Long runs call this at their start, before they need their pictures."""
    if not installed():
        raise missing_extra("matplotlib", "plots")


def _figure(width: float, height: float) -> Figure:
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def learning_curves(
    path: Path,
    panels: Mapping[str, Mapping[str, Sequence[Curve]]],
    x_label: str,
    y_label: str = "",
    *,
    one_scale: bool = True,
) -> None:
    """A panel for each title, in it a colour for each label, and a line for each of the label's curves (its seeds).

    With `one_scale`, all panels share one y-axis, which starts at 0; without, each panel has its own.
    """
    columns = min(PANELS_PER_ROW, len(panels))
    rows = -(-len(panels) // columns)
    figure = _figure(4.8 * columns, 3.4 * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=one_scale, squeeze=False)
    axes = list(grid.flat)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis, (title, labels) in zip(axes, panels.items(), strict=False):
        for colour, (label, curves) in enumerate(labels.items()):
            for number, curve in enumerate(curves):
                x, y = zip(*curve, strict=True)
                axis.plot(x, y, color=f"C{colour}", linewidth=1.4, label=label if number == 0 else None)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    figure.supxlabel(x_label, fontsize=10)
    figure.supylabel(y_label, fontsize=10)
    if one_scale:
        axes[0].set_ylim(bottom=0)
    axes[0].legend(fontsize=8)
    save(figure, path)


def attention(output: Output) -> Figure:
    """l_t of each step over the source positions, and above it d_t: 1 is the shortlist, 0 a pointer."""
    line, tokens = output.source, output.tokens
    source = [visible(line.raw(position)) for position in range(len(line.ids))]
    figure = _figure(1.5 + 0.42 * max(1, len(tokens)), 2.2 + 0.24 * max(1, len(source)))
    if not tokens or not source:
        return figure
    from matplotlib.patches import Rectangle

    switch, matrix = figure.subplots(2, 1, sharex=True, height_ratios=[1, max(2, len(source) / 4)])
    colours = ["C0" if token.origin == "shortlist" else "C2" for token in tokens]
    switch.bar(range(len(tokens)), [token.d for token in tokens], color=colours)
    switch.set_ylim(0, 1)
    switch.set_ylabel("d_t", fontsize=8)
    rows = [token.location if token.location is not None else np.zeros(len(source)) for token in tokens]
    matrix.imshow(np.stack(rows, 1), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    matrix.set_yticks(range(len(source)), source, fontsize=7)
    words = [visible(token.text) for token in tokens]
    matrix.set_xticks(range(len(tokens)), words, fontsize=7, rotation=60, ha="right")
    for step, (token, colour) in enumerate(zip(tokens, colours, strict=True)):
        matrix.get_xticklabels()[step].set_color(colour)
        if token.source is not None:
            corner = step - 0.5, token.source - 0.5
            matrix.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="C2", linewidth=1.5))
    return figure


def reliability(path: Path, systems: Mapping[str, Sequence[Bin]]) -> None:
    """Share of the steps whose word is from the shortlist against d_t, a line for each system; below, number of steps.

    The line of a well calibrated switch is the diagonal.
    """
    found = "share of steps whose word was of the shortlist"
    _reliability(path, systems, found, "d_t, the switch's probability of the shortlist", "steps")


def confidence_reliability(path: Path, runs: Mapping[str, Sequence[ConfidenceBin]]) -> None:
    """Mean chrF of held-out lines against their mean confidence, a line for each run, with the number of lines."""
    bins = {name: [Bin(b.low, b.high, b.lines, b.confidence, b.chrf) for b in each] for name, each in runs.items()}
    _reliability(path, bins, "mean chrF of held-out lines", "confidence", "lines", with_counts=True)


def _reliability(
    path: Path, systems: Mapping[str, Sequence[Bin]], found: str, told: str, unit: str, with_counts: bool = False
) -> None:
    figure = _figure(4.6, 5.4)
    curve, counts = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    curve.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    for number, (name, bins) in enumerate(systems.items()):
        points = [(bin.mean, bin.observed) for bin in bins if bin.mean is not None and bin.observed is not None]
        x, y = zip(*points, strict=True) if points else ((), ())
        curve.plot(x, y, color=f"C{number}", marker="o", markersize=4, linewidth=1.4, label=name)
        for bin in bins if with_counts else ():
            if bin.mean is not None and bin.observed is not None:
                place = {"textcoords": "offset points", "xytext": (4, -10)}
                curve.annotate(f"{bin.steps:,}", (bin.mean, bin.observed), fontsize=7, color=f"C{number}", **place)
        edges = [bins[0].low, *(bin.high for bin in bins)]
        counts.stairs([bin.steps for bin in bins], edges, color=f"C{number}", linewidth=1.4)
    curve.set_ylabel(found, fontsize=9)
    curve.set_ylim(-0.02, 1.02)
    curve.grid(alpha=0.3)
    curve.legend(fontsize=8)
    counts.set_yscale("symlog")
    counts.set_ylabel(unit, fontsize=9)
    counts.set_xlabel(told, fontsize=9)
    counts.set_xlim(0, 1)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Writes the picture in the format that the file's name ends with."""
    kind = path.suffix.removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise Misuse("a picture's name ends with .png, .svg or .pdf", path)
    with whole_file(path) as part:
        figure.savefig(part, format=kind, dpi=150)
