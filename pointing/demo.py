"""`pointing demo`: a generated corpus full of names, both models trained on it, and what they make of unseen names."""

from __future__ import annotations

from pathlib import Path

from pointing.config import Config, checked
from pointing.data import names
from pointing.evaluation.evaluate import System, evaluate
from pointing.evaluation.measures import EvaluationSet
from pointing.generation.command import load_generator
from pointing.generation.output import Output
from pointing.model.run import load_run
from pointing.system.progress import say
from pointing.system.tables import Table
from pointing.training.loop import train

OUTPUTS = {"softmax": "demo-softmax", "pointer-softmax": "demo"}  # each with its run's folder beside the other
SHOWN = (
    "BLEU",
    "exact match",
    "out-of-shortlist recall",
    "recall of words seen 0 times",
    "words invented",
    "UNKs left",
)
LINES = [
    "Zorblatta copied quux.conf to hal9000 this morning",
    "please install pointing on deepthought42",
    "libfoo7 3.1.4 conflicts with barbaz-qux",
    "Guybrush is the maintainer of grog-xxd",
]


def settings(data: Path, output: str, updates: int) -> Config:
    files = {
        part: {"source": str(data / f"{part}.en"), "target": str(data / f"{part}.fr")} for part in ("train", "dev")
    }
    training = {
        **{"optimizer": "adam", "learning_rate": 0.003, "warmup": 50, "decay": "linear", "batch": 64},
        **{"updates": updates, "validate_every": max(1, updates // 3), "samples": 2, "threads": 1},
    }
    return checked(
        Config,
        {
            "data": {**files, "languages": ["en", "fr"]},
            "vocabulary": {"source": 300, "target": 300, "min_count": 5},
            "model": {"embedding": 64, "hidden": 96, "output": output, "init": 0.1},
            "training": training,
        },
    )


def run(out: Path, updates: int = 800) -> tuple[Table, list[Output]]:
    """Trains, or goes on where it was cut off; returns the scores on unseen names, and a few outputs to look at."""
    data, corpus = out.parent / f"{out.name}-data", out.parent / f"{out.name}-corpus"
    if not data.exists():
        say(str(names.bring(data)))
    systems = []
    for output, name in OUTPUTS.items():
        folder = out if name == "demo" else out.parent / f"{out.name}-softmax"
        say(f"\n{output}, into {folder}")
        train(settings(data, output, updates), corpus, folder, resume=(folder / "config.yaml").exists())
        systems.append(System(output, load_run(folder)))
    report = evaluate(systems, EvaluationSet.read(data / "test.en", [data / "test.fr"]))
    whole = report.table()
    rows = [row for row in whole.rows if row[0] in SHOWN]
    table = Table("1,000 test sentences; none of their names was seen in training", whole.header, rows)
    return table, load_generator(out, "cpu").generate(LINES)
