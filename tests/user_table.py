"""A table as a user has it: strings of a program with names in them, which their translations copy."""

import csv
import random
import sys

from pointing.cli import main

VERBS = {"open": "ouvrez", "close": "fermez", "start": "lancez", "stop": "arrêtez", "copy": "copiez"}
THINGS = {"the file": "le fichier", "the window": "la fenêtre", "the folder": "le dossier", "the key": "la clé"}


def pairs(count, seed=1):
    """English and French, each with a name that no other pair has."""
    rng = random.Random(seed)
    names = set()
    while len(names) < count:
        names.add("".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(4)).capitalize())
    for name in sorted(names):
        verb, thing = rng.choice(list(VERBS)), rng.choice(list(THINGS))
        yield f"{verb.capitalize()} {thing} of {name}", f"{VERBS[verb].capitalize()} {THINGS[thing]} de {name}"


def write_table(path, count=200, header=("English", "French"), seed=1):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(pairs(count, seed))
    return path


def run(monkeypatch, capsys, *arguments):
    """The command in this process: its exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["pointing", *map(str, arguments)])
    capsys.readouterr()
    try:
        main()
    except SystemExit as stop:
        return (stop.code or 0, *capsys.readouterr())
    return (0, *capsys.readouterr())
