"""The command line: parse, call, print; nothing else. Heavy imports wait until a verb needs them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointing import __version__
from pointing.errors import Failure, Misuse

app = typer.Typer(
    help="Sequence-to-sequence models that copy the words they do not know.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
reproduce = typer.Typer(help="The paper's tables and figures, its numbers beside ours.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")


def _version(asked: bool) -> None:
    if asked:
        print(f"pointing {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@reproduce.command("rarest-word")
def rarest_word(
    out: Annotated[Path, typer.Option(help="Folder for the report, its JSON and pictures.")] = Path("runs/rarest-word"),
    quick: Annotated[bool, typer.Option("--quick", help="A small version, two minutes on 2 cores.")] = False,
    sweep: Annotated[bool, typer.Option("--sweep", help="Over p and training-set size, in small.")] = False,
    p: Annotated[float, typer.Option(help="Of the geometric distribution of words.")] = 0.001,
    updates: Annotated[int, typer.Option(help="Updates of each run.")] = 2000,
    hidden: Annotated[int, typer.Option(help="Units of every hidden layer.")] = 1000,
    training: Annotated[int | None, typer.Option(help="Fixed training sequences (default: drawn afresh).")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each model.")] = 3,
    workers: Annotated[int | None, typer.Option(help="Processes (default: one a core).")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """§5.1: find the rarest word of a sequence; pointer softmax against softmax.

    Finished runs are kept in OUT: started again, it goes on where it was cut off.
    """
    from pointing.reproduce import rarest_word as experiment

    if quick and sweep:
        raise Misuse("--quick and --sweep exclude each other")
    runs = (
        experiment.quick()
        if quick
        else experiment.sweep(seeds)
        if sweep
        else experiment.paper_size(p, updates, hidden, training, seeds)
    )
    report = experiment.reproduce(runs, out, shlex.join(["pointing", *sys.argv[1:]]), workers)
    if json_output:
        print(json.dumps(report.results))
    else:
        report.table.show()
        print(f"written: {out}/report.md, results.json, curves.png, curves.svg")


def main() -> None:
    """Exit codes: 0 done, 1 a failure while running, 2 misuse or bad input; one line on stderr, no traceback."""
    try:
        app()
    except Failure as failure:
        print(f"pointing: {failure}", file=sys.stderr)
        sys.exit(2 if isinstance(failure, Misuse) else 1)
    except KeyboardInterrupt:
        print("pointing: stopped", file=sys.stderr)
        sys.exit(130)
