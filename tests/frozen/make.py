"""Short seeded runs of every kind of model, and what each one writes, through the command line alone.

`python tests/frozen/make.py OUT` trains them anew. `tests/test_frozen.py` compares them with the runs kept here, so
that a change of structure can be told from a change of behaviour.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

from pointing.data import names

LINES = 200  # test lines that every run translates
SMALL = {
    "vocabulary.source": 120,
    "vocabulary.target": 120,
    "model.embedding": 12,
    "model.hidden": 16,
    "model.init": 0.1,
    "training.optimizer": "adam",
    "training.learning_rate": 0.02,
    "training.warmup": 5,
    "training.batch": 16,
    "training.updates": 48,
    "training.validate_every": 24,
    "training.samples": 1,
    "training.threads": 1,
}
DICTIONARY = {"pointers.policy": "dictionary", "pointers.dictionary": "induced"}
KINDS: dict[str, dict[str, object]] = {
    "softmax": {"model.output": "softmax"},
    "pointer-softmax": {"model.dropout": 0.1, "training.clip": 0.5},
    "pointer-network": {"model.output": "pointer-network"},
    "entities": {"pointers.policy": "entities"},
    "dictionary": {**DICTIONARY, "pointers.unreachable": "attention"},
    "bpe": {"text.subwords": "bpe", "training.optimizer": "adadelta", "training.learning_rate": 1.0},
    "large-vocabulary": {"training.large_vocabulary": 40, "model.feed": "source", "model.encoder_layers": 2},
}
SEARCH = {
    "softmax": ["unk_replace=true", "coverage=0.1"],
    "pointer-softmax": ["ranking=marginal", "nbest=3"],
    "pointer-network": ["normalize=gnmt"],
    "entities": ["min_length=3"],
    "dictionary": ["block_ngrams=2"],
    "bpe": ["allow_unk=true"],
    "large-vocabulary": ["large_vocabulary=40"],
}


def corpus(folder: Path) -> Path:
    """The demo's corpus in small, with an entity tag for every token."""
    names.bring(folder, train=600, dev=40, test=LINES)
    for path in [*folder.glob("*.en"), *folder.glob("*.fr")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        tagged = [" ".join(f"{word}￨{'B-NAME' if _is_name(word) else 'O'}" for word in line.split()) for line in lines]
        path.with_name(f"{path.name}.ner").write_text("".join(f"{line}\n" for line in tagged), encoding="utf-8")
    return folder


def _is_name(word: str) -> bool:
    return bool(re.search(r"[A-Z0-9.-]", word))


def train(kind: str, data: Path, folder: Path) -> None:
    """A run of one kind in `folder`."""
    parts = {
        part: {
            "source": str(data / f"{part}.en"),
            "target": str(data / f"{part}.fr"),
            **(
                {"source_tags": str(data / f"{part}.en.ner"), "target_tags": str(data / f"{part}.fr.ner")}
                if kind == "entities"
                else {}
            ),
        }
        for part in ("train", "dev")
    }
    import yaml

    recipe = folder.parent / f"{kind}.yaml"
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(yaml.safe_dump({"data": parts}))
    changes = [f"--set={key}={value}" for key, value in (SMALL | KINDS[kind]).items()]
    _run("train", str(recipe), "--out", str(folder), "--corpus", str(folder.parent / f"{kind}-corpus"), *changes)


def generate(kind: str, run: Path, data: Path) -> str:
    """What a run writes for the test lines, as `generate --json` prints it."""
    changes = [f"--set={change}" for change in SEARCH[kind]]
    tags = ["--tags", str(data / "test.en.ner")] if kind == "entities" else []
    return _run("generate", str(run), str(data / "test.en"), "--json", "--beam", "4", "--threads", "1", *changes, *tags)


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "pointing", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(out: Path) -> None:
    data = corpus(out / "data")
    for kind in KINDS:
        train(kind, data, out / kind)
        with gzip.GzipFile(out / kind / "outputs.jsonl.gz", "wb", mtime=0) as file:
            file.write(generate(kind, out / kind, data).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
