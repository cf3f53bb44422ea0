"""The commands of docs/your-own-strings.md, one after the other, as a reader types them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "your-own-strings.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith(("python ", "pointing ", "echo "))
]
QUICK = " --set training.updates=30 --set training.validate_every=15 --set training.warmup=5"
FILES = {  # of the reader's own, which the page names
    "new.txt": "Compare Zorblatt Pro with Quuxon 99\nHello Ada Lovelace, welcome back!\n",
    "app.pot": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    '#, c-format\nmsgid "%s: cannot open zorblatt-7.txt: %s"\nmsgstr ""\n',
    "new.csv": "key,English,French\na,Compare Zorblatt Pro with Quuxon 99,\nb,Hello Ada!,Bonjour Ada !\n",
    "terms.tsv": "welcome\tsalut\n",
    "names.txt": "Zorblatt Pro\n",
}


def shell(command, folder):
    """What a command prints, as typed in a shell where the environment is active."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    python_path = {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | python_path | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return result.stdout


def follow(folder, quick):
    """Types every command of the page; returns what each of them printed."""
    (folder / "docs").symlink_to(ROOT / "docs")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return {
        command: shell(command + QUICK if quick and command.startswith("pointing train") else command, folder)
        for command in COMMANDS
    }


def test_every_command_of_the_tutorial_works(tmp_path):
    printed = follow(tmp_path, quick=True)
    assert len(printed) >= 10
    assert "3,000" in PAGE
    assert "languages: en → fr" in printed["pointing init strings.csv --minutes 10"]
    assert "zorblatt-7.txt" in (tmp_path / "fr.po").read_text()
    assert "b,Hello Ada!,Bonjour Ada !" in (tmp_path / "translated.csv").read_text()
    with_terms = printed["pointing generate runs/strings new.txt --glossary terms.tsv --keep names.txt"].splitlines()
    assert "Zorblatt Pro" in with_terms[0]
    assert "salut" in with_terms[1].lower()
    assert (tmp_path / "page.html").exists()
    assert (tmp_path / "review.html").exists()


@pytest.mark.slow
def test_ten_minutes_make_a_model_whose_unseen_names_are_right(tmp_path):
    follow(tmp_path, quick=False)
    scores = json.loads(shell("pointing evaluate runs/strings --json", tmp_path))["systems"][0]["scores"]
    assert scores["recall of words seen 0 times"]["score"] >= 95
    assert scores["exact match"]["score"] >= 90
