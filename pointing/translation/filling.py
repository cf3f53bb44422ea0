"""Units of a document → translations: every different line is searched once, and the best one that passes is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from pointing.config import Search
from pointing.documents.document import Document, Unit
from pointing.documents.message import Piece, pieces
from pointing.generation.output import Output
from pointing.system.progress import track
from pointing.text.protected import Protector
from pointing.translation.checks import message_problem, problem

Status = Literal["filled", "left", "failed"]
LONGEST_MESSAGE, LONGEST_LINE = 20_000, 5_000  # characters; longer ones are left as they are
WINDOW = 256  # lines that are searched together, so that the bar moves


class Translates(Protocol):
    """What is asked of a generator (`generation.generator.Generator`)."""

    @property
    def stream(self) -> Callable[..., Iterator[Output]]:
        """stream(lines, settings, window=…): an output for each line, in order."""


@dataclass(frozen=True)
class Origin:
    """A word of a translation that came from a place in its source."""

    text: str
    origin: str  # copied, translated or glossary
    span: tuple[int, int]  # characters of the source text
    place: tuple[int, int]  # characters of the translation
    is_span: bool  # a protected span, such as %s

    @property
    def is_name(self) -> bool:
        """True for words, False for protected spans and punctuation."""
        return not self.is_span and any(map(str.isalnum, self.text))

    def json(self) -> dict[str, Any]:
        return {"text": self.text, "origin": self.origin, "span": list(self.span), "place": list(self.place)}


@dataclass(frozen=True)
class Result:
    """What became of a unit."""

    unit: Unit
    status: Status
    texts: tuple[str, ...]  # its translations now, also if they are as they were
    origins: tuple[tuple[Origin, ...], ...] = ()  # of each text
    reason: str | None = None  # why it failed
    rejected: tuple[str, ...] = ()  # translations that failed the check, best first
    scores: tuple[float, ...] = ()  # of each line that was searched
    confidence: float | None = None  # the lowest of its lines; None if the run was not calibrated
    review: bool = False  # True if the run says that a person should look at one of its lines

    def failed(self, reason: str) -> Result:
        """The same unit as it was before, its translation rejected after all."""
        was = self.unit.targets
        return replace(self, status="failed", texts=was, origins=(), scores=(), reason=reason, rejected=self.texts)

    def json(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "line": self.unit.line,
            "context": self.unit.context,
            "source": list(self.unit.sources),
            "target": list(self.texts),
            "status": self.status,
            "state": self.unit.state,
        }
        if self.status == "filled":
            values |= {"origins": [[origin.json() for origin in each] for each in self.origins]}
            values |= {"scores": [round(score, 6) for score in self.scores]}
        if self.status == "failed":
            values |= {"reason": self.reason, "rejected": list(self.rejected)}
        if self.confidence is not None:
            values |= {"confidence": round(self.confidence, 4), "review": self.review}
        return values


@dataclass
class Filler:
    """A generator, how it searches, and what it has said so far.

    `more` are further keyword arguments of the generator, passed on as they are. What has less than `min_confidence`
    stays untranslated.
    """

    generator: Translates
    search: Search
    protect: Protector
    min_confidence: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    is_shown: bool = True  # on stderr, as progress
    outputs: dict[str, Output] = field(default_factory=dict)  # of each different line

    def results(self, document: Document, is_wanted: Callable[[Unit], bool], accelerators: bool = True) -> list[Result]:
        """A result for each unit of a document, in order; units that are not wanted are left."""
        split: dict[int, list[list[Piece]]] = {}  # of each unit to fill, the lines of its texts
        results: dict[int, Result] = {}
        for unit in document.units:
            if unit.state == "locked" or not is_wanted(unit) or not any(unit.sources):
                results[unit.number] = Result(unit, "left", unit.targets)
            elif reason := unit.trouble or _too_long(unit):
                results[unit.number] = Result(unit, "failed", unit.targets, reason=reason)
            else:
                split[unit.number] = [pieces(text, self.protect, accelerators) for text in unit.sources]
        self._search(piece for texts in split.values() for text in texts for piece in text)
        for number, texts in split.items():
            results[number] = self._sure_enough(self._result(document, document.units[number], texts))
        return [results[unit.number] for unit in document.units]

    def _search(self, lines: Iterable[Piece]) -> None:
        """Asks for each line that was not asked for before."""
        new = list(dict.fromkeys(line.core for line in lines if line.is_asked and line.core not in self.outputs))
        outputs = self.generator.stream(new, self.search, window=WINDOW, **self.more)
        if self.is_shown:
            outputs = track(outputs, "translating", len(new), "lines")
        self.outputs.update(zip(new, outputs, strict=True))

    def _result(self, document: Document, unit: Unit, texts: Sequence[Sequence[Piece]]) -> Result:
        done: list[str] = []
        origins: list[tuple[Origin, ...]] = []
        outputs: list[Output] = []
        for number, lines in enumerate(texts):
            if unit.state == "empty" and unit.targets[number : number + 1] not in ((), ("",)):
                done.append(unit.targets[number])  # a form of a plural that somebody has written
                origins.append(())
                continue
            text, copied = "", list[Origin]()
            for line in lines:
                output, reason, rejected = self._choice(document, unit, line)
                if reason is not None:
                    return Result(unit, "failed", unit.targets, reason=reason, rejected=rejected)
                translation = line.core if output is None else output.text
                restored = line.restored(translation)
                if output is not None:
                    outputs.append(output)
                    copied += self._origins(output, line, text, restored)
                text += restored
            if (reason := message_problem(unit.sources[number], text)) is not None:
                return Result(unit, "failed", unit.targets, reason=f"the translation {reason}", rejected=(text,))
            done.append(text)
            origins.append(tuple(copied))
        told = [output.confidence for output in outputs if output.confidence is not None]
        return Result(
            unit,
            "filled",
            tuple(done),
            tuple(origins),
            scores=tuple(output.score for output in outputs),
            confidence=min(told, default=None),
            review=any(output.review for output in outputs),
        )

    def _sure_enough(self, result: Result) -> Result:
        """The result, or the unit as it was if the model is not sure enough of its translation."""
        least, confidence = self.min_confidence, result.confidence
        if result.status != "filled" or least is None or confidence is None or confidence >= least:
            return result
        return replace(result, review=True).failed(f"its confidence is {confidence:.2f}, less than {least:g}")

    def _choice(self, document: Document, unit: Unit, line: Piece) -> tuple[Output | None, str | None, tuple[str, ...]]:
        """The best output of a line that passes all checks; else why the best one fails, and all that failed."""
        if not line.is_asked:
            return None, None, ()
        best = self.outputs[line.core]
        if best.warning is not None:
            return None, best.warning, ()
        reasons, rejected = [], []
        for output in (best, *best.alternatives):
            expected = _with_terms(line.core, output)
            reason = problem(expected, output.text, self.protect, unit.format) or document.problem(unit, output.text)
            if reason is None:
                return output, None, ()
            reasons.append(reason)
            rejected.append(output.text)
        return None, f"no translation passes the check: the best one {reasons[0]}", tuple(rejected)

    def _origins(self, output: Output, line: Piece, before: str, restored: str) -> Iterator[Origin]:
        """The words of a translated line that came from the source; `before` is the message's text before the line."""
        spans = {(span.start, span.end) for span in self.protect(line.core)}
        at = 0
        for token in output.tokens:
            start = restored.find(token.text, at)
            if start < 0:  # written in another form, or with the accelerator inside
                continue
            at = start + len(token.text)
            if token.span is not None and token.origin != "shortlist":
                place = len(before) + start, len(before) + at
                yield Origin(token.text, token.origin, line.place(*token.span), place, token.span in spans)


