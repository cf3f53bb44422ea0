"""`pointing demo`: generates a corpus full of names, trains both models on it, and shows their outputs on new names."""

from __future__ import annotations

from pathlib import Path

from pointing.config import Config, checked
from pointing.data import names
from pointing.evaluation.evaluate import System, evaluate
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.generation.command import load_generator
from pointing.generation.output import Output
from pointing.model.run import SETTINGS, load_run
from pointing.system.progress import say
from pointing.system.tables import Table
from pointing.training.loop import train

COPYING = ("out-of-shortlist recall", "recall of words seen 0 times", "words invented", "UNKs left")
MEASURES = ("BLEU", "exact match (tokens)", *COPYING)  # rows of the table
LINES = [
    "Zorblatta copied quux.conf to hal9000 this morning",
    "please install pointing on deepthought42",
    "libfoo7 3.1.4 conflicts with barbaz-qux",
    "Guybrush is the maintainer of grog-xxd",
]


def demo_settings(data: Path, output: str, updates: int) -> Config:
    files = {
        split: {"source": str(data / f"{split}.en"), "target": str(data / f"{split}.fr")} for split in ("train", "dev")
    }
    training = {
        "optimizer": "adam",
        "learning_rate": 0.003,
        "warmup": 50,
        "decay": "linear",
        "batch": 64,
        "updates": updates,
        "validate_every": max(1, updates // 3),
        "samples": 2,
        "threads": 1,
    }
    vocabulary = {"source": 300, "target": 300, "min_count": 5}
    model = {"embedding": 64, "hidden": 96, "output": output, "init": 0.1}
    return checked(Config, {"data": files, "vocabulary": vocabulary, "model": model, "training": training})


def run_demo(out: Path, updates: int = 800) -> tuple[Table, list[Output]]:
    """Trains both models, or resumes them. Returns their scores on unseen names, and a few outputs to look at.

    The pointer softmax's run is `out`; the softmax's run, the text and the corpus are folders beside it.
    """
    data, corpus = out.parent / f"{out.name}-data", out.parent / f"{out.name}-corpus"
    if not data.exists():
        say(str(names.bring(data)))
    systems = []
    for output, folder in (("softmax", out.parent / f"{out.name}-softmax"), ("pointer-softmax", out)):
        say(f"\n{output}, into {folder}")
        train(demo_settings(data, output, updates), corpus, folder, resume=(folder / SETTINGS).exists())
        systems.append(System(output, load_run(folder)))
    report = evaluate(systems, EvaluationSet.read(data / "test.en", [data / "test.fr"]))
    whole = report.table()
    rows = [row for row in whole.rows if row[0] in MEASURES]
    table = Table("1,000 test sentences; none of their names was seen in training", whole.header, rows)
    return table, load_generator(out, "cpu").generate(LINES)
