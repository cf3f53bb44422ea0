"""Pictures: learning curves. matplotlib is an extra, and is imported only here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pointing.errors import missing_extra
from pointing.files import whole_file

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
