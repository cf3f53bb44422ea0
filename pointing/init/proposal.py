"""Settings that fit the data, this machine and the user's time: chosen from counts and from a short timing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pointing.config import Config, checked
from pointing.corpus.word_counts import WordCounts
from pointing.init.findings import Findings
from pointing.text.protected import is_protected


class Size(NamedTuple):
    """What suits data of at most so many pairs. Small data: fewer words, more passes, more dropout."""

    pairs: float
    words: int  # of the target vocabulary, at most
    min_count: int
    batch: int  # pairs of at most SHORT tokens; of longer ones half as many, if these are more than 64
    passes: int  # through the training data, at most
    dropout: float


SIZES = (
    Size(2_000, words=3_000, min_count=2, batch=16, passes=80, dropout=0.3),
    Size(20_000, words=5_000, min_count=2, batch=32, passes=50, dropout=0.3),
    Size(60_000, words=6_000, min_count=3, batch=64, passes=15, dropout=0.2),
    Size(200_000, words=8_000, min_count=3, batch=128, passes=10, dropout=0.1),
    Size(math.inf, words=12_000, min_count=5, batch=128, passes=6, dropout=0.0),
)
FEWEST_UPDATES = 500
SHORT = 30  # tokens of source and target together
ENOUGH_POINTERS = 20_000  # copied words that training needs to learn pointing from, if there are as many
MOST_OF_COPIES, LEAST_OF_COPIES = 0.8, 0.2  # share of all copied words that are pointers, in small and in large data
SPANS_MATTER, SPANS_ARE_KEPT = 0.01, 0.5  # spans are protected if this share of lines has some, and this share keeps it
VALIDATIONS = 12
WARMUP = 300


@dataclass(frozen=True)
class Proposal:
    """Settings as their file has them, and the reasons for those that the data decided."""

    values: dict[str, Any]
    reasons: dict[str, str]  # by whole key, such as text.protect
    size: Size

    @property
    def config(self) -> Config:
        return checked(Config, self.values)

    def for_time(self, minutes: float, seconds_per_update: float, pairs: int) -> tuple[Proposal, float]:
        """The same with as many updates as the minutes allow, and how many minutes these take."""
        allowed = int(60 * minutes / seconds_per_update)
        batch = self.values["training"]["batch"]
        enough = self.size.passes * -(-pairs // batch)
        updates = max(FEWEST_UPDATES, min(allowed, enough))
        training = self.values["training"] | {
            "updates": updates,
            "validate_every": -(-updates // VALIDATIONS),
            "warmup": min(WARMUP, updates // 5),
        }
        reason = f"{updates * batch / pairs:.1f} times through the pairs"
        if allowed < enough:
            reason += f"; {enough:,} would be better, if there is more time"
        values, reasons = self.values | {"training": training}, self.reasons | {"training.updates": reason}
        return Proposal(values, reasons, self.size), updates * seconds_per_update / 60


def propose(findings: Findings) -> Proposal:
    """Settings for these data; how many updates there is time for is not known yet."""
    size = next(size for size in SIZES if findings.splits["train"] <= size.pairs)
    copied, share = choose_copied_min_count(findings.words, findings.every, size.min_count)
    protects = findings.with_spans >= SPANS_MATTER and findings.spans_kept >= SPANS_ARE_KEPT
    values: dict[str, Any] = {
        "data": findings.data.model_dump(mode="json", exclude_defaults=True) | {"languages": list(findings.languages)},
        "text": {
            "forms": True,
            **({"protect": "software"} if protects else {}),
            "max_tokens": min(200, max(50, 10 * -(-findings.longest // 10))),
        },
        "vocabulary": {
            "source": _size(findings.words.source, findings.every, size.min_count, 3 * size.words),
            "target": _size(findings.words.target, findings.every, size.min_count, size.words),
            "min_count": size.min_count,
            "copied_min_count": copied,
        },
        "pointers": {"policy": "unknown-words"},
        "model": {"embedding": 128, "hidden": 192, "feed": "source", "dropout": size.dropout, "init": 0.1},
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.002,
            "warmup": WARMUP,
            "decay": "linear",
            "batch": size.batch if sum(findings.lengths) <= SHORT else min(size.batch, max(64, size.batch // 2)),
            "updates": FEWEST_UPDATES,
            "validate_every": FEWEST_UPDATES,
            "score": "rouge" if findings.summarizes else "bleu",
        },
    }
    reasons = {
        "data.languages": "; ".join(_language_reasons(findings)) or "of the source and of the target",
        "text.forms": "text as people write it, with case and spaces",
        "text.protect": f"{findings.with_spans:.0%} of the sources have placeholders, tags, paths and the like, "
        f"{findings.spans_kept:.0%} of those keep them all",
        "text.max_tokens": f"longer pairs are left out; 99 of 100 have at most {findings.longest} tokens",
        "vocabulary.min_count": "rarer words are copied, or unknown",
        "vocabulary.copied_min_count": "rarer names, and other words that are copied, are learned as pointers: "
        f"{share:.0%} of all copies",
    }
    return Proposal(values, {key: reason for key, reason in reasons.items() if _has(values, key)}, size)


def _has(values: Mapping[str, Any], key: str) -> bool:
    section, _, name = key.partition(".")
    return name in values[section]


def choose_copied_min_count(words: WordCounts, every: int, min_count: int) -> tuple[int, float]:
    """How often a copied word must be seen to be in the vocabularies, and the share of copies that are pointers then.

    Enough copied words must be unknown in training, else pointing is not learned. In small data these are most of
    them; in large data the rare ones are enough, and the frequent ones are learned as words.
    """
    copied = words.copied_words()
    total = sum(copied.values())
    if not total:
        return min_count, 0.0
    enough = min(MOST_OF_COPIES, max(LEAST_OF_COPIES, ENOUGH_POINTERS / (total * every)))
    unknown = 0
    for count, words_seen_so_often in sorted(Counter(copied.values()).items()):
        unknown += count * words_seen_so_often
        if unknown >= enough * total:
            break
    return max(min_count, _rounded_up(every * count + 1)), unknown / total


def _rounded_up(number: int) -> int:
    """The number with two digits that differ from 0 at most, no smaller than it was."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


def _size(counts: Mapping[str, int], every: int, min_count: int, most: int) -> int:
    """How many words the vocabulary may hold: as many as are frequent enough, within the limit."""
    frequent = sum(count * every >= min_count and not is_protected(word) for word, count in counts.items())
    return max(100, min(most, 100 * -(-frequent // 100)))


def _language_reasons(findings: Findings) -> list[str]:
    unsure = [side for side, code in zip(("source", "target"), findings.guessed_languages, strict=True) if code is None]
    return [f"the language of the {side} is not known: write it here" for side in unsure]
