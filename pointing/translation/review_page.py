"""The review page: source and translation of every entry side by side, as one file that opens anywhere.

No network, no file beside it, everything in it escaped. Copied words are coloured and light up with their source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from pointing.system.terminal import visible
from pointing.text.protected import PRESETS, Protector
from pointing.translation.filling import Origin, Result
from pointing.translation.review_style import HEAD, TAIL
from pointing.translation.summary import Summary

LONGEST = 2_000  # characters of a text that are shown
MOST_REJECTED = 5
_PROTECT = Protector(PRESETS["software"])


class Mark(NamedTuple):
    """Characters of a text that are shown in a way of their own."""

    start: int
    end: int
    kind: str  # copied, translated, glossary, used (in the source), or span
    number: int | None = None  # the same for a word and the place that it came from


def review_page(summaries: Sequence[Summary], fuzzy: bool = True) -> Iterator[str]:
    """The page's pieces, one after the other."""
    title = summaries[0].file.name if len(summaries) == 1 else f"{len(summaries)} files"
    yield HEAD.replace("TITLE", _text(title))
    for number, summary in enumerate(summaries):
        yield _overview(summary)
        for result in summary.results:
            yield _row(result, f"f{number}u{result.unit.number}", fuzzy)
        yield "</div></main>\n"
    yield TAIL


def _overview(summary: Summary) -> str:
    counts = summary.counts()
    tiles = [
        ("filled", counts["filled"], "filled"),
        ("review", counts["review"], "flagged ⚑"),
        ("failed", counts["failed"], "left empty"),
        ("left", counts["left"], "as they were"),
        ("copied", counts["copied_names"], "copied names"),
        ("span", counts["placeholders"], "placeholders"),
        ("glossary", counts["glossary_terms"], "glossary terms"),
    ]
    listed = "".join(
        f'<li class="{kind}{" none" if not count else ""}"><b>{count:,}</b> {label}</li>'
        for kind, count, label in tiles
    )
    verdict = ""
    if summary.msgfmt is not None:
        kind = "good" if summary.msgfmt == "accepted" else "bad" if summary.msgfmt.startswith("rejected") else "none"
        verdict = f'<p class="verdict {kind}">msgfmt --check-format: {_text(summary.msgfmt)}</p>'
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in summary.notes)
    return (
        f"<header><h1>{_text(summary.file.name)} <span>→ {_text(str(summary.output))}</span></h1>\n"
        f'<ul class="tiles">{listed}</ul>{verdict}{notes}</header>\n<main><div>\n'
    )


def _row(result: Result, name: str, fuzzy: bool) -> str:
    unit = result.unit
    badge, kind = _badge(result, fuzzy)
    context = "" if unit.context is None else f'<small class="context">{_text(unit.context)}</small>'
    forms = len(unit.sources)
    sources, targets = [], []
    for form, source in enumerate(unit.sources):
        origins = result.origins[form] if result.origins else ()
        if form == 0 or source != unit.sources[form - 1] or origins:
            sources.append(_shown(source, _source_marks(source, origins, form), form if forms > 1 else None))
    for form, text in enumerate(result.texts):
        origins = result.origins[form] if result.origins else ()
        targets.append(_shown(text, _target_marks(text, origins, form), form if forms > 1 else None))
    if result.reason is not None:
        rejected = "".join(f"<li>{_cut(text)}</li>" for text in result.rejected[:MOST_REJECTED])
        more = f"<details><summary>what did not pass</summary><ol>{rejected}</ol></details>" if rejected else ""
        targets.append(f'<p class="reason">{_text(result.reason)}</p>{more}')
    flagged = result.review and result.status == "filled"
    told = '<em class="review">⚑ please review</em>' if flagged else ""
    if result.confidence is not None:
        told += f"<small>confidence {result.confidence:.2f}</small>"
    return (
        f'<section id="{name}" data-kind="{result.status}"{" data-review" * flagged}>'
        f'<aside><a href="#{name}">{unit.line}</a><em class="{kind}">{badge}</em>{told}</aside>'
        f'<div class="source">{context}{"".join(sources)}</div><div class="target">{"".join(targets)}</div></section>\n'
    )


def _badge(result: Result, fuzzy: bool) -> tuple[str, str]:
    """What a row's badge says, and its colour."""
    if result.status == "filled":
        return ("new, to review", "filled") if fuzzy else ("new", "filled")
    if result.status == "failed":
        return "left empty", "failed"
    return {"fuzzy": ("fuzzy", "fuzzy"), "locked": ("locked", "left"), "empty": ("empty", "left")}.get(
        result.unit.state, ("as it was", "left")
    )


def _source_marks(text: str, origins: Sequence[Origin], form: int) -> list[Mark]:
    used = {
        each.span: Mark(*each.span, "span" if each.is_span else "used", form * 1000 + k)
        for k, each in enumerate(origins)
    }
    return _not_overlapping([*used.values(), *(Mark(start, end, "span") for start, end, _ in _PROTECT(text))])


def _target_marks(text: str, origins: Sequence[Origin], form: int) -> list[Mark]:
    number = {each.span: form * 1000 + k for k, each in enumerate(origins)}
    words = [Mark(*each.place, "span" if each.is_span else each.origin, number[each.span]) for each in origins]
    return _not_overlapping([*words, *(Mark(start, end, "span") for start, end, _ in _PROTECT(text))])


def _not_overlapping(marks: Iterable[Mark]) -> list[Mark]:
    """Marks from left to right; of two that overlap, the one that was named first."""
    kept: list[Mark] = []
    for mark in marks:
        if all(mark.end <= other.start or other.end <= mark.start for other in kept):
            kept.append(mark)
    return sorted(kept)


def _shown(text: str, marks: Sequence[Mark], form: int | None) -> str:
    label = "" if form is None else f'<span class="form">{form}</span>'
    if not text:
        return f'<p class="nothing">{label}</p>'
    parts, done = [], 0
    for mark in marks:
        if mark.end > LONGEST:
            break
        number = "" if mark.number is None else f' data-k="{mark.number}" tabindex="0"'
        title = f' title="{mark.kind}"' if mark.kind in ("copied", "translated", "glossary") else ""
        parts += [
            _lines(text[done : mark.start]),
            f'<b class="{mark.kind}"{number}{title}>{_text(text[mark.start : mark.end])}</b>',
        ]
        done = mark.end
    parts.append(_lines(text[done : max(done, LONGEST)]))
    more = f"<small> … {len(text) - LONGEST:,} characters more</small>" if len(text) > LONGEST else ""
    return f'<p dir="auto">{label}{"".join(parts)}{more}</p>'


def _lines(text: str) -> str:
    """Text whose line ends can be seen."""
    return '<i class="end">↵</i>\n'.join(_text(line) for line in text.split("\n"))


def _cut(text: str) -> str:
    return _lines(text if len(text) <= LONGEST else f"{text[:LONGEST]} …")


def _text(text: str) -> str:
    return escape("\t".join(visible(part) for part in text.split("\t")))
