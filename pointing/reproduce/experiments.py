"""What the paper's §5 compares: for each table or figure the rows, each a change to a recipe, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

PAPERS_SEARCH = {"beam": 5, "allow_unk": True}  # the paper's systems may write UNK
NEVER_UNK = {"beam": 5, "allow_unk": False}
REPLACED = {"beam": 5, "allow_unk": True, "unk_replace": True}
SUMMED = {**PAPERS_SEARCH, "ranking": "marginal"}
GIVEN = "given"  # stands for the dictionary file that --dictionary names


class Row(NamedTuple):
    """One system: a run of the recipe with some settings changed, and how it searches."""

    key: str
    name: str
    changes: Mapping[str, Any] = {}  # settings of the recipe, by their dotted names
    search: Mapping[str, Any] = PAPERS_SEARCH
    run: str | None = None  # the key of another row, whose run this one searches with
    translated_by: str | None = None  # the key of another row, whose dictionary translates what this one copies
    seeds: int = 1  # so many runs are made

    @property
    def trained(self) -> str:
        """The key of the run that it searches with."""
        return self.run or self.key

    @property
    def given_words(self) -> bool:
        """Is its dictionary the file that --dictionary names?"""
        return self.changes.get("pointers.dictionary") == GIVEN


class Experiment(NamedTuple):
    key: str
    title: str
    where: str  # in the paper
    recipes: tuple[str, ...]  # on which we make it
    groups: tuple[tuple[Row, ...], ...]  # in each, the first row is what the others are compared with
    shown: Mapping[str, str]  # a column's heading → the measure's name
    compared: tuple[str, ...]  # the columns in which the others are compared with the first row, and with the rivals
    printed: Mapping[str, Mapping[str, float]]  # what the paper has: a system → column → number
    shows: tuple[str, ...]  # rows of summaries and shown outputs; the first two are there whenever these are
    rivals: Mapping[str, str] = {}  # rows that the others are compared with too → what a heading calls them

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group]

    @property
    def takes_words(self) -> bool:
        return any(row.given_words for row in self.rows)


def _three_ways(row: Row) -> list[Row]:
    """A run, and the two other ways to deal with the UNKs that it would write."""
    return [
        row,
        Row(f"{row.key}-never-unk", f"{row.name}, UNK never written", {}, NEVER_UNK, run=row.key),
        Row(f"{row.key}-replaced", f"{row.name}, UNK replaced by attention", {}, REPLACED, run=row.key),
    ]


def _softmax(name: str) -> Row:
    return Row("softmax", name, SOFTMAX)


def _pointer_softmax(name: str) -> Row:
    return Row("pointer-softmax", name)


def _summed_out(name: str) -> list[Row]:
    """A word's probability summed over z_t: at test alone, and in training too (See et al. 2017)."""
    return [
        Row("pointer-softmax-summed", f"{name}, copies and word summed", {}, SUMMED, run="pointer-softmax"),
        Row(
            "marginal",
            f"{name}, switch unsupervised, copies and word summed",
            {"training.loss": "marginal"},
            SUMMED,
        ),
    ]


SOFTMAX = {"model.output": "softmax"}
RELU = Row("relu", "NMT + PS, ReLU switch", {"model.switch.activation": "relu", "model.switch.residual": False})
SUBWORDS = {**SOFTMAX, "pointers.policy": "none", "text.subwords": "bpe"}
DICTIONARY = {"pointers.policy": "dictionary", "pointers.dictionary": "induced"}
ARGMAX = {"pointers.unreachable": "attention"}  # with DICTIONARY, what the paper's §5.3 describes
TRANSLATED = Row(
    "softmax-translated",
    "NMT, UNK replaced by attention and dictionary, induced",
    search=REPLACED,
    run="softmax",
    translated_by="papers-pointers",
)

COPYING = {
    "OOV recall": "out-of-shortlist recall",
    "OOV precision": "out-of-shortlist precision",
    "unseen recall": "recall of words seen 0 times",
    "copies right": "copies right",
    "UNKs left": "UNKs left",
}
ROUGE = {f"R-{n} {kind}": f"ROUGE-{n} {kind}" for kind in ("F1", "recall") for n in "12L"}

