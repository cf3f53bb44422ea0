"""Terms of the user at generation: how they are to be written, or that they stay as they are.

A term of the source becomes one token. A term that is to be translated is read as its last word, and where the model
looks at it, it is drawn to it. A term that stays as it is, and one whose last word the model does not know, is read as
an unknown word, which the model has learned to point at by itself. Pointing at a term writes what the glossary says.

The rules:


- Words are compared as the tokenizer finds them. An entry with a capital matches the same capitals first; any entry
  matches without regard to case.
- Of overlapping terms the one that begins first is taken, of those the longest; terms inside it are not looked at.
- A term matches whole words in the given form. Inflected forms are entries of their own.
- A protected span is never part of a term, unless the term is this span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pointing.errors import Misuse
from pointing.system.files import read_text
from pointing.text.protected import protected_text, protected_word
from pointing.text.tokenizer import Tokenizer, Tokens

Mode = Literal["guaranteed", "encouraged"]
MODES: tuple[Mode, ...] = get_args(Mode)
Terms = Mapping[str, str] | str | Path | None  # how terms are written, or a file that says so
Kept = Iterable[str] | str | Path | None  # terms that stay as they are, or a file of them
GUARANTEED, ENCOURAGED = "term", "hint"  # kinds of protected words


def parse_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise Misuse(f"--glossary-mode {name}: there are {' and '.join(MODES)}")


class Term(NamedTuple):
    source: str
    target: str | None  # None: it stays as it is written in the source


class FoundTerm(NamedTuple):
    """A term in a line."""

    target: str | None
    read_as: str  # its last word, or, if it stays as it is, all of its words as one name


def read_glossary(path: str | Path) -> list[Term]:
    """Lines of a source term, a tab and a target term; empty lines and lines that begin with # are left out."""
    return [_term(path, number, line) for number, line in read_text(Path(path)) if _has_content(line)]


def read_kept(path: str | Path) -> list[Term]:
    """Terms that are not translated, one a line."""
    return [Term(line.strip(), None) for _, line in read_text(Path(path)) if _has_content(line)]


def make_terms(glossary: Terms = None, keep: Kept = None) -> list[Term]:
    """How terms are written, and terms that stay as they are. Both may be files."""
    if glossary is None or isinstance(glossary, str | Path):
        terms = [] if glossary is None else read_glossary(glossary)
    elif isinstance(glossary, Mapping):
        terms = [Term(_checked(source), _checked(target)) for source, target in glossary.items()]
    else:
        raise Misuse(f"glossary: should be a file, or a mapping of terms to translations, not {glossary!r}")
    if keep is None or isinstance(keep, str | Path):
        kept = [] if keep is None else read_kept(keep)
    elif isinstance(keep, Iterable) and not isinstance(keep, bytes | Mapping):
        kept = [Term(_checked(term), None) for term in keep]
    else:
        raise Misuse(f"keep: should be a file, or a list of terms, not {keep!r}")
    return [*terms, *kept]


def _checked(term: object) -> str:
    if not isinstance(term, str):
        raise Misuse(f"a glossary's term should be text, not {term!r}")
    if not term.strip():
        raise Misuse(f"a glossary's term has no word: {term!r}")
    return term.strip()


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _term(path: str | Path, number: int, line: str) -> Term:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) < 2:
        raise Misuse("not a source term, a tab and a target term", path, number)
    if not columns[0] or not columns[1]:
        raise Misuse("one of the two terms is empty", path, number)
    return Term(columns[0], columns[1])


class Glossary:
    """Finds terms in tokenised lines."""

    def __init__(self, terms: Iterable[Term], tokenizer: Tokenizer, mode: Mode = "guaranteed") -> None:
        self.kind = GUARANTEED if mode == "guaranteed" else ENCOURAGED
        self.found: dict[str, FoundTerm] = {}  # by the words of the tokens that terms became
        self._exact: dict[tuple[str, ...], Term] = {}
        self._terms: dict[tuple[str, ...], Term] = {}
        for term in terms:
            key = _key(tokenizer(term.source).words)
            if not key:
                raise Misuse(f"a glossary's term has no word: {term.source!r}")
            self._exact[tuple(term.source.split())] = term
            self._terms[key] = term
        self._lengths: dict[str, list[int]] = {}  # first word → how many words its terms have, longest first
        for key in self._terms:
            lengths = self._lengths.setdefault(key[0], [])
            if len(key) not in lengths:
                lengths.append(len(key))
                lengths.sort(reverse=True)

    def mark(self, line: str, tokens: Tokens) -> Tokens:
        """The tokens of the line, each term as one token."""
        key = _key(tokens.words)
        words: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        seen: dict[str, int] = {}
        place = 0
        while place < len(key):
            size = next((n for n in self._lengths.get(key[place], ()) if key[place : place + n] in self._terms), 0)
            start, end = tokens.starts[place], tokens.ends[place + max(size, 1) - 1]
            word = tokens.words[place]
            if size:
                text = line[start:end]
                term = self._exact.get(tuple(text.split())) or self._terms[key[place : place + size]]
                seen[text] = seen.get(text, 0) + 1
                word = protected_word(self.kind, seen[text], text)
                of_term = tokens.words[place : place + size]
                self.found[word] = FoundTerm(term.target, of_term[-1] if term.target else "".join(of_term))
            words.append(word)
            starts.append(start)
            ends.append(end)
            place += max(size, 1)
        return Tokens(words, starts, ends)

    def written(self, line: str, tokens: Tokens) -> list[str]:
        """What the terms of a line are to be written as, in the order of the line."""
        marked = self.mark(line, tokens)
        return [
            self.found[word].target or line[start:end]
            for word, start, end in zip(*marked, strict=True)
            if word in self.found
        ]


def _key(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(protected_text(word).lower() for word in words)
