"""`pointing translate` on the command line: parse, call, print. Heavy imports wait until it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pointing.system.quick_start import quick_start


def translate(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    files: Annotated[list[Path], typer.Argument(help="PO, POT, XLIFF, CSV, TSV, JSONL or text.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="File, or folder for several (default: app.pot → fr.po beside it)."),
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write into the files themselves.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Translate anew what is translated already.")] = False,
    fuzzy_too: Annotated[bool, typer.Option("--fuzzy-too", help="Translate anew what is marked fuzzy.")] = False,
    no_fuzzy: Annotated[bool, typer.Option("--no-fuzzy", help="Do not mark what is filled for review.")] = False,
    provenance: Annotated[bool, typer.Option("--provenance", help="A comment says which words were copied.")] = False,
    language: Annotated[str | None, typer.Option(help="That is written (default: the run's), such as fr_CA.")] = None,
    source_column: Annotated[str | None, typer.Option(help="Of a table: its name, or its number from 1.")] = None,
    target_column: Annotated[str | None, typer.Option(help="The same, for the translations.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text, CSV and TSV; other kinds name theirs.")] = "utf-8",
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses; the first that passes the checks is taken.")] = 5,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change how it is searched.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="Word pairs: copied words are written as it says.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="TSV of terms and how they are to be written.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Terms that stay as they are, one a line.")] = None,
    glossary_mode: Annotated[str, typer.Option(help="guaranteed: each term once; or encouraged.")] = "guaranteed",
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="What has less stays untranslated, and is listed.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary and all entries as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page for review, side by side.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
) -> None:
    """Fill the untranslated entries of translators' files; placeholders checked, everything else kept as it is."""
    with quick_start():
        from pointing.config import Search, checked
        from pointing.generation.glossary import parse_mode
        from pointing.settings_file import parse_changes
        from pointing.translation.translate import Options, Terms
        from pointing.translation.translate import translate as translate_files

    options = Options(
        everything=everything,
        fuzzy_too=fuzzy_too,
        fuzzy=not no_fuzzy,
        provenance=provenance,
        language=language,
        source_column=source_column,
        target_column=target_column,
        encoding=encoding,
        min_confidence=min_confidence,
    )
    terms = Terms(glossary, keep, parse_mode(glossary_mode))
    search = checked(Search, {"beam": beam, **parse_changes(changes or ())})
    summaries = translate_files(
        run,
        files,
        search,
        options,
        out=out,
        in_place=in_place,
        html=html,
        dictionary=dictionary,
        terms=terms,
        device=device,
    )
    if json_output:
        print(json.dumps({"files": [summary.json() for summary in summaries]}, ensure_ascii=False))
    else:
        print("\n".join(summary.text() for summary in summaries))
