"""Named entities → per-document ids, and back (paper §5.2, entity pointers).

Token by token, so that half of a long name can match; ids count from 1, from left to right in the source, and the same
word has the same id. What comes out of the model as an id goes back to the source word that bore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pointing.errors import Misuse, missing_extra
from pointing.system.files import count_lines, read_text
from pointing.text.tokenizer import Tokens

OUTSIDE = "O"
SEPARATOR = "￨"


class Tagged(NamedTuple):
    words: list[str]
    tags: list[str]  # O, or anything else for a token of an entity: B-PER, I-LOC, …


def locate(line: str, words: Sequence[str]) -> tuple[list[int], list[int]] | None:
    """Where tokens that came with the data begin and end in the raw line; None if they are not that line's."""
    starts, ends, at = [], [], 0
    for word in words:
        start = line.find(word, at)
        if start < 0 or line[at:start].strip():  # only white space may lie between tokens
            return None
        starts.append(start)
        at = start + len(word)
        ends.append(at)
    return None if line[at:].strip() else (starts, ends)


def tokens_as_tagged(line: str, tagged: Tagged, normalise: Callable[[str], str]) -> Tokens | None:
    """A line's tokens as its tags cut it; None if they are not that line's."""
    places = locate(line, tagged.words)
    return None if places is None else Tokens([normalise(word) for word in tagged.words], *places)


def placeholder(number: int) -> str:
    """The name of an entity's id, counted from 1; a word of the text holds no space, so it can never be one."""
    return f" {number}"


def anonymize(
    source: Sequence[str],
    source_tags: Sequence[str],
    target: Sequence[str],
    target_tags: Sequence[str],
    limit: int,
) -> tuple[list[str], list[str]]:
    """Both sides with entity tokens replaced by placeholders, at most `limit` different ones.

    An entity of the target that the source does not name keeps its word: an id of its own could never be brought
    back (docs/departures.md).
    """
    ids: dict[str, str] = {}
    for word, tag in zip(source, source_tags, strict=True):
        if tag != OUTSIDE and word not in ids and len(ids) < limit:
            ids[word] = placeholder(len(ids) + 1)
    return _replace(source, source_tags, ids), _replace(target, target_tags, ids)


def _replace(words: Sequence[str], tags: Sequence[str], ids: dict[str, str]) -> list[str]:
    return [word if tag == OUTSIDE else ids.get(word, word) for word, tag in zip(words, tags, strict=True)]


def position_of_entity(number: int, source: Sequence[int], first: int) -> int | None:
    """The way back: where the entity of id `number` stands first, in a source of vocabulary ids whose placeholders
    begin at `first`; None if the model made the id up."""
    wanted = first + number - 1
    return next((position for position, word in enumerate(source) if word == wanted), None)


def read_tags(path: Path) -> Iterator[Tagged]:
    """Tagged sentences in order: `word￨TAG word￨TAG` a line, or, in *.conll files, a token a line in columns."""
    return _read_conll(path) if ".conll" in path.suffixes else _read_joined(path)


def count_tagged_sentences(path: Path) -> int:
    """How many sentences the file has."""
    if ".conll" in path.suffixes:
        return sum(1 for _ in _read_conll(path))
    return count_lines(path)


def _read_joined(path: Path) -> Iterator[Tagged]:
    for number, line in read_text(path):
        pairs = [token.rpartition(SEPARATOR) for token in line.split()]
        for word, separator, tag in pairs:
            if not word or not separator or not tag:
                raise Misuse(f"a token is written word{SEPARATOR}TAG", path, number)
        yield Tagged([word for word, _, _ in pairs], [tag for _, _, tag in pairs])


def _read_conll(path: Path) -> Iterator[Tagged]:
    """First column the word, last the tag; an empty line ends a sentence; -DOCSTART- lines are skipped."""
    words: list[str] = []
    tags: list[str] = []
    for number, line in read_text(path):
        columns = line.split()
        if columns and columns[0] == "-DOCSTART-":
            continue
        if len(columns) == 1:
            raise Misuse("a token has a word and a tag, in columns", path, number)
        if columns:
            words.append(columns[0])
            tags.append(columns[-1])
        elif words:
            yield Tagged(words, tags)
            words, tags = [], []
    if words:
        yield Tagged(words, tags)


class SpacyTagger:
    """Entities by a spaCy pipeline (an extra), for lines that come without tags."""

    def __init__(self, pipeline: str) -> None:
        try:
            import spacy
        except ImportError:
            raise missing_extra("spaCy", "entities") from None
        try:
            self.pipeline: Any = spacy.load(pipeline)
        except OSError:
            what = f"there is no spaCy pipeline {pipeline}: python -m spacy download {pipeline}"
            raise Misuse(f"pointers.tagger: {what}") from None

    def __call__(self, line: str, tokens: Tokens) -> list[str]:
        """A tag for each of our own tokens: that of the entity whose characters it shares."""
        entities = [(e.start_char, e.end_char, e.label_) for e in self.pipeline(line).ents]
        return [
            next((label for first, last, label in entities if start < last and end > first), OUTSIDE)
            for start, end in zip(tokens.starts, tokens.ends, strict=True)
        ]
