"""The results of several experiments as one report: Markdown, and one HTML file that holds its pictures too."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from pointing.evaluation.plots import learning_curves
from pointing.reproduce import rarest_word_runs, report
from pointing.reproduce.results import KIND, RESULTS, read_results
from pointing.system.border import entering, read_bytes
from pointing.system.files import write_text
from pointing.system.tables import Table

TITLE = "Pointing the Unknown Words, made again"
CURVES = "curves.png"
ORDER = (
    "translation",
    "models",
    "learning-curves",
    "summarization-unk",
    "summarization-entities",
    rarest_word_runs.KEY,
)
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
  *minutes*: of training, with other work on the same machine: not a measure of speed. *minutes of one core*: the time
  of processors that training and its validations took, whatever else the machine did.
- *pieces in, words out*: the model reads and writes pieces of words, points at whole words, and writes them as they
  are. *aligned*: in training l_t is drawn to the source word that a word aligner links to the target word.
  *source's unseen*: of the words of the source that the target's training text does not have and the reference has as
  they are, the share that is in the output (recall); of those that the output has, the share that the reference has
  (precision).
- Corpora have the pairs that are not too long to be trained on; all lines of a test set are tested.
"""


def find_results(folder: Path) -> list[Path]:
    """The folders with results of experiments, at or below a folder, in the order of the report."""
    experiments = {path.parent: _experiment(path) for path in sorted(folder.rglob(RESULTS))}
    ours = [path for path, experiment in experiments.items() if experiment in ORDER]
    return sorted(ours, key=lambda path: ORDER.index(experiments[path]))


def _experiment(path: Path) -> str | None:
    """The key of the experiment whose results a file holds; None for a file of another program."""
    with entering(path, KIND):
        found = json.loads(read_bytes(path))
        return found.get("experiment") if isinstance(found, dict) else None


def report_markdown(folders: Sequence[Path], addresses: Sequence[str]) -> str:
    """The report on all experiments; `addresses` are the same folders, relative to the page."""
    sections: list[str] = []
    summary_rows: list[list[str]] = []  # of one table of all experiments
    for folder, address in zip(folders, addresses, strict=True):
        results = read_results(folder)
        with entering(folder / RESULTS, KIND):
            if results["experiment"] == rarest_word_runs.KEY:
                sections.append(rarest_word_runs.section(results, address))
                summary_rows += rarest_word_runs.summary_rows(results)
            else:
                sections.append(report.section(results, folder, address))
                summary_rows += report.summary_rows(results)
    header = ["from the softmax to …", "test set", "measure", "the paper", "here", "95 % interval or each seed; p"]
    summary = f"{Table('', header, summary_rows).markdown()}\n{LEGEND}" if summary_rows else ""
    return "\n".join([f"# {TITLE}\n", summary, *sections])


def draw_curves(folder: Path) -> None:
    """Draws the learning curves that a folder's section shows; the rarest word's are drawn with its results."""
    results = read_results(folder)
    with entering(folder / RESULTS, KIND):
        if results["experiment"] != rarest_word_runs.KEY:
            learning_curves(folder / CURVES, report.panels(results), report.curves_by(results)[1], one_scale=False)


def write_report(folders: Sequence[Path], out: Path) -> tuple[Path, Path]:
    """Writes report.md, with links to the pictures, and report.html, with the pictures in it, to `out`."""
    text = write_markdown(folders, out / "report.md")
    pictures = {f"{_address(folder, out)}/{CURVES}": folder / CURVES for folder in folders}
    write_text(out / "report.html", html_page(text, pictures))
    return out / "report.md", out / "report.html"


def write_markdown(folders: Sequence[Path], path: Path) -> str:
    text = report_markdown(folders, [_address(folder, path.parent) for folder in folders])
    write_text(path, text)
    return text


def _address(folder: Path, page: Path) -> str:
    """A folder's address, relative to the folder of a page."""
    return quote(Path(os.path.relpath(folder, page)).as_posix())


def html_page(text: str, pictures: dict[str, Path]) -> str:
    """The Markdown as one HTML page that loads nothing: text is escaped, pictures (by address) are in the page."""
    from markdown_it import MarkdownIt

    body = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
    for address, path in pictures.items():
        if path.exists():
            data = b64encode(read_bytes(path)).decode()
            body = body.replace(f'src="{address}"', f'src="data:image/png;base64,{data}"')
    return HEAD.replace("TITLE", escape(TITLE)) + body + "</body></html>\n"


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
