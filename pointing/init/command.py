"""`pointing init` on the command line: parse, call, print. Heavy imports wait until it is called."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from pointing.system.program import program


def init(
    files: Annotated[
        list[Path], typer.Argument(help="CSV, TSV, JSONL, PO, XLIFF; or two text files, source and target.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the settings file, or the file itself.")] = Path(),
    minutes: Annotated[float, typer.Option(min=0.1, help="Of training, at most; but at least 500 updates.")] = 30.0,
    languages: Annotated[
        tuple[str, str] | None, typer.Option(help="Of source and target, such as en fr (default: guessed).")
    ] = None,
    source_column: Annotated[str | None, typer.Option(help="Name, or number from 1 (default: guessed).")] = None,
    target_column: Annotated[str | None, typer.Option(help="The same, for the translations.")] = None,
    key_column: Annotated[
        str | None, typer.Option(help="Rows with the same value in it stay together when dev and test are split off.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Look at your data, and write a settings file that fits them, this machine and your time."""
    from pointing.config import Table
    from pointing.init.initialize import initialize, settings_name

    columns = Table(files=tuple(files), source_column=source_column, target_column=target_column, key_column=key_column)
    settings = out if out.suffix in (".yaml", ".yml") else out / settings_name(files)
    made = initialize(files, settings, Path("corpora"), minutes=minutes, languages=languages, columns=columns)
    if json_output:
        print(json.dumps(made.json(), ensure_ascii=False))
        return
    print(made.text())
    print(f"\nNext:\n  {program()} train {quote(str(settings))}")
