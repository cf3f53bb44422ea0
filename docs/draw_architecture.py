"""Draws docs/architecture.svg from the code: every package with its modules and what it imports, in the data's order.

`python docs/draw_architecture.py` writes it anew; tests/test_layers.py says when that is due.
"""

from __future__ import annotations

import ast
import sys
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from test_layers import PACKAGE, ROWS, imports, modules  # noqa: E402

WIDTH, LINE, MARGIN = 1000, 19, 12  # pixels


def summary(row: str) -> str:
    """The first sentence of a package's, or a module's, docstring."""
    path = PACKAGE / row / "__init__.py" if (PACKAGE / row).is_dir() else PACKAGE / f"{row}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ").rstrip(".")


def draw() -> str:
    """The picture as SVG."""
    boxes, y = [], MARGIN
    for row in ROWS:
        own = [name.split(".")[1] for first, name, _ in modules() if first == row and "." in name]
        listed = wrap("  ".join(name for name in own if name != "__init__"), 100)
        used = {other for first, _, path in modules() if first == row for other, _, _ in imports(path)} - {row}
        above = ", ".join(name for name in ROWS if name in used)
        texts = [f'<tspan class="name">{row}{"/" if own else ".py"}</tspan>  {escape(summary(row))}']
        texts += [f'<tspan class="modules">{escape(line)}</tspan>' for line in listed]
        texts += [f'<tspan class="imports">imports {escape(above)}</tspan>'] if above else []
        height = LINE * len(texts) + MARGIN
        boxes.append(f'<rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="6"/>')
        boxes += [
            f'<text x="{2 * MARGIN}" y="{y + LINE * (number + 1)}">{text}</text>' for number, text in enumerate(texts)
        ]
        y += height
        if row != ROWS[-1]:
            boxes.append(f'<path d="M {WIDTH // 2} {y} v {MARGIN}"/>')
        y += MARGIN
    style = (
        "rect{fill:#f3f6fa;stroke:#7a8ca3}text{font:13px sans-serif;fill:#1c2733;white-space:pre}"
        "path{stroke:#7a8ca3;stroke-width:2}.name{font-weight:bold}.modules{font-family:monospace;fill:#0a5c8a}"
        ".imports{fill:#5c6b7a;font-size:11px}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img"><title>The packages</title>'
    return "\n".join([head, f"<style>{style}</style>", *boxes, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / "docs" / "architecture.svg").write_text(draw(), encoding="utf-8")
