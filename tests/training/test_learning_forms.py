"""A whole run learns how words are written, and keeps every placeholder."""

import random

import pytest
import yaml

import pointing
from pointing.settings_file import read_config
from pointing.training.journal import read_journal
from pointing.training.loop import train

NOUNS = {"file": "Datei", "house": "Haus", "cat": "Katze", "word": "Wort"}
VERBS = {"open": "öffnen", "see": "sehen", "take": "nehmen"}


def pair(rng):
    """Open "ZORB12" now: %s! → Nun „ZORB12“ öffnen: %s!; the verb's capital goes to the first word."""
    (verb, verb_there), (noun, noun_there) = rng.choice(list(VERBS.items())), rng.choice(list(NOUNS.items()))
    name = rng.choice([str.upper, str.lower, str.capitalize])(f"zorb{rng.randint(0, 10**6)}")
    argument = rng.choice(["%s", "%d", "%(name)s", "{count}", "<b>"])
    end = rng.choice(["!", "."])
    if rng.random() < 0.5:
        return (
            f"{verb.capitalize()} the {noun} ({name}): {argument}{end}",
            f"{noun_there} ({name}) {verb_there}: {argument}{end}",
        )
    return f"now {verb} {name} {argument}, {noun}{end}", f"nun „{name}“ {verb_there} {argument}, {noun_there}{end}"


def write(folder):
    rng = random.Random(1)
    for name, pairs in (("train", 1500), ("dev", 60)):
        lines = [pair(rng) for _ in range(pairs)]
        for side in (0, 1):
            (folder / f"{name}.{side}").write_text("".join(f"{line[side]}\n" for line in lines), encoding="utf-8")
    data = {
        name: {"source": str(folder / f"{name}.0"), "target": str(folder / f"{name}.1")} for name in ("train", "dev")
    }
    settings = {
        "data": data,
        "text": {"forms": True, "protect": "software"},
        "vocabulary": {"source": 40, "target": 40},
        "model": {"embedding": 24, "hidden": 32, "init": 0.1, "feed": "source"},
        "training": {
            **{"optimizer": "adam", "learning_rate": 0.01, "batch": 32, "updates": 900, "validate_every": 450},
            **{"samples": 0, "threads": 1, "device": "cpu"},
        },
    }
    (folder / "x.yaml").write_text(yaml.safe_dump(settings))
    return folder / "x.yaml"


@pytest.mark.slow
def test_outputs_are_text_as_people_write_it(tmp_path):
    train(read_config(write(tmp_path)), tmp_path / "corpus", tmp_path / "run", False)
    assert read_journal(tmp_path / "run")[-1]["form_accuracy"] > 0.99
    rng = random.Random(2)
    pairs = [pair(rng) for _ in range(100)]
    outputs = pointing.load(tmp_path / "run").generate([source for source, _ in pairs])
    right = sum(output.text == target for output, (_, target) in zip(outputs, pairs, strict=True))
    assert right >= 95, [(o.text, t) for o, (_, t) in zip(outputs, pairs, strict=True) if o.text != t][:5]
