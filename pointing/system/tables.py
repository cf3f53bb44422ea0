"""A table that can be drawn on a terminal or written as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Table:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first column is text, aligned left; the others are numbers, aligned right

    def markdown(self) -> str:
        line = "|" + "|".join("---" if column == 0 else "---:" for column in range(len(self.header))) + "|"
        rows = ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(["| " + " | ".join(self.header) + " |", line, *rows]) + "\n"

    def show(self) -> None:
        """Prints the table: drawn if standard output is a terminal, else as Markdown."""
        from rich.console import Console
        from rich.table import Table as RichTable

        console = Console()
        if not console.is_terminal:
            print(f"{self.title}\n\n{self.markdown()}")
            return
        drawn = RichTable(title=self.title, title_justify="left")
        for column, name in enumerate(self.header):
            drawn.add_column(name, justify="left" if column == 0 else "right")
        for row in self.rows:
            drawn.add_row(*row)
        console.print(drawn)


def mean_and_spread(values: Sequence[float], digits: int = 1) -> str:
    """`12.3 ± 0.4`: mean and standard deviation over seeds; of a single value only the value."""
    from statistics import mean, stdev

    text = f"{mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {stdev(values):.{digits}f}"