def _with_terms(line: str, output: Output) -> str:
    """The source with the glossary's terms as they are written: what is protected in these belongs there."""
    spans = {token.span: token.text for token in output.tokens if token.origin == "glossary" and token.span}
    for (start, end), text in sorted(spans.items(), reverse=True):
        line = line[:start] + text + line[end:]
    return line


def _too_long(unit: Unit) -> str | None:
    longest = max(map(len, unit.sources))
    if longest > LONGEST_MESSAGE:
        return f"is too long: {longest:,} characters, more than {LONGEST_MESSAGE:,}"
    longest = max(len(line) for text in unit.sources for line in text.split("\n"))
    return f"has a line of {longest:,} characters, more than {LONGEST_LINE:,}" if longest > LONGEST_LINE else None


def provenance(result: Result) -> str:
    """Whether to review it, what was copied, and from where, for a translator's comment; characters count from 1."""
    parts = []
    for form, origins in enumerate(result.origins):
        told = [f"{each.origin} «{each.text}» ({_characters(*each.span)})" for each in origins]
        if told:
            parts.append(f"[{form}] " * (len(result.origins) > 1) + ", ".join(told))
    if not parts:
        parts = ["no word was copied" if result.scores else "copied as it is: there are no words in it"]
    if result.review and result.confidence is not None:
        parts.insert(0, f"please review, confidence {result.confidence:.2f}")
    return "; ".join(parts)


def _characters(start: int, end: int) -> str:
    return f"character {end}" if end - start == 1 else f"characters {start + 1}–{end}"