TRANSLATION = Experiment(
    "translation",
    "English → French",
    "§5.3, Table 5",
    ("debian-en-fr", "europarl-en-fr"),
    (
        (
            *_three_ways(_softmax("NMT")),
            TRANSLATED,
            *_three_ways(_pointer_softmax("NMT + PS")),
            Row("dictionary-induced", "NMT + PS + dictionary, induced", DICTIONARY),
            Row("dictionary-given", "NMT + PS + dictionary, given", {**DICTIONARY, "pointers.dictionary": GIVEN}),
            Row("attention", "NMT + PS, unreachable: argmax l", ARGMAX),
            Row("papers-pointers", "NMT + PS + dictionary + argmax l, as in the paper", {**DICTIONARY, **ARGMAX}),
            RELU,
            Row("fed-source", "NMT + PS, copies fed back as they were read", {"model.feed": "source"}),
            *_summed_out("NMT + PS"),
            Row("bpe", "NMT on BPE subwords", SUBWORDS),
        ),
    ),
    {"BLEU": "BLEU, tokenised", "chrF2": "chrF2", **COPYING},
    ("BLEU",),
    {"NMT": {"BLEU": 20.19}, "NMT + PS": {"BLEU": 23.76}},
    ("softmax", "pointer-softmax", "papers-pointers"),
    {"softmax-replaced": "replacing UNK", TRANSLATED.key: "replacing and translating UNK"},
)

SUMMARIZATION_UNK = Experiment(
    "summarization-unk",
    "Summaries, pointers for unknown words",
    "§5.2, Tables 1, 3 and 4",
    ("debian-synopsis", "headlines"),
    (
        (
            *_three_ways(_softmax("NMT + LVT")),
            *_three_ways(_pointer_softmax("NMT + LVT + PS")),
            *_summed_out("NMT + LVT + PS"),
        ),
    ),
    {**ROUGE, **COPYING},
    ("R-1 F1", "R-1 recall"),
    {
        "NMT + LVT": dict(zip(ROUGE, (34.87, 16.54, 32.27, 36.45, 17.41, 33.90), strict=True)),
        "NMT + LVT + PS": dict(zip(ROUGE, (35.19, 16.66, 32.51, 37.29, 17.75, 34.70), strict=True)),
    },
    ("softmax", "pointer-softmax"),
    {"softmax-replaced": "replacing UNK"},
)

ENTITIES = {"pointers.policy": "entities"}
NAMED = {**ENTITIES, "pointers.anonymize": False}
SUMMARIZATION_ENTITIES = Experiment(
    "summarization-entities",
    "Summaries, pointers for entities",
    "§5.2, Table 2",
    ("headlines",),
    (
        (
            Row("entities-softmax", "NMT + LVT, anonymised", {**ENTITIES, **SOFTMAX}),
            Row("entities", "NMT + LVT + PS, anonymised", ENTITIES),
        ),
        (
            Row("named-softmax", "NMT + LVT, names as they are", {**NAMED, **SOFTMAX}),
            Row("named", "NMT + LVT + PS, names as they are", NAMED),
        ),
    ),
    {**ROUGE, **COPYING},
    ("R-1 F1", "R-1 recall"),
    {
        "NMT + LVT, anonymised": dict(zip(ROUGE, (34.89, 16.78, 32.37), strict=False)),
        "NMT + LVT + PS, anonymised": dict(zip(ROUGE, (35.11, 16.76, 32.55), strict=False)),
    },
    ("entities-softmax", "entities", "named"),
)

LEARNING_CURVES = Experiment(
    "learning-curves",
    "Learning curves",
    "§5.3, Figure 4",
    ("debian-en-fr", "europarl-en-fr"),
    ((_softmax("NMT"), RELU, _pointer_softmax("NMT + PS")),),
    {},  # nothing is generated for it: the curves are those of the runs' validations
    (),
    {"NMT": {"dev NLL": 65.26, "updates": 400_000}, "NMT + PS, ReLU switch": {"dev NLL": 63.91, "updates": 200_000}},
    ("softmax", "relu"),
)

EXPERIMENTS = {one.key: one for one in (TRANSLATION, SUMMARIZATION_UNK, SUMMARIZATION_ENTITIES, LEARNING_CURVES)}
