"""`pointing export`: parse, call, print. Heavy imports wait until it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pointing.errors import Misuse


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    out: Annotated[str, typer.Argument(help="The file to write; the folder with --folder; OWNER/NAME with --hub.")],
    folder: Annotated[bool, typer.Option("--folder", help="Write a folder.")] = False,
    hub: Annotated[bool, typer.Option("--hub", help="Put it on the Hugging Face hub.")] = False,
    private: Annotated[bool, typer.Option("--private", help="With --hub: a new repository is private.")] = False,
    name: Annotated[str | None, typer.Option(help="Of the model, in its card (default: of the file).")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print where it is as JSON.")] = False,
) -> None:
    """A run to give away: one file of settings, weights, words and a model card; no line of its data is in it.

    Every command takes the file in a run's place: pointing generate shop.pointing lines.txt
    """
    from pointing.sharing.export import export as write_file
    from pointing.sharing.export import save_pretrained
    from pointing.sharing.hub import push_to_hub

    if folder and hub:
        raise Misuse("--folder and --hub exclude each other")
    if private and not hub:
        raise Misuse("--private is for --hub")
    if name is not None and hub:
        raise Misuse("on the hub a model has the name of its repository: leave out --name")
    if hub:
        where = push_to_hub(run, out, private=private)
    else:
        where = str((save_pretrained if folder else write_file)(run, out, name))
    print(json.dumps({"written": where}) if json_output else where)
