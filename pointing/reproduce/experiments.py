"""The experiments of the paper's §5, and of what goes beyond it: for each its rows, each a change to a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

PAPERS_SEARCH = {"beam": 5, "allow_unk": True}  # the paper's systems may write UNK
NEVER_UNK = {"beam": 5, "allow_unk": False}
REPLACED = {"beam": 5, "allow_unk": True, "unk_replace": True}
SUMMED = {**PAPERS_SEARCH, "ranking": "marginal"}
PAPERS_TEXT = {"text.forms": False}  # results of papers are of lower-cased tokens
GIVEN = "given"  # in a row's settings, stands for the file that --dictionary names


class Row(NamedTuple):
    """One system: a run of the recipe with some settings changed, and the settings of its search."""

    key: str
    name: str
    changes: Mapping[str, Any] = {}  # settings of the recipe, by their dotted names
    search: Mapping[str, Any] = PAPERS_SEARCH
    shared_run: str | None = None  # the key of another row, whose run this row uses; None: it has a run of its own
    translated_by: str | None = None  # the key of another row, whose dictionary translates what this row copies
    seeds: int = 1  # number of runs, with the seeds 1, 2, …

    @property
    def run_key(self) -> str:
        """The key of the row whose run this row uses: its own, or another row's."""
        return self.shared_run or self.key

    @property
    def takes_dictionary(self) -> bool:
        """True if its dictionary is the file that --dictionary names."""
        return self.changes.get("pointers.dictionary") == GIVEN


class Experiment(NamedTuple):
    """One of the paper's tables or figures, or a comparison of our own."""

    key: str
    title: str
    paper_section: str | None  # None: it is not in the paper
    recipes: tuple[str, ...]  # names of the recipes that we run it on
    groups: tuple[tuple[Row, ...], ...]  # the first row of a group is the baseline of the group's other rows
    columns: Mapping[str, str]  # a column's heading → the measure's name; empty: nothing is generated
    compared_columns: tuple[str, ...]  # the columns in which rows are compared with baseline and rivals
    paper_numbers: Mapping[str, Mapping[str, float]]  # the paper's results: system → column → number
    highlights: tuple[str, ...]  # keys of the rows in the summary and in the example outputs; these need the first two
    rivals: Mapping[str, str] = {}  # keys of rows that the others are also compared with → their name in a heading
    changes: Mapping[str, Any] = PAPERS_TEXT  # settings of all its rows
    curves_by: Literal["update", "core_minutes"] = "update"  # what learning curves are drawn over

    @property
    def place(self) -> str:
        """Where the paper has it, or that it has not."""
        return f"paper {self.paper_section}" if self.paper_section is not None else "beyond the paper"

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group]

    @property
    def takes_dictionary(self) -> bool:
        return any(row.takes_dictionary for row in self.rows)


def _three_ways(row: Row) -> list[Row]:
    """A row with a run of its own, and two rows that use this run but treat UNKs in another way."""
    return [
        row,
        Row(f"{row.key}-never-unk", f"{row.name}, UNK never written", {}, NEVER_UNK, shared_run=row.key),
        Row(f"{row.key}-replaced", f"{row.name}, UNK replaced by attention", {}, REPLACED, shared_run=row.key),
    ]


def _softmax(name: str) -> Row:
    return Row("softmax", name, SOFTMAX)


def _pointer_softmax(name: str) -> Row:
    return Row("pointer-softmax", name)


def _summed_out(name: str) -> list[Row]:
    """A word's probability is summed over z_t: only in the search, or in training too (See et al. 2017)."""
    return [
        Row("pointer-softmax-summed", f"{name}, copies and word summed", {}, SUMMED, shared_run="pointer-softmax"),
        Row("marginal", f"{name}, switch unsupervised, copies and word summed", {"training.loss": "marginal"}, SUMMED),
    ]


