"""Pictures: learning curves, attention with the switch. matplotlib is an extra, and is imported only here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pointing.errors import Misuse, missing_extra
from pointing.files import whole_file
from pointing.output import Output, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, float]]
COLUMNS = 3  # panels beside each other


def require_matplotlib() -> None:
    """Says so before a long run, rather than after it, if the pictures cannot be made."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("matplotlib", "plots") from None


def learning_curves(
    path: Path, panels: Mapping[str, Mapping[str, Sequence[Curve]]], x_label: str, y_label: str
) -> None:
    """One panel a title; in it one colour a label, a thin line for each of its curves (one a seed)."""
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.8 * columns, 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
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
    axes[0].set_ylim(bottom=0)
    axes[0].legend(fontsize=8)
    with whole_file(path) as part:
        figure.savefig(part, format=path.suffix.removeprefix("."), dpi=150)


def installed() -> bool:
    try:
        require_matplotlib()
    except Misuse:
        return False
    return True


def attention(output: Output) -> Figure:
    """Where the model looked at each step, and above it the switch: 1 is the shortlist, 0 a pointer."""
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    line, tokens = output.source, output.tokens
    source = [visible(line.raw(position)) for position in range(len(line.ids))]
    figure = Figure(figsize=(1.5 + 0.42 * max(1, len(tokens)), 2.2 + 0.24 * max(1, len(source))), layout="constrained")
    if not tokens or not source:
        return figure
    switch, matrix = figure.subplots(2, 1, sharex=True, height_ratios=[1, max(2, len(source) / 4)])
    colours = ["C0" if token.origin == "shortlist" else "C2" for token in tokens]
    switch.bar(range(len(tokens)), [token.shortlist for token in tokens], color=colours)
    switch.set_ylim(0, 1)
    switch.set_ylabel("d_t", fontsize=8)
    rows = [token.attention if token.attention is not None else np.zeros(len(source)) for token in tokens]
    matrix.imshow(np.stack(rows, 1), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    matrix.set_yticks(range(len(source)), source, fontsize=7)
    matrix.set_xticks(
        range(len(tokens)), [visible(token.text) for token in tokens], fontsize=7, rotation=60, ha="right"
    )
    for step, (token, colour) in enumerate(zip(tokens, colours, strict=True)):
        matrix.get_xticklabels()[step].set_color(colour)
        if token.source is not None:
            matrix.add_patch(
                Rectangle((step - 0.5, token.source - 0.5), 1, 1, fill=False, edgecolor="C2", linewidth=1.5)
            )
    return figure
