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
WordOrigin = Literal["shortlist", "copied", "translated"]
JSON_KEYS = ("text", "origin", "source", "span", "probability", "shortlist")  # of a token; "shortlist" is d_t
UNKNOWN = "<unk>"  # how UNK is written, where it is asked for


@dataclass(frozen=True)
class Token:
    """A word of the output and where it came from."""

    text: str
    origin: WordOrigin
    source: int | None  # the position of the source token, counted from 0
    span: tuple[int, int] | None  # its characters in the raw line
    probability: float  # under f_t; of a word of several pieces, the product over its pieces
    d: float  # d_t, the switch's probability of the shortlist; of a word of several pieces, the mean
    location: Floats | None = field(default=None, repr=False, compare=False)  # (J,) l_t, if it was asked for

    def json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "origin": self.origin,
            "source": self.source,
            "span": None if self.span is None else list(self.span),
            "probability": round(self.probability, 6),
            "shortlist": round(self.d, 6),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Token:
        """The token of which `json` gave these values."""
        text, origin, source, span, probability, d = (values[name] for name in JSON_KEYS)
        return cls(text, origin, source, None if span is None else tuple(span), probability, d)


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
        values = {
            "line": self.line,
            "text": self.text,
            "score": round(self.score, 6),
            "tokens": [token.json() for token in self.tokens],
        }
        alternatives = [alternative.json() for alternative in self.alternatives]
        return {**values, "alternatives": alternatives} if alternatives else values

    @classmethod
    def from_json(cls, values: Mapping[str, Any], source: Line) -> Output:
        """The output of a line of which `json` gave these values."""
        tokens = [Token.from_json(token) for token in values["tokens"]]
        alternatives = [cls.from_json(alternative, source) for alternative in values.get("alternatives", ())]
        return cls(values["line"], values["text"], values["score"], tokens, source.in_words, alternatives)


class Writer:
    """Turns choices back into words. With `unk_replace` an UNK becomes the source word where l_t is highest."""

    def __init__(self, target: Vocabulary, tokenizer: Tokenizer, unk_replace: bool = False) -> None:
        self.target, self.tokenizer, self.unk_replace = target, tokenizer, unk_replace

    def write(self, hypotheses: Sequence[Hypothesis], line: Line, number: int) -> Output:
        """The best hypothesis, and the others of the list as far as their text differs."""
        different: dict[str, Output] = {}
        for hypothesis in hypotheses:
            tokens = self.tokens(hypothesis, line)
            text = self.tokenizer.detokenize([token.text for token in tokens])
            different.setdefault(text, Output(number, text, hypothesis.score, tokens, line.in_words))
        if not different:  # an empty line has no hypothesis, and an empty output
            return Output(number, "", 0.0, [], line.in_words)
        best, *alternatives = different.values()
        best.alternatives.extend(alternatives)
        return best

    def tokens(self, hypothesis: Hypothesis, line: Line) -> list[Token]:
        words = len(hypothesis.choices) - 1  # without the end of sentence
        probability = np.exp(hypothesis.log_p)
        tokens = [
            self._token(
                int(hypothesis.choices[t]),
                line,
                float(probability[t]),
                float(hypothesis.d[t]),
                None if hypothesis.location is None else hypothesis.location[t, : len(line.ids)],
            )
            for t in range(words)
        ]
        if line.pieces is None:
            return tokens
        return _words_of_pieces(tokens, (hypothesis.choices == UNK).tolist(), line, line.pieces)

    def _token(self, choice: int, line: Line, probability: float, d: float, location: Floats | None) -> Token:
        position = self._position(choice, line, location)
        if position is None:
            word = self.target.word(choice)
            return Token(UNKNOWN if word is None else word, "shortlist", None, None, probability, d, location)
        span = int(line.starts[position]), int(line.ends[position])
        translation = line.translations[position]
        if translation is not None:
            return Token(translation, "translated", position, span, probability, d, location)
        return Token(line.raw(position), "copied", position, span, probability, d, location)

    def _position(self, choice: int, line: Line, location: Floats | None) -> int | None:
        """The source position that a choice writes: a pointer's, an entity's, or that of an UNK to be replaced."""
        if choice >= len(self.target):
            return choice - len(self.target)
        if FIRST <= choice < FIRST + self.target.placeholders:
            return position_of_entity(choice - FIRST + 1, line.ids.tolist(), FIRST)
        if choice == UNK and self.unk_replace and location is not None and len(location):
            return int(location.argmax())
        return None


def _words_of_pieces(tokens: Sequence[Token], is_unk: Sequence[bool], line: Line, pieces: Pieces) -> list[Token]:
    """Pieces joined into words. An UNK is a word of its own: nothing says whether the word would go on."""
    words: list[list[tuple[Token, str]]] = []
    goes_on = False
    for token, unk in zip(tokens, is_unk, strict=False):
        form = token.text if token.source is None else pieces.forms[token.source]
        alone = unk and token.source is None
        if not goes_on or alone:
            words.append([])
        words[-1].append((token, form))
        goes_on = not (alone or ends_word(form))
    return [_word_of_pieces(word, line, pieces) for word in words]


def _word_of_pieces(word: Sequence[tuple[Token, str]], line: Line, pieces: Pieces) -> Token:
    """Copied if all its pieces were copied, one after the other as they stand in the source; else the shortlist's."""
    tokens = [token for token, _ in word]
    probability, d = math.prod(token.probability for token in tokens), fmean(token.d for token in tokens)
    locations = [token.location for token in tokens if token.location is not None]
    J = len(pieces.words.ids)
    location = np.bincount(pieces.word, np.mean(locations, 0), J).astype(np.float32) if locations else None
    span = _span([token.source for token in tokens], line, pieces)
    if span is None:
        text = "".join(without_mark(form) for _, form in word)
        return Token(text, "shortlist", None, None, probability, d, location)
    source = int(pieces.word[tokens[0].source])
    return Token(line.text[slice(*span)], "copied", source, span, probability, d, location)


def _span(positions: list[int | None], line: Line, pieces: Pieces) -> tuple[int, int] | None:
    """The characters of pieces that stand one after the other in the source; None if they do not.

    None also for a part of a word whose pieces have no characters of their own (`subwords.split_into_pieces`).
    """
    first = positions[0]
    if first is None or positions != list(range(first, first + len(positions))):
        return None
    whole = np.flatnonzero(pieces.word == pieces.word[first])
    if len(positions) < len(whole) and line.starts[whole[0]] == line.starts[whole[-1]]:
        return None
    return int(line.starts[first]), int(line.ends[first + len(positions) - 1])


def show(output: Output) -> Text:
    """Source and output for a terminal: copied words in colour, each with the index of the word that it came from."""
    from rich.text import Text

    line = output.source
    origins = {token.source: token.origin for token in output.tokens if token.source is not None}
    shown = Text(no_wrap=False)
    at = 0
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        style = STYLES[origins.get(position, "shortlist")]
        shown.append(visible(line.text[at:start]), "dim").append(visible(line.text[start:end]), style or "dim")
        if position in origins:
            shown.append(subscript(position), style)
        at = end
    shown.append(visible(line.text[at:]), "dim").append("\n→")
    for token in output.tokens:
        shown.append(" ").append(visible(token.text), STYLES[token.origin])
        if token.source is not None:
            shown.append(subscript(token.source), STYLES[token.origin])
    return shown


STYLES = {"shortlist": "", "copied": "bold green", "translated": "bold magenta"}
