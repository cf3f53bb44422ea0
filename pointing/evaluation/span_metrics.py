"""Whether protected spans arrive: each as often as the source has it, none invented, positional ones in their order.

Outputs are compared with their sources, not with references, and as they are delivered: no form, no tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.significance import Floats, Measure, ratio
from pointing.generation.glossary import Glossary
from pointing.text.protected import PRESETS, Protector, keeps_order
from pointing.text.tokenizer import Tokenizer

_WORD = re.compile(r"[^\W_]+")  # letters and digits that stand together, as `_is_inside_a_word` sees them
LOST, INVENTED = "spans lost", "spans invented"  # measures that are counts


def span_measures(sources: Sequence[str], outputs: Sequence[str], protector: Protector) -> list[Measure]:
    """Lines with all spans intact, spans in order (both in percent); spans lost, spans invented (numbers).

    *Intact* is a line whose output has exactly the spans of its source, of those lines in which either has one. *In
    order* is a line whose positional arguments (%s, {}) stand in the source's order, of those whose source has at
    least two.
    """
    if len(sources) != len(outputs):
        raise Misuse(f"{len(outputs):,} outputs cannot be compared with {len(sources):,} sources")
    rows = [_counts(source, output, protector) for source, output in zip(sources, outputs, strict=True)]
    columns = np.array(rows, np.float64).reshape(len(rows), 6)
    kinds = next((name for name, preset in PRESETS.items() if preset == protector.kinds), "+".join(protector.kinds))
    own = f"+patterns:{len(protector.patterns)}" if protector.patterns else ""

    def measure(name: str, numbers: Floats, of_sums: Callable[[Floats], Floats]) -> Measure:
        signature = f"{name.replace(' ', '-')}|protect:{kinds}{own}|text:delivered|version:{__version__}"
        return Measure(name, signature, numbers, of_sums)

    return [
        measure("lines with spans intact", columns[:, 0:2], ratio),
        measure("lines with spans in order", columns[:, 2:4], ratio),
        measure(LOST, columns[:, 4:5], _total),
        measure(INVENTED, columns[:, 5:6], _total),
    ]


def term_measure(sources: Sequence[str], outputs: Sequence[str], glossary: Glossary, tokenizer: Tokenizer) -> Measure:
    """Share of the glossary's terms in the sources that stand in the outputs as the glossary writes them.

    Each occurrence counts, whatever the case of its letters.
    """
    rows = []
    for source, output in zip(sources, outputs, strict=True):
        wanted = Counter(text.lower() for text in glossary.written(source, tokenizer(source)))
        lowered = output.lower()
        used = sum(min(count, lowered.count(text)) for text, count in wanted.items())
        rows.append([used, sum(wanted.values())])
    signature = f"glossary-terms-used|case:lc|version:{__version__}"
    return Measure("glossary terms used", signature, np.array(rows, np.float64), ratio)


def _counts(source: str, output: str, protector: Protector) -> tuple[int, int, int, int, int, int]:
    """Is the line intact, does it count; is it in order, does it count; spans lost, spans invented."""
    asked, positional = _spans(source, protector)
    found, written = _spans(output, protector)
    lost, invented = asked - found, found - asked
    lost -= _hidden(output, lost, protector)
    invented -= _hidden(source, invented, protector)
    has_spans = bool(asked or found)
    has_order = len(positional) > 1
    return (
        has_spans and not lost and not invented,
        has_spans,
        has_order and written == positional,
        has_order,
        lost.total(),
        invented.total(),
    )


def _spans(line: str, protector: Protector) -> tuple[Counter[str], list[str]]:
    """All spans of a line, and the positional ones in their order."""
    spans = [(line[span.start : span.end], span.kind) for span in protector(line)]
    return Counter(text for text, _ in spans), [text for text, kind in spans if keeps_order(text, kind)]


def _hidden(line: str, missing: Counter[str], protector: Protector) -> Counter[str]:
    """Those of the missing spans that the line has where the text around hides them, such as -shared without quotes."""
    if not missing:
        return Counter()
    rest = list(line)
    for span in protector(line):
        rest[span.start : span.end] = "\0" * (span.end - span.start)
    text, hidden = "".join(rest), Counter[str]()
    words = set(_WORD.findall(text))
    for span_text, count in sorted(missing.items(), key=lambda item: len(item[0]), reverse=True):
        if not words.issuperset(_WORD.findall(span_text)):  # most are not there: a long line need not be searched
            continue
        parts, begin, place = [], 0, text.find(span_text)
        while place >= 0 and hidden[span_text] < count:
            end = place + len(span_text)
            if _is_inside_a_word(text, place, end):
                place = text.find(span_text, place + 1)
                continue
            parts += [text[begin:place], "\0" * len(span_text)]
            hidden[span_text] += 1
            begin, place = end, text.find(span_text, end)
        if parts:
            text = "".join([*parts, text[begin:]])
    return hidden


def _is_inside_a_word(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (before.isalnum() and text[start].isalnum()) or (after.isalnum() and text[end - 1].isalnum())


def _total(sums: Floats) -> Floats:
    return sums[..., 0]
