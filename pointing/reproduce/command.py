"""`pointing reproduce …`: parses, calls, prints, nothing else. Slow imports wait until a command needs them."""

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

app = typer.Typer(
    help="The paper's tables and figures, its numbers beside ours, and comparisons of our own.", no_args_is_help=True
)
OUT = Path("runs/reproduce")
Out = Annotated[Path, typer.Option(help="Folder of runs, corpora and reports; what is there is not made again.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Runs at a time (default: one a core).")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs of each model.")]
Dictionary = Annotated[Path | None, typer.Option(help="Word pairs, for the row of a given dictionary.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def _command_line() -> str:
    """The command as it was typed; reports repeat it."""
    return shlex.join(["pointing", *sys.argv[1:]])


def _command_of(experiment: Experiment) -> Callable[..., None]:
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
        from pointing.reproduce.page import write_report
        from pointing.reproduce.pipeline import reproduce_experiment
        from pointing.reproduce.report import main_table
        from pointing.reproduce.results import read_results
        from pointing.settings_file import parse_changes

        folder = reproduce_experiment(
            experiment,
            recipe,
            out,
            _command_line(),
            changes=parse_changes(changes or ()),
            rows=rows or (),
            seeds=seeds,
            also=dict(map(_test_set, also or ())),
            dictionary=dictionary,
            workers=workers,
        )
        if report is not None:
            write_report([folder], report)
        results = read_results(folder)
        if json_output:
            print(json.dumps(results))
            return
        main_table(results).show()
        print(f"written: {report or folder}/report.html, report.md; {folder}/results.json")

    rows = f"Rows: {', '.join(row.key for row in experiment.rows)}. Cut off, it goes on where it was."
    command.__doc__ = f"{experiment.place[0].upper()}{experiment.place[1:]}: {experiment.title}.\n\n{rows}"
    return command


def _test_set(text: str) -> tuple[str, Parallel]:
    """NAME=SOURCE,REFERENCE as a name and its files."""
    from pointing.config import Parallel

    name, equals, files = text.partition("=")
    source, comma, reference = files.partition(",")
    if not (name and equals and source and comma and reference):
        raise Misuse(f"--also {text}: write it as NAME=SOURCE,REFERENCE")
    return name, Parallel(source=Path(source), target=Path(reference))


for _experiment in EXPERIMENTS.values():
    app.command(_experiment.key)(_command_of(_experiment))


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
    from pointing.reproduce import rarest_word_runs
    from pointing.reproduce.page import write_report
    from pointing.reproduce.pipeline import reproduce_everything

    rarest_out = out / "rarest-word"
    rarest_word_runs.reproduce_rarest_word(rarest_word_runs.quick(seeds), rarest_out, _command_line(), workers)
    folders, missing = reproduce_everything(recipes, out, _command_line(), seeds, dictionary, workers)
    written = write_report([rarest_out, *folders], report or out)
    print("\n".join([*missing, f"written: {written[1]}, {written[0]}"]))


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Where results are; those below it are found.")] = OUT,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html and report.md (default: there).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Instead write Markdown alone into this file.")] = None,
) -> None:
    """One page, and Markdown, of results that are there already. Nothing is trained or scored."""
    from pointing.reproduce import page

    folders = page.find_results(folder)
    if not folders:
        raise Misuse("there are no results in this folder; `pointing reproduce translation` makes some", folder)
    for results_folder in folders:
        page.draw_curves(results_folder)
    if markdown is not None:
        page.write_markdown(folders, markdown)
        print(f"written: {markdown}")
    else:
        print("written:", *page.write_report(folders, out or folder))


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
    workers: Workers = None,
    json_output: Json = False,
) -> None:
    """§5.1: find the rarest word of a sequence; pointer softmax against softmax.

    Finished runs are kept in OUT: started again, it goes on where it was cut off.
    """
    from pointing.reproduce import rarest_word_runs
    from pointing.reproduce.page import write_report

    changes = {"p": p, "updates": updates, "hidden": hidden, "training": training, "min_count": min_count}
    changes = {name: value for name, value in changes.items() if value is not None}
    if quick and sweep:
        raise Misuse("--quick and --sweep exclude each other")
    if ((quick or sweep) and changes) or (quick and seeds):
        options = " and ".join(f"--{name.replace('_', '-')}" for name in changes) or "--seeds"
        raise Misuse(f"{'--quick' if quick else '--sweep'} has settings of its own: leave out {options}")
    if quick:
        runs = rarest_word_runs.quick()
    elif sweep:
        runs = rarest_word_runs.sweep(seeds or 3)
    else:
        runs = rarest_word_runs.paper_size(changes, seeds or 3)
    results = rarest_word_runs.reproduce_rarest_word(runs, out, _command_line(), workers)
    written = write_report([out], out)
    if json_output:
        print(json.dumps(results))
    else:
        rarest_word_runs.table(results).show()
        print("written:", *written, out / "results.json")
