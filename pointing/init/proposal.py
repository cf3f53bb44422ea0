"""Settings that fit the data, this machine and the user's time: chosen from counts and from a short timing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pointing.config import Config, checked
from pointing.corpus.word_counts import WordCounts
from pointing.init.findings import Findings
from pointing.text.protected import is_protected

# A row fits data of at most so many pairs. Small data: fewer words, more passes, more dropout.
SIZES = (  # pairs, target words, min_count, batch, passes at most, dropout
    (2_000, 3_000, 2, 16, 80, 0.3),
    (20_000, 5_000, 2, 32, 50, 0.3),
    (60_000, 6_000, 3, 64, 15, 0.2),
    (200_000, 8_000, 3, 128, 10, 0.1),
    (math.inf, 12_000, 5, 128, 6, 0.0),
)
FEWEST_UPDATES = 500
ENOUGH_POINTERS = 20_000  # copied words that training needs to learn pointing from, if there are as many
MOST_OF_COPIES, LEAST_OF_COPIES = 0.8, 0.2  # share of all copied words that are pointers, in small and in large data
SPANS_MATTER, SPANS_ARE_KEPT = 0.01, 0.5  # spans are protected if this share of lines has some, and this share keeps it
VALIDATIONS = 12


@dataclass(frozen=True)
class Proposal:
    """Settings with reasons, and how long they will take."""

    config: Config
    values: dict[str, Any]  # the settings, as the file has them
    minutes: float  # of training
    reasons: dict[str, str]  # of the keys that the data decided


def propose(findings: Findings, minutes: float, seconds_per_update: Callable[[Config], float]) -> Proposal:
    """Settings for these data that train about so many minutes at most."""
    pairs = findings.splits["train"]
    _, words, min_count, batch, passes, dropout = next(size for size in SIZES if pairs <= size[0])
    copied, share = choose_copied_min_count(findings.words, findings.every, min_count)
    protects = findings.with_spans >= SPANS_MATTER and findings.spans_kept >= SPANS_ARE_KEPT
    source, target = findings.guessed_languages
    values: dict[str, Any] = {
        "data": findings.data.model_dump(exclude_defaults=True)
        | {"languages": (source or findings.data.languages[0], target or findings.data.languages[1])},
        "text": {
            "forms": True,
            **({"protect": "software"} if protects else {}),
            "max_tokens": min(200, max(50, 10 * -(-findings.longest // 10))),
        },
        "vocabulary": {
            "source": _size(findings.words.source, findings.every, min_count, 3 * words),
            "target": _size(findings.words.target, findings.every, min_count, words),
            "min_count": min_count,
            "copied_min_count": copied,
        },
        "pointers": {"policy": "unknown-words"},
        "model": {"embedding": 128, "hidden": 192, "feed": "source", "dropout": dropout, "init": 0.1},
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.002,
            "warmup": 300,
            "decay": "linear",
            "batch": batch,
            "updates": FEWEST_UPDATES,
            "validate_every": FEWEST_UPDATES,
            "score": "rouge" if findings.summarizes else "bleu",
        },
    }
    seconds = seconds_per_update(checked(Config, values))
    an_epoch = -(-pairs // batch)
    within = int(60 * minutes / seconds)
    updates = max(FEWEST_UPDATES, min(within, passes * an_epoch))
    values["training"] |= {
        "updates": updates,
        "validate_every": -(-updates // VALIDATIONS),
        "warmup": min(300, updates // 5),
    }
    reasons = {
        "languages": "; ".join(_language_reasons(findings)),
        "protect": f"{findings.with_spans:.0%} of the sources have placeholders, tags, paths, …; "
        f"{findings.spans_kept:.0%} of those keep them",
        "max_tokens": "99 of 100 pairs have at most "
        f"{findings.longest} tokens; longer ones than this are left out of training",
        "vocabulary": f"words seen {min_count} times or more, of at most {words:,}; rarer ones are copied or unknown",
        "copied_min_count": f"names and other words that the target copies are learned as pointers if they are rarer "
        f"than this: {share:.0%} of all copies",
        "updates": f"{updates * batch / pairs:.1f} times through the pairs, about {_time(updates * seconds)}",
    }
    return Proposal(checked(Config, values), values, updates * seconds / 60, reasons)


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
    for count in sorted(set(copied.values())):
        unknown += sum(each for each in copied.values() if each == count)
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


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
