"""`pointing calibrate` on the command line: parse, call, print. Heavy imports wait until it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
