"""The format check: may this translation stand in the place of its source? It knows nothing of meaning.

What a program reads in a text must be in the translation as well: the same protected spans, as often, arguments
without numbers in the same order, tags that close.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pointing.text.protected import Protector, keeps_order

UNKNOWN = "<unk>"
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")
_SIGNS = {  # that begin or end an argument, by the flag that announces it (c-format, …)
    **dict.fromkeys(("c", "objc", "python", "php", "perl", "javascript", "lua", "awk", "ycp", "tcl", "elisp"), "%"),
    **dict.fromkeys(("java-printf", "object-pascal", "qt", "qt-plural", "kde", "boost"), "%"),
    **dict.fromkeys(("gcc-internal", "gfc-internal", "librep"), "%"),
    **dict.fromkeys(("python-brace", "perl-brace", "csharp", "java", "c++", "rust"), "{}"),
    **dict.fromkeys(("lisp", "scheme"), "~"),
    "sh": "$",
}
_EMPTY_TAGS = {"br", "hr", "img", "input", "link", "meta", "col", "nl"}  # HTML's that have no end tag


def problem(source: str, translation: str, protect: Protector, format: str | None = None) -> str | None:
    """What is wrong with a translation, in a few words; None if nothing is.

    `format` is the kind of placeholders that the file announces (`c`, `python-brace`, …): then their signs are counted
    as well, since `100 % de` is an argument to a program, even if it is none to a reader.
    """
    if not translation.strip():
        return "is empty"
    if UNKNOWN in translation and UNKNOWN not in source:
        return "has an unknown word"
    if "\n" in translation or "\0" in translation:
        return "has a line end or a NUL"
    spans, kept = _spans(source, protect), _spans(translation, protect)
    texts, kept_texts = Counter(text for text, _ in spans), Counter(text for text, _ in kept)
    if lost := texts - kept_texts:
        return f"lacks {_listed(lost.elements())}"
    if added := kept_texts - texts:
        return f"has {_listed(added.elements())} too often"
    if _in_order(spans) != _in_order(kept):
        return f"has arguments in another order: {_listed(_in_order(kept))}"
    for sign in _SIGNS.get(format or "", ""):
        if source.count(sign) != translation.count(sign):
            return f"has {translation.count(sign)} times {sign} instead of {source.count(sign)}"
    if is_balanced(source) and not is_balanced(translation):
        return "has tags that do not close"
    return None


def message_problem(source: str, translation: str) -> str | None:
    """What is wrong with a whole message: msgfmt wants a line end at the start or the end on both sides or on none."""
    if source.startswith("\n") != translation.startswith("\n"):
        return "has another line end at its start"
    if source.endswith("\n") != translation.endswith("\n"):
        return "has another line end at its end"
    if is_balanced(source) and not is_balanced(translation):
        return "has tags that do not close"
    return None


def is_balanced(text: str) -> bool:
    """True if every tag is closed, in the right order, as XML wants it; HTML's tags without an end are allowed."""
    is_open: list[str] = []
    for match in _TAG.finditer(text):
        closes, name, closed_itself = match.groups()
        if closed_itself or name.lower() in _EMPTY_TAGS:
            continue
        if not closes:
            is_open.append(name)
        elif not is_open or is_open.pop() != name:
            return False
    return not is_open


def _spans(text: str, protect: Protector) -> list[tuple[str, str]]:
    """The protected spans as (text, kind)."""
    return [(text[span.start : span.end], span.kind) for span in protect(text)]


def _in_order(spans: Sequence[tuple[str, str]]) -> list[str]:
    return [text for text, kind in spans if keeps_order(text, kind)]


def _listed(texts: Iterable[str], most: int = 3) -> str:
    texts = list(texts)
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")
