"""What a prepared corpus holds, in the paper's own terms (§5.2): counts, shares, and examples for people to read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from pointing.config import Config, Training
from pointing.corpus.batches import padding_share, plan
from pointing.corpus.examples import Corpus
from pointing.system.tables import Table
from pointing.system.terminal import visible
from pointing.text.tokenizer import subscript
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

TOO_DIFFERENT = 3  # times as many pointers in the dev text as in the training text deserve a warning
FEWEST_POINTERS = 20  # of the dev text, for such a warning


@dataclass
class Statistics:
    """What a split holds, in the paper's own terms (§5.2)."""

    pairs: int = 0
    skipped: dict[str, int] = field(default_factory=dict)  # reason → pairs
    first_skipped: dict[str, int] = field(default_factory=dict)  # reason → line
    source_tokens: int = 0
    target_tokens: int = 0  # without the end of sentence
    pointers: int = 0
    unknown: int = 0  # target words, or pieces, outside the shortlist
    same_word: int = 0  # of those, found in the source as they are
    dictionary: int = 0  # how many more translated copies reach; negative if translations hide more same words
    source_pieces: int = 0  # what the model reads: the tokens, or with subwords their pieces
    target_pieces: int = 0

    def add(self, other: Statistics) -> None:
        for reason, count in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.first_skipped.setdefault(reason, other.first_skipped[reason])
        for counter in fields(self):
            if counter.type == "int":
                setattr(self, counter.name, getattr(self, counter.name) + getattr(other, counter.name))

    def skip(self, reason: str, line: int) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.first_skipped.setdefault(reason, line)

    def shares(self) -> dict[str, float]:
        pairs, pieces, unknown = (max(1, n) for n in (self.pairs, self.target_pieces, self.unknown))
        tokens = self.source_tokens + self.target_tokens
        return {
            "pointers_per_100": 100 * self.pointers / pairs,
            "pieces_per_word": (self.source_pieces + self.target_pieces) / max(1, tokens),
            "unknown_share": self.unknown / pieces,
            "reached_by_same_word": self.same_word / unknown,
            "reached_by_same_word_or_dictionary": (self.same_word + self.dictionary) / unknown,
        }

    def reasons(self) -> str:
        """Why pairs were left out, in words."""
        return ", ".join(
            f"{count:,} have {reason} (first on line {self.first_skipped[reason]:,})"
            for reason, count in self.skipped.items()
        )


def corpus_statistics(corpus: Corpus, training: Training) -> dict[str, dict[str, Any]]:
    """What was counted, and how much padding batches of this kind would have."""
    about = {}
    for name, counted in corpus.about["statistics"].items():
        split = corpus.split(name)
        lengths = split.source_lengths, split.target_lengths
        batches = plan(*lengths, training.batch, training.batch_by, training.seed, epoch=0)
        about[name] = {**counted, "padding": padding_share(*lengths, batches)}
    return about


def corpus_warnings(corpus: Corpus, config: Config) -> list[str]:
    """What will keep a model with these settings from learning to point, in words; empty if nothing will."""
    if config.model.output == "softmax" or config.pointers.policy == "none":
        return []
    train, dev = (corpus.about["statistics"][name] for name in ("train", "dev"))
    advice = "lower vocabulary.target, or raise vocabulary.min_count or vocabulary.copied_min_count"
    shortlist = f"the shortlist of {len(corpus.lexicon.target):,}"
    if not train["pointers"] and not train["unknown"]:
        return [
            f"nothing can be pointed at: {shortlist} has every word of the training text, so that copying is not "
            f"learned and new names are not copied: {advice}"
        ]
    if not train["pointers"]:
        return [
            f"nothing can be pointed at: of the {train['unknown']:,} words of the training text outside {shortlist} "
            "none stands in its source, so that there is nothing to learn copying from"
        ]
    rates = train["pointers_per_100"], dev["pointers_per_100"]
    if rates[1] > TOO_DIFFERENT * rates[0] and dev["pointers"] >= FEWEST_POINTERS:
        return [
            f"the training text has {rates[0]:.1f} pointers in 100 pairs, the dev text {rates[1]:.1f}: "
            f"the model hardly learns to copy what it does not know: {advice}"
        ]
    return []


def statistics_tables(corpus: Corpus, training: Training) -> list[Table]:
    """The statistics as people read them."""
    about = corpus_statistics(corpus, training)
    rows = [
        [
            name,
            f"{s['pairs']:,}",
            f"{sum(s['skipped'].values()):,}",
            f"{s['target_tokens']:,}",
            f"{s['pointers_per_100']:.1f}",
            f"{s['unknown_share']:.2%}",
            f"{s['reached_by_same_word']:.1%}",
            f"{s['reached_by_same_word_or_dictionary']:.1%}" if corpus.lexicon.dictionary else "–",
            f"{s['padding']:.1%}",
        ]
        for name, s in about.items()
    ]
    header = ["split", "pairs", "left out", "target words", "pointers per 100", "outside the shortlist"]
    header += ["of those, same word", "or dictionary", "padding"]
    units = "words" if corpus.lexicon.target.merges is None else "pieces"
    title = f"{corpus.folder}: {len(corpus.lexicon.source):,} source and {len(corpus.lexicon.target):,} target {units}"
    if corpus.lexicon.target.merges is not None:
        header[4:4] = ["pieces per word"]
        for row, s in zip(rows, about.values(), strict=True):
            row[4:4] = [f"{s['pieces_per_word']:.2f}"]
    left_out = [
        [f"{name}: {reason}", f"{count:,}", f"{s['first_skipped'][reason]:,}"]
        for name, s in about.items()
        for reason, count in s["skipped"].items()
    ]
    counts = Table(title, header, rows)
    return [counts, Table("Left out", ["why", "pairs", "first on line"], left_out)] if left_out else [counts]


def show_example(corpus: Corpus, row: int, split: str = "train") -> str:
    """One example for people: its raw lines, and for each target word where it is to come from."""
    example = corpus.split(split)[row]
    target = corpus.lexicon.target
    V = len(target)
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    learned = [f"{raw[c - V]}{subscript(c - V)}" if c >= V else _word(target, c) for c in example["target"]]
    learned = [word.rstrip() for word in learned]  # the mark of a piece ends with a space
    shown = {
        "source": " ".join(f"{word}{subscript(position)}" for position, word in enumerate(raw)),
        "target": example["target_text"],
        "learned": " ".join(learned),
    }
    lines = (f"  {name:<9}{visible(text)}" for name, text in shown.items())
    return "\n".join([f"{split}, line {example['line']}", *lines])


def _word(vocabulary: Vocabulary, number: int) -> str:
    """A word as it is, and what is none in angle brackets."""
    return vocabulary.word(number) or {EOS: "‹end›", UNK: "‹unknown›"}.get(number, f"‹entity {number - FIRST + 1}›")
