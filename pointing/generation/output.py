"""A hypothesis → words, each with its origin: the shortlist, or a place in the raw line. As text, JSON, in colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pointing.generation.beam import Hypothesis
from pointing.generation.reader import Line, Pieces
from pointing.text.entities import position_of_entity
from pointing.text.subwords import ends_word, without_mark
from pointing.text.tokenizer import Tokenizer, subscript, visible
from pointing.text.vocabulary import FIRST, UNK, Vocabulary

if TYPE_CHECKING:
    from rich.text import Text

Floats = npt.NDArray[np.float32]
UNKNOWN = "<unk>"  # how UNK is written, where it is asked for


@dataclass(frozen=True)
class Token:
    """A word of the output and where it came from."""

    text: str
    origin: Literal["shortlist", "copied", "translated"]
    source: int | None  # which token of the source, counted from 0
    span: tuple[int, int] | None  # its characters in the raw line
    probability: float  # under f_t; of a word of several pieces, of all of them
    shortlist: float  # d_t; of several pieces, its mean
    attention: Floats | None = field(default=None, repr=False, compare=False)  # (J,), if it was kept

    def json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "origin": self.origin,
            "source": self.source,
            "span": None if self.span is None else list(self.span),
            "probability": round(self.probability, 6),
            "shortlist": round(self.shortlist, 6),
        }


@dataclass(frozen=True)
class Output:
    """What one line became; `alternatives` are the others of its n-best list."""

    line: int  # counted from 1
    text: str  # detokenised
    score: float
    tokens: list[Token]
    source: Line = field(repr=False, compare=False)
    alternatives: list[Output] = field(default_factory=list)

    @property
    def tokenized(self) -> str:
        return " ".join(token.text for token in self.tokens)

    @property
    def warning(self) -> str | None:
        return self.source.warning

    def json(self) -> dict[str, Any]:
        """What `generate --json` prints; with `alternatives` if there are any."""
        about = {
            "line": self.line,
            "text": self.text,
            "score": round(self.score, 6),
            "tokens": [token.json() for token in self.tokens],
        }
        others = [other.json() for other in self.alternatives]
        return {**about, "alternatives": others} if others else about

    @classmethod
    def from_json(cls, told: Mapping[str, Any], source: Line) -> Output:
        """What `json` told of a line."""
        tokens = [Token(**{**one, "span": one["span"] and tuple(one["span"])}) for one in told["tokens"]]
        others = [cls.from_json(other, source) for other in told.get("alternatives", ())]
        return cls(told["line"], told["text"], told["score"], tokens, source.in_words, others)


class Writer:
    """Turns choices back into words. With `unk_replace` an UNK becomes the source word of most attention."""

    def __init__(self, target: Vocabulary, tokenizer: Tokenizer, unk_replace: bool = False) -> None:
        self.target, self.tokenizer, self.unk_replace = target, tokenizer, unk_replace

    def write(self, found: Sequence[Hypothesis], line: Line, number: int) -> Output:
        """The best hypothesis, and the others of the list as far as their text differs."""
        different: dict[str, Output] = {}
        for one in found:
            tokens = self.tokens(one, line)
            text = self.tokenizer.detokenize([token.text for token in tokens])
            different.setdefault(text, Output(number, text, one.score, tokens, line.in_words))
        if not different:  # nothing in, nothing out
            return Output(number, "", 0.0, [], line.in_words)
        best, *others = different.values()
        best.alternatives.extend(others)
        return best

    def tokens(self, hypothesis: Hypothesis, line: Line) -> list[Token]:
        words = len(hypothesis.choices) - 1  # without the end of sentence
        probability = np.exp(hypothesis.log_p)
        made = [
            self._token(
                int(hypothesis.choices[t]),
                line,
                float(probability[t]),
                float(hypothesis.switch[t]),
                None if hypothesis.location is None else hypothesis.location[t, : len(line.ids)],
            )
            for t in range(words)
        ]
        return made if line.pieces is None else _joined(made, hypothesis.choices == UNK, line, line.pieces)

    def _token(self, choice: int, line: Line, probability: float, d: float, attention: Floats | None) -> Token:
        position = self._position(choice, line, attention)
        if position is None:
            word = self.target.word(choice)
            return Token(UNKNOWN if word is None else word, "shortlist", None, None, probability, d, attention)
        span = int(line.starts[position]), int(line.ends[position])
        translated = line.translated[position]
        if translated is not None:
            return Token(translated, "translated", position, span, probability, d, attention)
        return Token(line.raw(position), "copied", position, span, probability, d, attention)

    def _position(self, choice: int, line: Line, attention: Floats | None) -> int | None:
        """Where a choice is in the source: it was pointed at, it is an entity, or an UNK to be replaced."""
        if choice >= len(self.target):
            return choice - len(self.target)
        if FIRST <= choice < FIRST + self.target.placeholders:
            return position_of_entity(choice - FIRST + 1, line.ids.tolist(), FIRST)
        if choice == UNK and self.unk_replace and attention is not None and len(attention):
            return int(attention.argmax())
        return None


def _joined(tokens: Sequence[Token], unknown: npt.NDArray[np.bool_], line: Line, pieces: Pieces) -> list[Token]:
    """Pieces as words. An unknown piece is a word of its own: nobody knows whether it would go on."""
    words: list[list[tuple[Token, str]]] = []
    goes_on = False
    for token, none in zip(tokens, unknown.tolist(), strict=False):
        form = token.text if token.source is None else pieces.forms[token.source]
        alone = none and token.source is None
        if not goes_on or alone:
            words.append([])
        words[-1].append((token, form))
        goes_on = not (alone or ends_word(form))
    return [_word(word, line, pieces) for word in words]


def _word(word: Sequence[tuple[Token, str]], line: Line, pieces: Pieces) -> Token:
    """Copied if all its pieces were copied, one after the other as they stand in the source; else the shortlist's."""
    text = "".join(without_mark(form) for _, form in word)
    tokens = [token for token, _ in word]
    probability, d = math.prod(one.probability for one in tokens), fmean(one.shortlist for one in tokens)
    looked = [one.attention for one in tokens if one.attention is not None]
    J = len(pieces.words.ids)
    attention = np.bincount(pieces.word, np.mean(looked, 0), J).astype(np.float32) if looked else None
    span = _span([token.source for token in tokens], line, pieces)
    if span is None:
        return Token(text, "shortlist", None, None, probability, d, attention)
    source = int(pieces.word[tokens[0].source])
    return Token(line.text[slice(*span)], "copied", source, span, probability, d, attention)


