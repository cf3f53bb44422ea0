"""Results of some experiments as one report: Markdown, and an HTML page that opens anywhere, pictures inside."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from pointing.files import write_text
from pointing.plots import learning_curves
from pointing.reproduce import rarest_word, report
from pointing.reproduce.results import RESULTS, read
from pointing.tables import Table

TITLE = "Pointing the Unknown Words, made again"
ORDER = (rarest_word.KEY, "summarization-unk", "summarization-entities", "translation", "learning-curves")


def find(folder: Path) -> list[Path]:
    """The folders with results at or below a folder, in the order of the paper."""
    found = sorted(path.parent for path in folder.rglob(RESULTS))
    return sorted(found, key=lambda one: ORDER.index(read(one)["experiment"]))


def markdown(folders: Sequence[Path], seen: Sequence[str]) -> str:
    """All of them, one after another; `seen` is where a reader of the page finds each folder."""
    found = [read(folder) for folder in folders]
    parts = [f"# {TITLE}\n", _in_short(found)]
    for results, folder, place in zip(found, folders, seen, strict=True):
        if results["experiment"] == rarest_word.KEY:
            parts.append(rarest_word.section(results, place))
        else:
            parts.append(report.section(results, folder, place))
    return "\n".join(parts)


def _in_short(found: Sequence[dict[str, Any]]) -> str:
    """One table of all experiments."""
    lines = [
        line
        for results in found
        for line in (rarest_word if results["experiment"] == rarest_word.KEY else report).in_short(results)
    ]
    header = ["softmax → pointer softmax", "measure", "the paper", "here", "how sure"]
    return Table("", header, lines).markdown() if lines else ""


def draw(folder: Path) -> None:
    """The pictures that a folder's section shows."""
    results = read(folder)
    if results["experiment"] != rarest_word.KEY:
        learning_curves(folder / "curves.png", report.panels(results), "updates", one_scale=False)


def write(folders: Sequence[Path], out: Path) -> tuple[Path, Path]:
    """report.md and report.html in `out`; the first one names the pictures where they are, the second one has them."""
    text = write_markdown(folders, out / "report.md")
    write_text(
        out / "report.html", html(text, {f"{_seen(one, out)}/curves.png": one / "curves.png" for one in folders})
    )
    return out / "report.md", out / "report.html"


def write_markdown(folders: Sequence[Path], path: Path) -> str:
    text = markdown(folders, [_seen(folder, path.parent) for folder in folders])
    write_text(path, text)
    return text


def _seen(folder: Path, place: Path) -> str:
    """A folder's name for a page in another one."""
    return Path(os.path.relpath(folder, place)).as_posix()


def html(text: str, pictures: dict[str, Path]) -> str:
    """A page of the Markdown, nothing outside it: everything is escaped, pictures are part of it."""
    from markdown_it import MarkdownIt

    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
    for name, path in pictures.items():
        if path.exists():
            inside = b64encode(path.read_bytes()).decode()
            made = made.replace(f'src="{escape(name)}"', f'src="data:image/png;base64,{inside}"')
    return HEAD.replace("TITLE", escape(TITLE)) + made + "</body></html>\n"


HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>TITLE</title>
<style>
:root { --copied: #0a7d33; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --copied: #5fd68a } img { background: #fff } }
body { font: 16px/1.6 system-ui, sans-serif; margin: 1em auto; max-width: 80em; padding: 0 1em }
h2 { margin-top: 2.5em; border-top: 1px solid #8884; padding-top: 1em }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9em }
th, td { border-bottom: 1px solid #8884; padding: .25em .7em; text-align: left; vertical-align: top }
th { border-bottom-width: 2px }
img { max-width: 100% }
strong { color: var(--copied) }
</style></head><body>
"""
