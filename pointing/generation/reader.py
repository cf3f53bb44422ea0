"""A raw line at test → what the model reads, by the same steps as `prepare`, and what each of its words would write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.config import Config
from pointing.corpus.encoding import tokenizer
from pointing.corpus.examples import Split
from pointing.corpus.pointers import Side, names
from pointing.system.files import without_end
from pointing.text import entities
from pointing.text.dictionary import Dictionary, Senses
from pointing.text.subwords import split_into_pieces
from pointing.text.token_arrays import TokenArrays, from_tokens, tokenize_lines, unique_numbers
from pointing.text.tokenizer import Tokens
from pointing.text.vocabulary import Vocabulary

Ints = npt.NDArray[np.int32]
LONGEST = 200  # words of a line that are read at least, however short those of the training were
PIECES = 4  # with subwords, the pieces of a line that are read at most, for each such word


class Line(NamedTuple):
    """A source line of J tokens, or with subwords of J pieces."""

    text: str  # raw
    starts: Ints  # (J,) the characters where each token begins
    ends: Ints
    ids: Ints  # (J,) in the source vocabulary
    names: Ints  # (J,) what copying each one writes: target id, or V + first position of the same word
    translated: Sequence[str | None]  # (J,) what the dictionary makes of each one when it is copied, if anything
    warning: str | None = None
    pieces: Pieces | None = None

    @property
    def in_words(self) -> Line:
        """The line as its words, if it is cut into pieces."""
        return self if self.pieces is None else self.pieces.words

    def raw(self, position: int) -> str:
        """A word as it was written."""
        return self.text[self.starts[position] : self.ends[position]]


class Pieces(NamedTuple):
    """Where the pieces of a line come from."""

    forms: list[str]  # (J,) the pieces as the model sees them
    word: Ints  # (J,) which of the line's words each one is of
    words: Line  # the line in words


class Reader:
    """Reads lines as a configuration says; with the dictionary policy `senses` translates what is copied."""

    def __init__(self, config: Config, source: Vocabulary, target: Vocabulary, dictionary: Dictionary | None) -> None:
        self.source, self.target = source, target
        self.merges = source.merges
        self.tokenizer = tokenizer(config.text, config.data.languages[0])
        self.longest = max(LONGEST, config.text.max_tokens)
        self.entities = config.pointers.policy == "entities"
        self.anonymous, tagger = config.pointers.anonymous, config.pointers.tagger
        self.needs_tags = config.pointers.needs_tags
        self.tagger = entities.SpacyTagger(tagger) if self.anonymous and tagger is not None else None
        self.senses: Senses | None = None
        if config.pointers.policy == "dictionary" and dictionary is not None:
            self.senses = Senses(dictionary, target)

    def __call__(self, lines: Sequence[str | bytes], tags: Sequence[entities.Tagged] | None = None) -> list[Line]:
        """What is too long is cut, what is not UTF-8 comes in as �: with a warning.

        `tags` are for entities: where these are anonymised they say what is a name, and in any case where tokens end.
        """
        texts, warnings = zip(*map(_decoded, lines), strict=True) if lines else ((), ())
        if self.entities and (tags is not None or self.tagger is not None):
            tagged = [None] * len(texts) if tags is None else tags
            arrays = from_tokens([self._tagged(*one) for one in zip(texts, tagged, warnings, strict=True)])
        else:
            arrays = tokenize_lines(self.tokenizer, texts)
        for row in np.flatnonzero(arrays.counts > self.longest).tolist():
            warnings[row].append(f"{arrays.counts[row]:,} tokens, cut after {self.longest}")
        arrays = arrays.truncate(self.longest)
        return self._lines(texts, arrays, warnings) if self.merges is None else self._pieces(texts, arrays, warnings)

    def prepared(self, split: Split, rows: Iterable[int]) -> list[Line]:
        """Examples of a prepared corpus, their entities as they were tagged there."""
        examples = [split[int(row)] for row in rows]
        if self.senses is not None or self.merges is not None:
            return self([example["source_text"] for example in examples])
        lines = []
        for example in examples:
            starts, ends, ids, copies = (
                np.array(example[column], np.int32) for column in ("starts", "ends", "source", "source_words")
            )
            lines.append(Line(example["source_text"], starts, ends, ids, copies, [None] * len(ids)))
        return lines

    def _lines(self, texts: Sequence[str], arrays: TokenArrays, warnings: Sequence[list[str]]) -> list[Line]:
        translated = [None if self.senses is None else self.senses[word] for word in arrays.words]
        written, which = unique_numbers([other or word for word, other in zip(arrays.words, translated, strict=True)])
        offsets = np.append(0, np.cumsum(arrays.counts)).astype(np.int32)
        ids = self.source.ids(arrays.words)[arrays.ids]
        copies = which[arrays.ids]
        copies = names(Side(copies, offsets), self.target.ids(written)[copies], len(self.target))
        lines = []
        for row, text in enumerate(texts):
            at = slice(offsets[row], offsets[row + 1])
            others = [translated[word] for word in arrays.ids[at].tolist()]
            warning = "; ".join(warnings[row]) or None
            lines.append(Line(text, arrays.starts[at], arrays.ends[at], ids[at], copies[at], others, warning))
        return lines

    def _pieces(self, texts: Sequence[str], arrays: TokenArrays, warnings: Sequence[list[str]]) -> list[Line]:
        """Lines whose words are cut into pieces; a line of very many pieces is cut short, which takes odd words."""
        assert self.merges is not None
        pieces, token = split_into_pieces(arrays, self.merges)
        longest = PIECES * self.longest
        for row in np.flatnonzero(pieces.counts > longest).tolist():
            warnings[row].append(f"{pieces.counts[row]:,} pieces, cut after {longest}")
        token = token[pieces.positions() < longest]
        pieces = pieces.truncate(longest)
        words = self._lines(texts, arrays, warnings)
        first, lines, at = np.append(0, np.cumsum(arrays.counts)), [], 0
        for row, line in enumerate(self._lines(texts, pieces, warnings)):
            here = slice(at, at + len(line.ids))
            forms = [pieces.words[piece] for piece in pieces.ids[here].tolist()]
            word = (token[here] - first[row]).astype(np.int32)
            lines.append(line._replace(pieces=Pieces(forms, word, words[row])))
            at = here.stop
        return lines

    def _tagged(self, text: str, tagged: entities.Tagged | None, warnings: list[str]) -> Tokens:
        """A line's tokens as its tags cut it, with its entities as placeholders if they were so in training."""
        cut = None if tagged is None else entities.tokens_as_tagged(text, tagged, self.tokenizer.normalise)
        if tagged is not None and cut is not None:
            tokens, tags = cut, tagged.tags
        elif self.tagger is not None:
            tokens = self.tokenizer(text)
            tags = self.tagger(text, tokens)
        else:
            warnings.append("its tags are those of another text")
            return self.tokenizer(text)
        if not self.anonymous:
            return tokens
        words, _ = entities.anonymize(tokens.words, tags, [], [], self.source.placeholders)
        return tokens._replace(words=words)


def _decoded(line: str | bytes) -> tuple[str, list[str]]:
    """A line as text, and what there is to be warned of."""
    if isinstance(line, str):
        return line, []
    line = without_end(line)
    try:
        return line.decode("utf-8"), []
    except UnicodeDecodeError as error:
        return line.decode("utf-8", "replace"), [f"not UTF-8 (byte {error.start + 1} of the line)"]