def _span(places: list[int | None], line: Line, pieces: Pieces) -> tuple[int, int] | None:
    """The characters of pieces that stand one after the other in the source; None if there are none such.

    There are none either for some pieces of a word, if these have no characters of their own
    (`subwords.split_into_pieces`).
    """
    first = places[0]
    if first is None or places != list(range(first, first + len(places))):
        return None
    whole = np.flatnonzero(pieces.word == pieces.word[first])
    if len(places) < len(whole) and line.starts[whole[0]] == line.starts[whole[-1]]:
        return None
    return int(line.starts[first]), int(line.ends[first + len(places) - 1])


def show(output: Output) -> Text:
    """Source and output for a terminal: copied words in colour, each with the index of the word that it came from."""
    from rich.text import Text

    line = output.source
    used = {token.source: token.origin for token in output.tokens if token.source is not None}
    shown = Text(no_wrap=False)
    at = 0
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        style = STYLES[used.get(position, "shortlist")]
        shown.append(visible(line.text[at:start]), "dim").append(visible(line.text[start:end]), style or "dim")
        if position in used:
            shown.append(subscript(position), style)
        at = end
    shown.append(visible(line.text[at:]), "dim").append("\n→")
    for token in output.tokens:
        shown.append(" ").append(visible(token.text), STYLES[token.origin])
        if token.source is not None:
            shown.append(subscript(token.source), STYLES[token.origin])
    return shown


STYLES = {"shortlist": "", "copied": "bold green", "translated": "bold magenta"}
