"""Pairs that teach nothing, or something wrong: empty, not translated, of too different lengths."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable

LONG_ENOUGH = 40  # characters; shorter texts ("LIRC", "remote control (LIRC)") may differ in length by any factor
TOO_DIFFERENT = 2.5  # the largest factor by which a pair's ratio of lengths may differ from the median ratio

Pair = tuple[str, str]


def half_empty(pair: Pair) -> bool:
    return not all(pair)


def untranslated(pair: Pair) -> bool:
    """True if both sides are equal apart from case and punctuation: names, commands, texts that nobody translated."""
    left, right = (re.sub(r"[\W_]+", " ", text.casefold()).strip() for text in pair)
    return left == right


def too_different(pairs: Iterable[Pair]) -> Callable[[Pair], bool]:
    """Tells which pairs differ too much in length, given the median of these pairs; no side may be empty."""
    ratios = [_log_ratio(pair) for pair in pairs]
    usual = statistics.median(ratios) if ratios else 0.0

    def different(pair: Pair) -> bool:
        deviation = abs(_log_ratio(pair) - usual)
        return deviation > math.log(TOO_DIFFERENT) and max(map(len, pair)) >= LONG_ENOUGH

    return different


def _log_ratio(pair: Pair) -> float:
    return math.log(len(pair[1]) / len(pair[0]))
