"""Every command of an installed release: its help, and the way from the demo to a file that is given away."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from release.extras import NEEDS, is_named, sentence
from release.steps import Steps

VERBS = """
import typer
from pointing.cli import app

def show(command, words):
    print(" ".join(words))
    for name, inner in getattr(command, "commands", {}).items():
        show(inner, [*words, name])

show(typer.main.get_command(app), [])
"""
LINE = "open my.conf with emacs29\n"
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "open my.conf with emacs29"\nmsgstr ""\n'
ROWS = 1000  # of a table to learn from
LINES = 50  # of a test


def check_helps(steps: Steps, bin: Path) -> None:
    verbs = steps.must("all verbs", [bin / "python", "-c", VERBS]).splitlines()
    steps.expect(len(verbs) > 20, f"{len(verbs)} verbs", verbs)
    for verb in verbs:
        done = steps.run([bin / "pointing", *verb.split(), "--help"])
        good = done.returncode == 0 and "Usage:" in done.stdout and not done.stderr
        steps.expect(good, f"pointing {verb} --help".replace("  ", " "), done.stderr)


def check_commands(steps: Steps, bin: Path, updates: int) -> None:
    """The demo, then everything else with its model."""
    pointing, folder = bin / "pointing", steps.folder
    steps.must(f"demo, {updates} updates", [pointing, "demo", "--updates", str(updates)])
    text = steps.must("generate", [pointing, "generate", "runs/demo", "--json"], LINE)
    tokens = json.loads(text)["tokens"]
    copied = [token for token in tokens if token["origin"] == "copied"]
    steps.expect(all(LINE[slice(*token["span"])] for token in copied), f"{len(copied)} copied words know their place")
    test = [Path("runs/demo-data") / f"test.{language}" for language in ("en", "fr")]
    for path in test:
        lines = (folder / path).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / path.name).write_text("".join(lines[:LINES]), encoding="utf-8")
    files = ["--source", test[0].name, "--reference", test[1].name]
    steps.must("evaluate", [pointing, "evaluate", "runs/demo", *files, "--beam", "1"])
    steps.must("check", [pointing, "check", "runs/demo"])
    steps.must("export", [pointing, "export", "runs/demo", "demo.pointing"])
    again = steps.must("generate with the exported file", [pointing, "generate", "demo.pointing", "--json"], LINE)
    steps.expect(again == text, "the exported file does what the run does", again)
    (folder / "app.po").write_text(PO, encoding="utf-8")
    steps.must("translate", [pointing, "translate", "demo.pointing", "app.po", "-o", "fr.po"])
    dictionary = [pointing, "dictionary", *(path.name for path in test), "--out", "dictionary.tsv"]
    steps.must("dictionary", dictionary)
    python = "import pointing; print(pointing.load('runs/demo').generate('open my.conf').text)"
    steps.must("the same in Python", [bin / "python", "-c", python])
    _own_data(steps, pointing)


def _own_data(steps: Steps, pointing: Path) -> None:
    """What the README says of a user's own table; the notes about TensorBoard are looked at on the way."""
    data = steps.folder / "runs/demo-data"
    sides = [(data / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "fr")]
    with (steps.folder / "strings.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("en", "fr"), *list(zip(*sides, strict=True))[:ROWS]])
    steps.must("init", [pointing, "init", "strings.csv", "--minutes", "1"])
    short = ["--set", "training.updates=20", "--set", "training.validate_every=20", "--set", "training.warmup=0"]
    done = steps.run([pointing, "train", "strings.yaml", *short])
    steps.expect(done.returncode == 0, "train on a table", done.stderr[-4000:])
    noted = [line for line in done.stderr.splitlines() if "pip install 'pointing[tensorboard]'" in line]
    steps.expect(len(noted) == 1, "train notes once that there is no TensorBoard", done.stderr[-4000:])
    text = steps.must("generate with that run", [pointing, "generate", "runs/strings", "--beam", "1"], LINE)
    steps.expect(len(text.splitlines()) == 1, "an output for one line", text)


def check_extras(steps: Steps, bin: Path) -> None:
    """Each command without its extra: exit code 2, nothing but one line, and nothing left behind."""
    places = {"RUN": "runs/demo", "CONFIG": "runs/demo/config.yaml"}
    before = set(steps.folder.iterdir())
    for extra, need in NEEDS.items():
        done = steps.run([bin / "pointing", *(places.get(word, word) for word in need.arguments)])
        good = done.returncode == 2 and is_named(done.stderr, extra) and not done.stdout
        steps.expect(good, f"without {extra}: pointing {need.arguments[0]}", f"{done.returncode} {done.stderr[-2000:]}")
    steps.expect(set(steps.folder.iterdir()) == before, "nothing is left behind", set(steps.folder.iterdir()) - before)
    done = steps.run([bin / "python", "-c", "import pointing.huggingface"])
    good = done.returncode == 1 and done.stderr.rstrip().endswith(sentence("transformers"))
    steps.expect(good, "without transformers: import pointing.huggingface", done.stderr[-2000:])
