"""`pointing reproduce …`: parse, call, print; nothing else. Heavy imports wait until an experiment needs them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pointing.errors import Misuse
from pointing.reproduce.experiments import EXPERIMENTS, Experiment

if TYPE_CHECKING:
    from pointing.config import Parallel

app = typer.Typer(help="The paper's tables and figures, its numbers beside ours.", no_args_is_help=True)
OUT = Path("runs/reproduce")
Out = Annotated[Path, typer.Option(help="Folder of runs, corpora and reports; what it has is not made again.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Runs at a time (default: one a core).")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs of each model.")]
Dictionary = Annotated[Path | None, typer.Option(help="Word pairs, for the row of a given dictionary.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def _said() -> str:
    return shlex.join(["pointing", *sys.argv[1:]])


def _command(experiment: Experiment) -> Callable[..., None]:
    default = Path("recipes") / f"{experiment.recipes[0]}.yaml"

    def command(
        recipe: Annotated[Path, typer.Argument(help="What it is made on; recipes/ has several.")] = default,
        out: Out = OUT,
        seeds: Seeds = 1,
        rows: Annotated[
            list[str] | None,
            typer.Option("--row", help="Only this row and the others named so (default: all); KEY=N: with N seeds."),
        ] = None,
        also: Annotated[
            list[str] | None, typer.Option(help="Another test set: NAME=SOURCE,REFERENCE (may be given again).")
        ] = None,
        dictionary: Dictionary = None,
        changes: Annotated[
            list[str] | None, typer.Option("--set", help="Change the recipe: section.key=value.")
        ] = None,
        workers: Workers = None,
        report: Annotated[Path | None, typer.Option(help="Write report.html and report.md here too.")] = None,
        json_output: Json = False,
    ) -> None:
        from pointing.config import pairs
        from pointing.reproduce import making, page, results
        from pointing.reproduce.report import main_table

        folder = making.make(
            experiment,
            recipe,
            out,
            _said(),
            changes=pairs(changes or ()),
            rows=rows or (),
            seeds=seeds,
            also=dict(map(_test, also or ())),
            dictionary=dictionary,
            workers=workers,
        )
        if report is not None:
            page.write([folder], report)
        found = results.read(folder)
        if json_output:
            print(json.dumps(found))
            return
        main_table(found).show()
        print(f"written: {report or folder}/report.html, report.md; {folder}/results.json")

    rows = ", ".join(row.key for row in experiment.rows)
    command.__doc__ = (
        f"Paper {experiment.where}: {experiment.title}.\n\nRows: {rows}. Cut off, it goes on where it was."
    )
    return command


def _test(text: str) -> tuple[str, Parallel]:
    from pointing.config import Parallel

    name, equals, files = text.partition("=")
    source, comma, reference = files.partition(",")
    if not (name and equals and source and comma and reference):
        raise Misuse(f"--also {text}: write it as NAME=SOURCE,REFERENCE")
    return name, Parallel(source=Path(source), target=Path(reference))


for _one in EXPERIMENTS.values():
    app.command(_one.key)(_command(_one))


@app.command("all")
def everything(
    out: Out = OUT,
    report: Annotated[Path | None, typer.Option(help="Folder of the common report (default: OUT).")] = None,
    recipes: Annotated[Path, typer.Option(help="Folder of the recipes.")] = Path("recipes"),
    seeds: Seeds = 1,
    dictionary: Dictionary = None,
    workers: Workers = None,
) -> None:
    """Everything in §5 whose data are on this machine, in one report; §5.1 in its quick size.

    Hours; cut off, it goes on where it was.
    """
    from pointing.reproduce import making, page
    from pointing.reproduce import rarest_word as rarest

    rarest_out = out / "rarest-word"
    rarest.reproduce(rarest.quick(seeds), rarest_out, _said(), workers)
    folders, missing = making.everything(recipes, out, _said(), seeds, dictionary, workers)
    written = page.write([rarest_out, *folders], report or out)
    print("\n".join([*missing, f"written: {written[1]}, {written[0]}"]))


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Where results are; those below it are found.")] = OUT,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html and report.md (default: there).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Instead write Markdown alone into this file.")] = None,
) -> None:
    """One page, and Markdown, of results that are there already. Nothing is trained or scored."""
    from pointing.reproduce import page

    folders = page.find(folder)
    if not folders:
        raise Misuse("there are no results in this folder; `pointing reproduce translation` makes some", folder)
    for one in folders:
        page.draw(one)
    if markdown is not None:
        page.write_markdown(folders, markdown)
        print(f"written: {markdown}")
    else:
        print("written:", *page.write(folders, out or folder))


@app.command("rarest-word")
def rarest_word(
    out: Annotated[Path, typer.Option(help="Folder for the report, its JSON and pictures.")] = Path("runs/rarest-word"),
    quick: Annotated[bool, typer.Option("--quick", help="A small version, two minutes on 2 cores.")] = False,
    sweep: Annotated[bool, typer.Option("--sweep", help="Over p and training-set size, in small.")] = False,
    p: Annotated[float | None, typer.Option(help="Of the geometric distribution of words (0.001).")] = None,
    updates: Annotated[int | None, typer.Option(help="Updates of each run (2000).")] = None,
    hidden: Annotated[int | None, typer.Option(help="Units of every hidden layer (1000).")] = None,
    training: Annotated[int | None, typer.Option(help="Fixed training sequences (drawn afresh).")] = None,
    min_count: Annotated[
        int | None, typer.Option(help="Words that a fixed training set has less often are read as unknown (5).")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each model (3).")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """§5.1: find the rarest word of a sequence; pointer softmax against softmax.

    Finished runs are kept in OUT: started again, it goes on where it was cut off.
    """
    from pointing.reproduce import page
    from pointing.reproduce import rarest_word as experiment

    changes = {"p": p, "updates": updates, "hidden": hidden, "training": training, "min_count": min_count}
    changes = {name: value for name, value in changes.items() if value is not None}
    if quick and sweep:
        raise Misuse("--quick and --sweep exclude each other")
    if ((quick or sweep) and changes) or (quick and seeds):
        others = " and ".join(f"--{name.replace('_', '-')}" for name in changes) or "--seeds"
        raise Misuse(f"{'--quick' if quick else '--sweep'} has settings of its own: leave out {others}")
    runs = experiment.quick() if quick else experiment.sweep(seeds or 3) if sweep else None
    runs = experiment.paper_size(changes, seeds or 3) if runs is None else runs
    found = experiment.reproduce(runs, out, _said(), workers)
    written = page.write([out], out)
    if json_output:
        print(json.dumps(found.results))
    else:
        found.table.show()
        print("written:", *written, out / "results.json")
