"""A corpus of a few hundred made-up pairs and a model of a few hundred numbers: what whole training runs are tested on.

The target is the source word by word in another language; names, which no vocabulary has, are to be copied.
"""

import os
import random
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import forked
import pytest
import torch
import yaml

from pointing.cli import main
from pointing.corpus.preparation import prepare
from pointing.model.run import MODEL, make_model, read_tensors, start_run, write_tensors
from pointing.settings_file import read_config
from pointing.training.journal import read_journal
from pointing.training.loop import train

ROOT = Path(__file__).parent.parent
SETTINGS = {
    "text": {"tokenizer": "whitespace"},
    "vocabulary": {"source": 20, "target": 21, "min_count": 3},
    "model": {"embedding": 8, "hidden": 10, "encoder": 7, "dropout": 0.2},  # and the switch's noise
    "training": {
        **{"optimizer": "adam", "learning_rate": 0.01, "batch": 8, "updates": 60, "validate_every": 25},
        **{"samples": 0, "threads": 1, "device": "cpu"},
    },
}
STILL = {"model": {"dropout": 0.0, "switch": {"activation": "tanh"}}}  # nothing random after the first weights


def write_pairs(folder, name, pairs, seed):
    rng = random.Random(seed)
    source, target = [], []
    for _ in range(pairs):
        words = [rng.choice("abcdefghijklmnopq") for _ in range(rng.randint(1, 6))]
        words.insert(rng.randint(0, len(words)), f"name{rng.randint(0, 10**6)}")
        source.append(" ".join(words))
        target.append(" ".join(word if word.startswith("name") else word.upper() for word in words))
    (folder / f"{name}.source").write_text("\n".join(source) + "\n")
    (folder / f"{name}.target").write_text("\n".join(target) + "\n")


def merged(values, changes):
    """Nested settings with changes laid over them."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    return {key: merged(values.get(key), changes[key]) if key in changes else values[key] for key in values | changes}


def write(folder, *changes, train=200, dev=20):
    """The corpus's files, if they are not there yet, and a YAML file with settings and changes to them; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = {
        name: {side: str(folder / f"{name}.{side}") for side in ("source", "target")} for name in ("train", "dev")
    }
    for seed, (name, pairs) in enumerate([("train", train), ("dev", dev)]):
        if not (folder / f"{name}.source").exists():
            write_pairs(folder, name, pairs, seed)
    settings = SETTINGS | {"data": splits}
    for change in changes:
        settings = merged(settings, change)
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def train_in(folder, out, *changes, resume=False, **sizes):
    """A run in this process, on a corpus in `folder` that is made at the first call."""
    return train(read_config(write(folder, *changes, **sizes)), folder / "prepared", out, resume)


def tensors(out, name="training.safetensors"):
    return read_tensors(out / name)[0]


def same(one, other):
    """Are two runs' last weights, optimizer and random state, and their best weights, the same to the bit?"""
    return all(
        tensors(one, name).keys() == tensors(other, name).keys()
        and all(torch.equal(tensor, tensors(other, name)[key]) for key, tensor in tensors(one, name).items())
        for name in ("training.safetensors", "model.safetensors")
    )


def events(out):
    """What metrics.jsonl says, without times."""
    timed = {"seconds", "core_minutes", "words_per_second"}
    return [{key: value for key, value in line.items() if key not in timed} for line in read_journal(out)]


def command(*arguments, processes=1):
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    start = [] if processes == 1 else several
    return [sys.executable, *start, "-m", "pointing", *map(str, arguments)]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def pointing(*arguments, folder, processes=1):
    """The command in processes of its own, to its end."""
    if processes == 1:
        return forked.run(*arguments, cwd=folder, env=environment())
    return subprocess.run(
        command(*arguments, processes=processes),
        **{"cwd": folder, "env": environment(), "capture_output": True, "text": True, "check": False, "timeout": 300},
    )


def said(*arguments):
    """What the command says in this process: its exit code and standard error."""
    code, _, error = ran(*arguments)
    return code, error


def ran(*arguments):
    """The same with standard output between them."""
    out, error = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(error), redirect_stdout(out):
        patch.setattr(sys, "argv", ["pointing", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
    return stopped.value.code, out.getvalue(), error.getvalue()


def untrained(folder, *changes, name="run", seed=0, **sizes):
    """A run's folder with large random weights, on a corpus in `folder` that is made at the first call."""
    config = read_config(write(folder, *changes, **sizes))
    corpus, _ = prepare(config, folder / f"prepared-{name}", workers=1)
    start_run(folder / name, config, corpus)
    torch.manual_seed(seed)
    model = make_model(corpus.lexicon)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.8)
    about = {"update": 7, "placeholders": corpus.lexicon.target.placeholders}
    write_tensors(folder / name / MODEL, dict(model.named_parameters()), about)
    return folder / name


def with_settings(run, **sections):
    """The same run with other settings."""
    return run._replace(lexicon=replace(run.lexicon, config=run.config.model_copy(update=sections)))
