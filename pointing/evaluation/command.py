"""`pointing evaluate` and `pointing calibrate`: parse, call, print. Heavy imports wait until one is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pointing.errors import Misuse


def evaluate(
    systems: Annotated[list[Path], typer.Argument(help="Run folders, or files of hypotheses, one line an example.")],
    references: Annotated[
        list[Path] | None,
        typer.Option("--reference", help="What should come out; may be given again (default: the run's test part)."),
    ] = None,
    source: Annotated[Path | None, typer.Option(help="What goes in; needed for runs and copy measures.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Without --source and --reference: the run's part test or dev.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.md, results.json, outputs, a picture.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses that a run keeps; 1 is greedy.")] = 5,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change how runs search: normalize=gnmt.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Compare the text as it is delivered, in no other form.")] = False,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="For files alone: lower-case all.")] = False,
    tokenized: Annotated[bool, typer.Option("--tokenized", help="For files alone: cut at spaces only.")] = False,
    vocabulary: Annotated[Path | None, typer.Option(help="The shortlist, for copy measures of files.")] = None,
    training: Annotated[Path | None, typer.Option(help="Training text of the target, for words by frequency.")] = None,
    source_tags: Annotated[Path | None, typer.Option(help="Tags of the source, for runs with entities.")] = None,
    reference_tags: Annotated[Path | None, typer.Option(help="Tags of the reference, which cut its words.")] = None,
    protect: Annotated[
        str | None, typer.Option(help="Measure protected spans: web, software, or kinds such as printf,tag.")
    ] = None,
    glossary: Annotated[Path | None, typer.Option(help="Runs generate with these terms; how many are used.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Terms that stay as they are, one a line.")] = None,
    unk: Annotated[str, typer.Option(help="How an unknown word is written.")] = "<unk>",
    json_output: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Score runs or files of hypotheses side by side: BLEU, chrF, ROUGE, copies, switch, with intervals and tests.

    The first one is what the others are compared with. Without files, runs are tested on the test part of their data.
    """
    from pointing.config import Search, checked
    from pointing.evaluation import evaluate as evaluation
    from pointing.evaluation.evaluation_set import EvaluationSet, own_part, parse_part
    from pointing.evaluation.report import names_of_report
    from pointing.settings_file import parse_changes
    from pointing.system.files import check_folder, keep_apart
    from pointing.text.protected import Protector
    from pointing.text.vocabulary import Vocabulary

    if out is not None and out.exists() and not out.is_dir():
        raise Misuse("this is a file: give a folder for the report", out)
    part = None if split is None else parse_part(split)
    if part is not None and (source is not None or references):
        raise Misuse("--split chooses a part of the run's data: leave it out, or --source and --reference")
    if not references and any(file is not None for file in (source, source_tags, reference_tags)):
        raise Misuse("outputs are compared with references: give --reference, too")
    search = checked(Search, {"beam": beam, **parse_changes(changes or ())})
    opened = evaluation.open_systems(systems, search)
    texts = [source, source_tags, reference_tags, vocabulary, training, glossary, keep, *(references or ())]
    read = [*texts, *(path for path in systems if path.is_file())]
    if out is not None:
        check_folder(out, next(folder for folder in (out, *out.absolute().parents) if folder.exists()))
        keep_apart(read, [out / name for name in names_of_report([system.name for system in opened])])
    if references:
        test = EvaluationSet.read(source, references, source_tags, reference_tags)
    else:
        runs = ((system.path, system.run) for system in opened)
        test = own_part({path: run.config for path, run in runs if path is not None and run is not None}, part)
    report = evaluation.evaluate(
        opened,
        test,
        form=evaluation.TextForm(raw, lowercase, tokenized, unk),
        vocabulary=None if vocabulary is None else Vocabulary.load(vocabulary),
        training=training,
        protector=None if protect is None else Protector.named(protect),
        terms=None if glossary is None and keep is None else evaluation.Terms(glossary, keep),
    )
    written = [] if out is None else report.write(out)
    if json_output:
        print(json.dumps(report.json()))
        return
    report.table().show()
    if report.differences:
        report.differences_table().show()
    print("\n".join([*report.forms(), *report.notes, *report.signatures()]))
    if written:
        print(f"written to {out}: {', '.join(written)}")


def calibrate(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    source: Annotated[Path | None, typer.Option(help="Lines to learn from (default: the run's dev part).")] = None,
    reference: Annotated[Path | None, typer.Option(help="Their translations by people.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    json_output: Annotated[bool, typer.Option("--json", help="Print what was learned as JSON.")] = False,
) -> None:
    """Teach a run how sure to be of its outputs, from lines with translations; `pointing train` ends with it."""
    from pointing.evaluation.calibration import calibrate_run, sentence
    from pointing.generation.confidence import CONFIDENCE

    learned = calibrate_run(run, source, reference, device)
    if json_output:
        print(learned.model_dump_json())
    else:
        print(f"{run / CONFIDENCE}: {sentence(learned)}")
