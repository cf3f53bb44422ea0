"""A generated corpus of short sentences about software, English → French, full of names outside any shortlist.

Sentences come from a small grammar; the names of packages, machines, people, versions and files are invented. In some
sentences the names have another order than in the translation, so a model cannot just count positions. No name of dev
and test occurs in the training text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from pointing.data.parallel import Summary, writing

# {p} {q} packages, {h} a machine, {n} a person, {v} a version, {f} a file; {a} {w} {k} an entry of the lists below;
# {la} and {une}: the French of {k} with its article, or with this one
SENTENCES = [
    ("please install {p} on {h}", "veuillez installer {p} sur {h}"),
    ("{p} depends on {q}", "{q} est requis par {p}"),
    ("{n} removed {p} from {h} {w}", "{w} , {n} a supprimé {p} de {h}"),
    ("the {a} release of {p} is {v}", "{v} est la version {a} de {p}"),
    ("{n} is the maintainer of {p}", "le responsable de {p} est {n}"),
    ("open {f} with {p}", "ouvrez {f} avec {p}"),
    ("{p} {v} conflicts with {q}", "{q} est en conflit avec {p} {v}"),
    ("{h} could not find {f}", "{f} est introuvable sur {h}"),
    ("ask {n} to upgrade {p} to {v}", "demandez à {n} de mettre à niveau {p} vers {v}"),
    ("a {a} {k} for {p} was written by {n}", "{n} a écrit {une} {a} pour {p}"),
    ("{n} copied {f} to {h} {w}", "{w} , {f} a été copié sur {h} par {n}"),
    ("this package contains the {k} of {p}", "ce paquet contient {la} de {p}"),
    ("{p} needs {q} and {v} of memory", "{p} a besoin de {q} et de {v} de mémoire"),
    ("the {k} on {h} belongs to {n}", "{la} sur {h} appartient à {n}"),
]
ADJECTIVES = [
    ("fast", "rapide"), ("stable", "stable"), ("simple", "simple"), ("useful", "utile"), ("modern", "moderne"),
    ("free", "libre"), ("flexible", "souple"), ("strange", "étrange"),
]  # fmt: skip
WHEN = [
    ("yesterday", "hier"), ("today", "aujourd’hui"), ("last week", "la semaine dernière"), ("this morning", "ce matin"),
    ("in march", "en mars"), ("at night", "la nuit"),
]  # fmt: skip
KINDS = [
    ("library", "la bibliothèque"), ("documentation", "la documentation"), ("configuration", "la configuration"),
    ("interface", "l’ interface"), ("application", "l’ application"), ("extension", "l’ extension"),
]  # fmt: skip
START = [
    "b", "br", "c", "d", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "qu", "r", "s", "t", "tr", "v", "z",
]  # fmt: skip
MIDDLE = ["a", "e", "i", "o", "u", "y"]
END = ["n", "r", "s", "x", "l", "m", "t", "k", "nd"]


class Names:
    """Invented names, each only once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.used: set[str] = set()

    def __call__(self, kind: str) -> str:
        while (name := self._invent(kind)) in self.used:
            pass
        self.used.add(name)
        return name

    def _invent(self, kind: str) -> str:
        pick = self.random.choice
        word = "".join(pick(START) + pick(MIDDLE) for _ in range(pick([1, 2, 2, 3]))) + pick(["", *END])
        number = self.random.randrange(1, 1000)
        if kind in "pq":
            compound = f"{word}-{pick(START)}{pick(MIDDLE)}{pick(END)}"
            return pick([word, f"lib{word}{number}", compound, f"{word}{number}"])
        if kind == "h":
            return f"{word}{number}"
        if kind == "f":
            return f"{word}.{pick(['conf', 'txt', 'xml', 'log'])}"
        if kind == "v":
            return f"{number}.{self.random.randrange(100)}.{self.random.randrange(1000)}"
        return word.capitalize() + pick(["", "son", "eau", "ova"]) + pick(MIDDLE) + pick(END)


def pairs(count: int, names: Names) -> Iterator[tuple[str, str]]:
    """Random sentences with their translations."""
    pick = names.random.choice
    for _ in range(count):
        english, french = pick(SENTENCES)
        invented = {slot: names(slot) for slot in "pqhnvf" if f"{{{slot}}}" in english}
        adjective, when, (kind, la) = pick(ADJECTIVES), pick(WHEN), pick(KINDS)
        une = f"une {la.split()[-1]}"
        translation = french.format(**invented, a=adjective[1], w=when[1], la=la, une=une)
        yield english.format(**invented, a=adjective[0], w=when[0], k=kind), translation


def bring(out: str | Path, train: int = 20_000, dev: int = 500, test: int = 1000, seed: int = 1) -> Summary:
    """Writes `train.en`, `train.fr` and so on; the same seed gives the same text."""
    names = Names(seed)
    with writing("generated sentences with names, en-fr", out, ["en", "fr"]) as corpus:
        for split, count in (("train", train), ("dev", dev), ("test", test)):
            for english, french in pairs(count, names):
                corpus.add(split, english, french)
    return corpus.summary()
