"""An output: its text, and words that know their place in it and their origin. As JSON, and in colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pointing.generation.reader import Line
from pointing.system.terminal import visible
from pointing.text.tokenizer import subscript

if TYPE_CHECKING:
    from rich.text import Text

Floats = npt.NDArray[np.float32]
WordOrigin = Literal["shortlist", "copied", "translated", "glossary", "source"]  # the last: of a line that was kept
JSON_KEYS = ("text", "origin", "source", "span", "probability", "shortlist")  # of a token; "shortlist" is d_t
UNKNOWN = "<unk>"  # how UNK is written, where it is asked for


@dataclass(frozen=True)
class Choice:
    """A word that could stand in an output word's place."""

    text: str
    origin: WordOrigin
    source: int | None  # the position of the source token, counted from 0
    probability: float  # under f_t

    def json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "origin": self.origin,
            "source": self.source,
            "probability": round(self.probability, 6),
        }


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
    form: int = field(default=0, repr=False, compare=False)  # how it is written, if the run has learned forms
    output: tuple[int, int] = (0, 0)  # its characters in the output's text
    choices: tuple[Choice, ...] = field(default=(), repr=False, compare=False)  # the best of its step, if asked for

    def json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "origin": self.origin,
            "source": self.source,
            "span": None if self.span is None else list(self.span),
            "output": list(self.output),
            "probability": None if self.origin == "source" else round(self.probability, 6),
            "shortlist": None if self.origin == "source" else round(self.d, 6),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Token:
        """The token of which `json` gave these values."""
        text, origin, source, span, probability, d = (values[name] for name in JSON_KEYS)
        return cls(text, origin, source, None if span is None else tuple(span), probability or 0.0, d or 0.0)


@dataclass(frozen=True)
class Output:
    """What one line became; `alternatives` are the others of its n-best list."""

    line: int  # counted from 1
    text: str  # as it is delivered
    score: float
    tokens: list[Token]
    source: Line = field(repr=False, compare=False)
    alternatives: list[Output] = field(default_factory=list)
    confidence: float | None = None  # the chrF that is to be expected, from 0 to 1; None if the run was not calibrated
    review: bool = False  # True if a person should look at it
    rejected: str | None = None  # what the model wrote, if the source line was kept instead
    features: npt.NDArray[np.float64] | None = field(default=None, repr=False, compare=False)  # (6,) confidence.py

    @property
    def tokenized(self) -> str:
        return " ".join(token.text for token in self.tokens)

    @property
    def warning(self) -> str | None:
        return self.source.warning

    @property
    def fallback(self) -> bool:
        """True if this is the source line as it is, because the model's output was not good enough."""
        return self.rejected is not None

    def kept_as_source(self) -> Output:
        """The source line, as it is, in the place of this output."""
        line = self.source
        tokens = [
            Token(line.raw(position), "source", position, span, 0.0, 0.0, output=span)
            for position, span in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True))
        ]
        return replace(self, text=line.text, tokens=tokens, review=True, rejected=self.text)

    def json(self) -> dict[str, Any]:
        """What `generate --json` prints; with `alternatives` if there are any."""
        values: dict[str, Any] = {"line": self.line, "text": self.text, "score": round(self.score, 6)}
        if self.confidence is not None:
            values |= {"confidence": round(self.confidence, 4), "review": self.review}
        if self.rejected is not None:
            values |= {"fallback": True, "rejected": self.rejected}
        values["tokens"] = [token.json() for token in self.tokens]
        alternatives = [alternative.json() for alternative in self.alternatives]
        return {**values, "alternatives": alternatives} if alternatives else values

    @classmethod
    def from_json(cls, values: Mapping[str, Any], source: Line) -> Output:
        """The output of a line of which `json` gave these values."""
        tokens = placed(values["text"], [Token.from_json(token) for token in values["tokens"]])
        alternatives = [cls.from_json(alternative, source) for alternative in values.get("alternatives", ())]
        sure = values.get("confidence"), values.get("review", False), values.get("rejected")
        return cls(values["line"], values["text"], values["score"], tokens, source.in_words, alternatives, *sure)


def placed(text: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a text, each with its place in it."""
    found = places(text, [token.text for token in tokens])
    return [replace(token, output=place) for token, place in zip(tokens, found, strict=True)]


def places(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """The characters of each word in the text that they were joined into, from left to right.

    Joining changes white space only, but for Moses' detokenizer, which also writes `@-@` as `-`.
    """
    found, at = [], 0
    for word in words:
        start = _after_space(text, at)
        at = start + len(word) if text.startswith(word, start) else _end_of(text, start, word)
        found.append((start, at))
    return found


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _end_of(text: str, at: int, word: str) -> int:
    """Where a word ends in a text that has it from `at` on, with other white space in it."""
    part = 0
    while part < len(word) and at < len(text):
        if word[part].isspace():
            part += 1
            continue
        at = _after_space(text, at)
        part += 3 if word.startswith("@-@", part) and text.startswith("-", at) else 1
        at += 1
    return min(at, len(text))


def parts(output: Output) -> Iterator[tuple[str, Token | None]]:
    """The output's text in parts: those of its tokens, and what stands between them."""
    at = 0
    for token in output.tokens:
        start, end = token.output
        if start > at:
            yield output.text[at:start], None
        yield output.text[start:end], token
        at = end
    if at < len(output.text):
        yield output.text[at:], None


def show(output: Output) -> Text:
    """Source and output as they are, for a terminal: copied words in colour, each with the index of its source word."""
    from rich.text import Text

    line = output.source
    tokens = () if output.fallback else output.tokens
    origins = {token.source: token.origin for token in tokens if token.source is not None}
    shown = Text(no_wrap=False)
    at = 0
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        style = STYLES[origins.get(position, "shortlist")]
        shown.append(visible(line.text[at:start]), "dim").append(visible(line.text[start:end]), style or "dim")
        if position in origins:
            shown.append(subscript(position), style)
        at = end
    shown.append(visible(line.text[at:]), "dim").append("\n→ ")
    for text, token in parts(output):
        shown.append(visible(text), "" if token is None else STYLES[token.origin])
        if token is not None and token.source is not None and not output.fallback:
            shown.append(subscript(token.source), STYLES[token.origin])
    for remark in remarks(output):
        shown.append(f"\n  {visible(remark)}", "yellow")
    return shown


def remarks(output: Output) -> list[str]:
    """What a person should know before using the output."""
    told = [] if output.confidence is None else [f"confidence {output.confidence:.2f}"]
    if output.fallback:
        return [f"⚑ the source was kept, {', '.join(told)}; the model wrote: {output.rejected}"]
    return [", ".join(["⚑ please review", *told])] if output.review else []


STYLES = {
    "shortlist": "",
    "copied": "bold green",
    "translated": "bold magenta",
    "glossary": "bold cyan",
    "source": "dim",
}
