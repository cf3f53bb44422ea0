"""Choices of a `PointerModel` → an `Output`, whose words know where they came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

import numpy as np

from pointing.generation.output import Output, Token
from pointing.generation.reader import Line
from pointing.huggingface.pieces import PieceTokenizer, Source
from pointing.huggingface.spacing import has_space


class Choices(NamedTuple):
    """A sequence that was generated, without its start and what follows its end."""

    ids: Sequence[int]  # (T,) pieces, and V + the position of a copied word
    log_p: Sequence[float]  # (T,) under f_t
    d: Sequence[float]  # (T,) the switch's probability of the shortlist
    score: float


def write(choices: Choices, source: Source, pieces: PieceTokenizer, V: int, number: int) -> Output:
    """The text of the choices; `number` is the source line's, counted from 1."""
    text, tokens = "", []
    for is_copied, group in groupby(range(len(choices.ids)), key=lambda t: choices.ids[t] >= V):
        steps = list(group)
        if not is_copied:
            written = pieces.text([choices.ids[t] for t in steps])
            tokens += _words(written, choices, steps, pieces, len(text))
            text += written
            continue
        for t in steps:
            position = choices.ids[t] - V
            word = source.words[position]
            text += " " * has_space(text, word)
            span, place = (source.starts[position], source.ends[position]), (len(text), len(text) + len(word))
            probability = math.exp(choices.log_p[t])
            tokens.append(Token(word, "copied", position, span, probability, choices.d[t], output=place))
            text += word
    margin = len(text) - len(text.lstrip())
    tokens = [replace(token, output=(token.output[0] - margin, token.output[1] - margin)) for token in tokens]
    return Output(number, text.strip(), choices.score, tokens, as_line(source))


def _words(written: str, choices: Choices, steps: Sequence[int], pieces: PieceTokenizer, offset: int) -> list[Token]:
    """The words of a run of pieces, which stands at `offset` in the text."""
    ids = [choices.ids[t] for t in steps]
    ends = [len(pieces.text(ids[: k + 1])) for k in range(len(ids))]  # of each piece, in the run's text
    begins = [0, *ends]
    cut = pieces.words(written)
    words = []
    for start, end in zip(cut.starts, cut.ends, strict=True):
        of_word = [t for k, t in enumerate(steps) if ends[k] > start and begins[k] < end]
        probability = math.exp(sum(choices.log_p[t] for t in of_word))
        d = fmean(choices.d[t] for t in of_word) if of_word else 1.0
        place = offset + start, offset + end
        words.append(Token(written[start:end], "shortlist", None, None, probability, d, output=place))
    return words


def with_alternatives(outputs: Sequence[Output]) -> Output:
    """The first output, and the others as its alternatives as far as their text differs."""
    best = outputs[0]
    different = {output.text: output for output in reversed(outputs)}
    best.alternatives.extend(different[text] for text in dict.fromkeys(o.text for o in outputs) if text != best.text)
    return best


def as_line(source: Source) -> Line:
    """The source as the outputs of our own models have it."""
    J = len(source.starts)
    starts, ends = np.array(source.starts, np.int32), np.array(source.ends, np.int32)
    return Line(source.text, starts, ends, np.zeros(J, np.int32), np.arange(J, dtype=np.int32), [None] * J)