SOFTMAX = {"model.output": "softmax", "pointers.unreachable": "unk", "model.feed": "word"}  # it never points
RELU = Row("relu", "NMT + PS, ReLU switch", {"model.switch.activation": "relu", "model.switch.residual": False})
SUBWORDS = {**SOFTMAX, "pointers.policy": "none", "text.subwords": "bpe"}
DICTIONARY = {"pointers.policy": "dictionary", "pointers.dictionary": "induced"}
ARGMAX = {"pointers.unreachable": "attention"}  # with DICTIONARY, what the paper's §5.3 describes
TRANSLATED = Row(
    "softmax-translated",
    "NMT, UNK replaced by attention and dictionary, induced",
    search=REPLACED,
    shared_run="softmax",
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
    key="translation",
    title="English → French",
    paper_section="§5.3, Table 5",
    recipes=("debian-en-fr", "europarl-en-fr"),
    groups=(
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
    columns={"BLEU": "BLEU, tokenised", "chrF2": "chrF2", **COPYING},
    compared_columns=("BLEU",),
    paper_numbers={"NMT": {"BLEU": 20.19}, "NMT + PS": {"BLEU": 23.76}},
    highlights=("softmax", "pointer-softmax", "papers-pointers"),
    rivals={"softmax-replaced": "replacing UNK", TRANSLATED.key: "replacing and translating UNK"},
)

SUMMARIZATION_UNK = Experiment(
    key="summarization-unk",
    title="Summaries, pointers for unknown words",
    paper_section="§5.2, Tables 1, 3 and 4",
    recipes=("debian-synopsis", "headlines"),
    groups=(
        (
            *_three_ways(_softmax("NMT + LVT")),
            *_three_ways(_pointer_softmax("NMT + LVT + PS")),
            *_summed_out("NMT + LVT + PS"),
        ),
    ),
    columns={**ROUGE, **COPYING},
    compared_columns=("R-1 F1", "R-1 recall"),
    paper_numbers={
        "NMT + LVT": dict(zip(ROUGE, (34.87, 16.54, 32.27, 36.45, 17.41, 33.90), strict=True)),
        "NMT + LVT + PS": dict(zip(ROUGE, (35.19, 16.66, 32.51, 37.29, 17.75, 34.70), strict=True)),
    },
    highlights=("softmax", "pointer-softmax"),
    rivals={"softmax-replaced": "replacing UNK"},
)

ENTITIES = {"pointers.policy": "entities"}
NAMED = {**ENTITIES, "pointers.anonymize": False}
SUMMARIZATION_ENTITIES = Experiment(
    key="summarization-entities",
    title="Summaries, pointers for entities",
    paper_section="§5.2, Table 2",
    recipes=("headlines",),
    groups=(
        (
            Row("entities-softmax", "NMT + LVT, anonymised", {**ENTITIES, **SOFTMAX}),
            Row("entities", "NMT + LVT + PS, anonymised", ENTITIES),
        ),
        (
            Row("named-softmax", "NMT + LVT, names as they are", {**NAMED, **SOFTMAX}),
            Row("named", "NMT + LVT + PS, names as they are", NAMED),
        ),
    ),
    columns={**ROUGE, **COPYING},
    compared_columns=("R-1 F1", "R-1 recall"),
    paper_numbers={
        "NMT + LVT, anonymised": dict(zip(ROUGE, (34.89, 16.78, 32.37), strict=False)),
        "NMT + LVT + PS, anonymised": dict(zip(ROUGE, (35.11, 16.76, 32.55), strict=False)),
    },
    highlights=("entities-softmax", "entities", "named"),
)

LEARNING_CURVES = Experiment(
    key="learning-curves",
    title="Learning curves",
    paper_section="§5.3, Figure 4",
    recipes=("debian-en-fr", "europarl-en-fr"),
    groups=((_softmax("NMT"), RELU, _pointer_softmax("NMT + PS")),),
    columns={},  # nothing is generated for it: the curves are those of the runs' validations
    compared_columns=(),
    paper_numbers={
        "NMT": {"dev NLL": 65.26, "updates": 400_000},
        "NMT + PS, ReLU switch": {"dev NLL": 63.91, "updates": 200_000},
    },
    highlights=("softmax", "relu"),
)


def _lasting(updates: int) -> dict[str, Any]:
    """So many updates, with ten validations."""
    return {"training.updates": updates, "training.validate_every": updates // 10}


WORDS = {
    "text.subwords": None,
    "pointers.places": "tokens",
    "pointers.guidance": 0.0,
    "model.feed": "word",
    **_lasting(8400),
}
PIECES_ALONE = {**SOFTMAX, "pointers.policy": "none", "pointers.places": "tokens", "pointers.guidance": 0.0}
TRANSFORMER = {
    "model.kind": "transformer",
    "model.init": 0.01,  # the default: the recipe's is a GRU's
    "model.embedding": 192,
    "model.hidden": 512,
    "model.encoder_layers": 3,
    "model.decoder_layers": 2,
    "model.tied": True,
    "training.learning_rate": 0.001,
    "training.warmup": 500,
}
FAMILIARITY = {"pointers.familiarity": True}
SSRU = {**TRANSFORMER, "model.kind": "ssru"}

MODELS = Experiment(
    key="models",
    title="Kinds of models at equal minutes of one core",
    paper_section=None,
    recipes=("debian-en-de-pieces", "debian-en-fr-pieces"),
    groups=(
        (
            Row("softmax", "GRU on words", {**WORDS, **SOFTMAX}),
            Row("softmax-replaced", "GRU on words, UNK replaced by attention", {}, REPLACED, shared_run="softmax"),
            TRANSLATED._replace(name="GRU on words, UNK replaced by attention and dictionary"),
            Row("papers-pointers", "GRU on words + the paper's pointers", {**WORDS, **DICTIONARY, **ARGMAX}),
            Row("bpe", "GRU on pieces, no pointers", {**PIECES_ALONE, **_lasting(6000)}),
            Row(
                "transformer-bpe",
                "Transformer on pieces, no pointers",
                {**PIECES_ALONE, **TRANSFORMER, **_lasting(6000)},
            ),
            Row("pieces", "GRU, pieces in, words out", {"pointers.guidance": 0.0}, NEVER_UNK),
            Row("pieces-aligned", "GRU, pieces in, words out, aligned", {}, NEVER_UNK),
            Row("pieces-familiar", "GRU, pieces in, words out, aligned, familiarity", FAMILIARITY, NEVER_UNK),
            Row("transformer-aligned", "Transformer, pieces in, words out, aligned", TRANSFORMER, NEVER_UNK),
            Row("ssru-aligned", "SSRU, pieces in, words out, aligned", SSRU, NEVER_UNK),
        ),
    ),
    columns={
        "BLEU": "BLEU",
        "chrF2": "chrF2",
        "unseen recall": COPYING["unseen recall"],
        "source's unseen: recall": "source's unseen words: recall",
        "precision": "source's unseen words: precision",
        "copies right": COPYING["copies right"],
        "UNKs left": COPYING["UNKs left"],
    },
    compared_columns=("BLEU",),
    paper_numbers={},
    highlights=("softmax-replaced", "pieces-aligned", "papers-pointers"),
    rivals={"softmax-replaced": "replacing UNK", "papers-pointers": "the paper's pointers"},
    changes={},
    curves_by="core_minutes",
)

EXPERIMENTS = {
    experiment.key: experiment
    for experiment in (TRANSLATION, SUMMARIZATION_UNK, SUMMARIZATION_ENTITIES, LEARNING_CURVES, MODELS)
}
