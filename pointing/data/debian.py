"""Debian's package descriptions: translations (en → fr, or any two languages), or long description → synopsis.

These are tens of thousands of examples full of names: programs, formats, libraries, people.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pointing.data import descriptions
from pointing.data.apt import translations
from pointing.data.descriptions import Description
from pointing.data.parallel import CorpusWriter, Summary, writing
from pointing.data.split import deal, groups
from pointing.errors import Misuse
from pointing.system.progress import track

LONG_ENOUGH = 40  # characters; shorter texts ("LIRC", "remote control (LIRC)") may differ in length by any factor
TOO_DIFFERENT = 2.5  # the largest factor by which a pair's ratio of lengths may differ from the median ratio

Pair = tuple[str, str]


@dataclass
class Document:
    """The pairs of one description, and all its texts, so that no text is in two splits."""

    package: str
    pairs: list[Pair]
    texts: set[str]


def bring(
    out: str | Path,
    languages: tuple[str, str] = ("en", "fr"),
    *,
    synopsis: bool = False,
    dev: int = 2000,
    test: int = 2000,
    seed: int = 1,
    suite: str | None = None,
) -> Summary:
    """Writes train, dev and test: a file for each side, and a file with the package of each line.

    With `synopsis`, the sides are `description` and `synopsis`, both in the first of the languages.
    """
    source, target = languages
    if min(dev, test) < 0:
        raise Misuse("dev and test are numbers of pairs: 0 or more")
    if source == target and not synopsis:
        raise Misuse(f"a translation needs two languages, not {source!r} twice")
    what = f"{source} synopses" if synopsis else f"{source}-{target}"
    sides = ("description", "synopsis") if synopsis else languages
    wanted = languages[:1] if synopsis else languages
    with writing(f"Debian package descriptions, {what}", out, [*sides, "package"]) as corpus:
        with translations(wanted, suite) as fetched:
            corpus.name += f", {' '.join(fetched.suites)}"
            corpus.warnings += fetched.warnings
            read = {language: _read(fetched.files[language]) for language in wanted}
        if synopsis:
            documents = _synopses(read[source], corpus.left_out)
        else:
            documents = _translations(read[source], read[target], corpus.left_out)
        _drop_repeated(documents, corpus.left_out)
        _write(documents, corpus, {split: size for split, size in (("dev", dev), ("test", test)) if size}, seed)
    return corpus.summary()


def _read(files: Iterable[Path]) -> dict[str, Description]:
    """The descriptions by their md5: several packages, or suites, may have the same description."""
    by_md5: dict[str, Description] = {}
    for file in files:
        for description in track(descriptions.read_descriptions(file), f"reading {file.name}", None, "descriptions"):
            by_md5.setdefault(description.md5, description)
    return by_md5


def _translations(
    left: dict[str, Description], right: dict[str, Description], left_out: Counter[str]
) -> list[Document]:
    left_out["descriptions that only one of the languages has"] = len(left.keys() ^ right.keys())
    documents = []
    for md5 in left:
        if md5 not in right:
            continue
        pairs = list(descriptions.paired(left[md5], right[md5]))
        if len(pairs) == 1 and left[md5].body:
            left_out["bodies whose paragraphs do not match"] += 1
        texts = {text for pair in pairs for text in pair}.union(left[md5].texts(), right[md5].texts())
        documents.append(Document(left[md5].package, pairs, texts))
    _drop(documents, lambda pair: not all(pair), "pairs with an empty side", left_out)
    _drop(documents, _untranslated, "pairs with the same text on both sides", left_out)
    ratios = [_log_ratio(pair) for document in documents for pair in document.pairs]
    usual = statistics.median(ratios) if ratios else 0.0

    def different(pair: Pair) -> bool:
        deviation = abs(_log_ratio(pair) - usual)
        return deviation > math.log(TOO_DIFFERENT) and max(map(len, pair)) >= LONG_ENOUGH

    _drop(documents, different, "pairs of too different lengths", left_out)
    return documents


def _synopses(by_md5: dict[str, Description], left_out: Counter[str]) -> list[Document]:
    documents = [
        Document(description.package, [(description.long(), description.title)], set(description.texts()))
        for description in by_md5.values()
        if description.long()
    ]
    left_out["descriptions that are a synopsis only"] = len(by_md5) - len(documents)
    _drop(documents, _untranslated, "pairs with the same text on both sides", left_out)
    return documents


def _drop(documents: list[Document], bad: Callable[[Pair], bool], reason: str, left_out: Counter[str]) -> None:
    """Removes the bad pairs, and counts them under the reason."""
    for document in documents:
        good = [pair for pair in document.pairs if not bad(pair)]
        if len(good) < len(document.pairs):
            left_out[reason] += len(document.pairs) - len(good)
            document.pairs = good


def _drop_repeated(documents: list[Document], left_out: Counter[str]) -> None:
    seen: set[Pair] = set()

    def repeated(pair: Pair) -> bool:
        again = pair in seen
        seen.add(pair)
        return again

    _drop(documents, repeated, "pairs seen before", left_out)


def _untranslated(pair: Pair) -> bool:
    """True if both sides are equal apart from case and punctuation: names, commands, texts that nobody translated."""
    left, right = (re.sub(r"[\W_]+", " ", text.casefold()).strip() for text in pair)
    return left == right


def _log_ratio(pair: Pair) -> float:
    return math.log(len(pair[1]) / len(pair[0]))


def _write(documents: list[Document], corpus: CorpusWriter, held_out: dict[str, int], seed: int) -> None:
    counts = [len(document.pairs) for document in documents]
    if sum(counts) < 2 * sum(held_out.values()):
        raise Misuse(f"there are only {sum(counts):,} pairs: ask for fewer in dev and test than {held_out}")
    linked = groups([document.texts for document in documents])
    dealt = deal(linked, [document.package for document in documents], counts, held_out, seed)
    for split, chosen in dealt.items():
        for number in chosen:
            for source, target in documents[number].pairs:
                corpus.add(split, source, target, documents[number].package)
