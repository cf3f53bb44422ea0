"""Named entities → numbers within their document, and back (paper §5.2, entity pointers).

Each token of an entity gets a number of its own, so that half of a long name can match. Numbers count from 1, from left
to right in the source, and the same word has the same number. An output number becomes the source word that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from pointing.errors import Misuse, missing_extra
from pointing.system.border import entering
from pointing.system.files import count_lines, read_text
from pointing.text.tokenizer import Tokens

OUTSIDE = "O"
SEPARATOR = "￨"


class Tagged(NamedTuple):
    """A sentence whose tokens and tags come with the data."""

    words: list[str]
    tags: list[str]  # OUTSIDE, or another tag for a token of an entity: B-PER, I-LOC, …


def locate(line: str, words: Sequence[str]) -> tuple[list[int], list[int]] | None:
    """Where each of the words begins and ends in the raw line; None if the words are not those of the line."""
    starts, ends, end = [], [], 0
    for word in words:
        start = line.find(word, end)
        if start < 0 or line[end:start].strip():  # only white space may be between words
            return None
        end = start + len(word)
        starts.append(start)
        ends.append(end)
    return None if line[end:].strip() else (starts, ends)


def tokens_as_tagged(line: str, tagged: Tagged, normalise: Callable[[str], str]) -> Tokens | None:
    """A line's tokens as its tags split it; None if the tags belong to another line."""
    spans = locate(line, tagged.words)
    return None if spans is None else Tokens([normalise(word) for word in tagged.words], *spans)


def placeholder(number: int) -> str:
    """The word that stands for an entity, by its number from 1. A word of the text has no space, so it is never one."""
    return f" {number}"


def anonymize(
    source: Sequence[str], source_tags: Sequence[str], target: Sequence[str], target_tags: Sequence[str], limit: int
) -> tuple[list[str], list[str]]:
    """Both sides with their entity tokens replaced by placeholders, at most `limit` different ones.

    A target entity that is not in the source keeps its word: no source word could take the place of its number
    (docs/departures.md).
    """
    placeholders: dict[str, str] = {}
    for word, tag in zip(source, source_tags, strict=True):
        if tag != OUTSIDE and word not in placeholders and len(placeholders) < limit:
            placeholders[word] = placeholder(len(placeholders) + 1)
    return _replace(source, source_tags, placeholders), _replace(target, target_tags, placeholders)


def _replace(words: Sequence[str], tags: Sequence[str], placeholders: dict[str, str]) -> list[str]:
    return [word if tag == OUTSIDE else placeholders.get(word, word) for word, tag in zip(words, tags, strict=True)]


def position_of_entity(number: int, source: Sequence[int], first: int) -> int | None:
    """The first source position of the entity with this number; None if the source has no such entity.

    `source` has vocabulary ids; the placeholder of number 1 has the id `first`.
    """
    placeholder_id = first + number - 1
    return next((position for position, word in enumerate(source) if word == placeholder_id), None)


def read_tags(path: Path) -> Iterator[Tagged]:
    """The file's sentences: a line for each, `word￨TAG word￨TAG`, or in *.conll files a line for each token."""
    return _read_conll(path) if ".conll" in path.suffixes else _read_joined(path)


def count_tagged_sentences(path: Path) -> int:
    """The number of sentences in the file."""
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
    """The first column is the word, the last one the tag; an empty line ends a sentence; -DOCSTART- is skipped."""
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
        """`pipeline` is a folder, or a package that says of itself that it is a pipeline; no other one is imported."""
        try:
            import spacy
        except ImportError:
            raise missing_extra("spaCy", "entities") from None
        is_folder = (Path(pipeline) / "config.cfg").is_file()
        if not is_folder and pipeline not in {package.name for package in entry_points(group="spacy_models")}:
            what = f"there is no spaCy pipeline {pipeline[:60]}"
            raise Misuse(f"pointers.tagger: {what}: python -m spacy download {pipeline[:60]}")
        with entering(pipeline, "a spaCy pipeline that can be loaded"):
            self.pipeline: Any = spacy.load(Path(pipeline) if is_folder else pipeline)

    def __call__(self, line: str, tokens: Tokens) -> list[str]:
        """A tag for each of our own tokens: the label of the entity that shares a character with it."""
        entities = [(entity.start_char, entity.end_char, entity.label_) for entity in self.pipeline(line).ents]
        return [
            next((label for first, last, label in entities if start < last and end > first), OUTSIDE)
            for start, end in zip(tokens.starts, tokens.ends, strict=True)
        ]
