"""Results of some experiments as one report: Markdown, and an HTML page that opens anywhere, pictures inside."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pointing.evaluation.plots import learning_curves
from pointing.reproduce import rarest_word, report
from pointing.reproduce.results import RESULTS, read
from pointing.system.files import write_text
from pointing.system.tables import Table

TITLE = "Pointing the Unknown Words, made again"
ORDER = ("translation", "learning-curves", "summarization-unk", "summarization-entities", rarest_word.KEY)
LEGEND = """\
The paper's figures are of its own data: Gigaword for summaries, all of Europarl and newstest2011 for translation.
Intervals and p are of one training run each, over test lines: how much another seed would change is not in them. Where
a row has several seeds, each one's difference is told; differences are always between runs of the same seed.

- *NMT*: the encoder–decoder with a plain softmax; *LVT*: with the large-vocabulary trick; *PS*: with the pointer
  softmax. *UNK replaced by attention*: the source word of most attention is written in its place afterwards; *and
  dictionary*: or its translation, where the dictionary has one (Jean et al. 2015, Luong et al. 2015). *copies and word
  summed*: beam search ranks a word by its whole probability, of the shortlist and of all places that hold it; in the
  other rows each of these is ranked by itself. *switch unsupervised*: the training asks for that whole probability too.
- *OOV recall*: of the reference's words outside the shortlist, those that the output has, in %; *OOV precision*: of the
  output's, those that the reference has; *unseen recall*: of the reference's words that the training text does not
  have. *copies right*: of the copied words, known ones too, those that the reference has, in %. With a dictionary, a
  word that is pointed at is written as its translation there, if it has one: such words count as copied, and are bold
  where outputs are shown.
- *of the same events*: the dev NLL of a sentence with all words outside the shortlist as one word, so that models can
  be compared; a model's own NLL asks the pointer softmax for the place that it points at too.
- *tested after updates*: the validation of the lowest dev NLL, whose weights were tested and whose figures these are.
  *minutes*: of training, with other work on the same machine: not a measure of speed.
- Corpora have the pairs that are not too long to be trained on; all lines of a test set are tested.
"""


def find(folder: Path) -> list[Path]:
    """The folders with results of ours at or below a folder, translation first."""
    found = {path.parent: read(path.parent).get("experiment") for path in sorted(folder.rglob(RESULTS))}
    return sorted((one for one in found if found[one] in ORDER), key=lambda one: ORDER.index(found[one]))


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
    header = ["from the softmax to …", "test set", "measure", "the paper", "here", "95 % interval or each seed; p"]
    return f"{Table('', header, lines).markdown()}\n{LEGEND}" if lines else ""


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
    """A folder's address for a page in another one."""
    return quote(Path(os.path.relpath(folder, place)).as_posix())


def html(text: str, pictures: dict[str, Path]) -> str:
    """A page of the Markdown, nothing outside it: everything is escaped, pictures are part of it."""
    from markdown_it import MarkdownIt

    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
    for address, path in pictures.items():
        if path.exists():
            inside = b64encode(path.read_bytes()).decode()
            made = made.replace(f'src="{address}"', f'src="data:image/png;base64,{inside}"')
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
