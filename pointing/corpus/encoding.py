"""A block of pairs on its way through a worker process: raw lines → tokens on disk → rows of the corpus.

Every worker builds its tools once (`set_up_…`); blocks and what was made of them cross between processes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointing.config import Config, Text
from pointing.corpus.examples import SCHEMA, flat
from pointing.corpus.pointers import NOWHERE, Ints, Side, choose, names, same_entity
from pointing.system.files import without_end
from pointing.text import entities
from pointing.text.dictionary import Dictionary, Senses
from pointing.text.subwords import split_into_pieces
from pointing.text.token_arrays import TokenArrays, from_tokens, tokenize_lines, unique_numbers
from pointing.text.tokenizer import Tokenizer, Tokens
from pointing.text.vocabulary import EOS, UNK, Vocabulary

_tools: Any = None


@dataclass
class Statistics:
    """What a split holds, in the paper's own terms (§5.2)."""

    pairs: int = 0
    skipped: dict[str, int] = field(default_factory=dict)  # reason → pairs
    first_skipped: dict[str, int] = field(default_factory=dict)  # reason → line
    source_tokens: int = 0
    target_tokens: int = 0  # without the end of sentence
    pointers: int = 0
    unknown: int = 0  # target words, or pieces, outside the shortlist
    same_word: int = 0  # of those, found in the source as they are
    dictionary: int = 0  # of those, found by a sense only
    source_pieces: int = 0  # what the model reads: the tokens, or with subwords their pieces
    target_pieces: int = 0

    def add(self, other: Statistics) -> None:
        for reason, count in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.first_skipped.setdefault(reason, other.first_skipped[reason])
        lengths = "source_tokens", "target_tokens", "source_pieces", "target_pieces"
        for name in ("pairs", "pointers", "unknown", "same_word", "dictionary", *lengths):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def skip(self, reason: str, line: int) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.first_skipped.setdefault(reason, line)

    def shares(self) -> dict[str, float]:
        pairs, pieces, unknown = (max(1, n) for n in (self.pairs, self.target_pieces, self.unknown))
        tokens = self.source_tokens + self.target_tokens
        return {
            "pointers_per_100": 100 * self.pointers / pairs,
            "pieces_per_word": (self.source_pieces + self.target_pieces) / max(1, tokens),
            "unknown_share": self.unknown / pieces,
            "reached_by_same_word": self.same_word / unknown,
            "reached_by_same_word_or_dictionary": (self.same_word + self.dictionary) / unknown,
        }


class Block(NamedTuple):
    """What a worker tokenises: lines of a split, and the file for the result."""

    split: str
    path: Path
    first_line: int
    source: list[bytes]  # lines with their ends
    target: list[bytes]
    tags: list[tuple[entities.Tagged, entities.Tagged]] | None


class Tokenised(NamedTuple):
    split: str
    path: Path
    statistics: Statistics
    words: list[str]
    counts: Ints  # (2, words): on the source side, on the target side


def tokenizer(text: Text, language: str) -> Tokenizer:
    return Tokenizer(text.tokenizer, language, lowercase=text.lowercase, digits=text.digits, unicode=text.unicode)


def read_dictionary(path: str | Path, config: Config) -> Dictionary:
    """A dictionary's words in the form that the texts' words have."""
    forms = (tokenizer(config.text, language).normalise for language in config.data.languages)
    return Dictionary.load(path).normalized(*forms)


class _TokenizingTools(NamedTuple):
    tokenizers: tuple[Tokenizer, Tokenizer]  # of source and target
    max_tokens: int
    entities: bool
    anonymous: bool
    tagger: entities.SpacyTagger | None


def set_up_tokenizing(config: Config) -> None:
    global _tools
    source, target = (tokenizer(config.text, language) for language in config.data.languages)
    pointers = config.pointers
    tagger = None if pointers.tagger is None else entities.SpacyTagger(pointers.tagger)
    kind = pointers.policy == "entities", pointers.anonymous
    _tools = _TokenizingTools((source, target), config.text.max_tokens, *kind, tagger)


def tokenize(block: Block) -> Tokenised:
    """A block's pairs as tokens, in an Arrow file whose words are numbered within the block, both sides together."""
    gc.disable()  # many small lists and no cycles: looking for cycles would take a third of the time
    try:
        return _tokenize(_tools, block)
    finally:
        gc.enable()


def _tokenize(tools: _TokenizingTools, block: Block) -> Tokenised:
    statistics = Statistics()
    rows, texts = _readable(block, statistics)
    tags: tuple[Bools, Bools] | None = None
    if tools.entities:
        rows, texts, source, target, tags = _with_entities(tools, block, rows, texts, statistics)
    else:
        source, target = (tokenize_lines(tool, text) for tool, text in zip(tools.tokenizers, texts, strict=True))
    empty = (source.counts == 0) | (target.counts == 0)
    long = np.maximum(source.counts, target.counts) > tools.max_tokens
    for some, reason in ((empty, "an empty side"), (long & ~empty, f"more than {tools.max_tokens} tokens")):
        for place in np.flatnonzero(some):
            statistics.skip(reason, block.first_line + rows[place])
    keep = ~(empty | long)
    if tags is not None:
        tags = tags[0][np.repeat(keep, source.counts)], tags[1][np.repeat(keep, target.counts)]
    source, target = source.select(keep), target.select(keep)
    words, source_ids, target_ids = _together(source, target)
    columns = {
        "source": _lists(source.counts, source_ids),
        "target": _lists(target.counts, target_ids),
        "starts": _lists(source.counts, source.starts),
        "ends": _lists(source.counts, source.ends),
        "source_text": _strings(compress(texts[0], keep)),
        "target_text": _strings(compress(texts[1], keep)),
        "line": _integers(block.first_line + np.array(rows, np.int32)[keep]),
    }
    if tags is not None:
        sides = Side(source_ids, _offsets(source.counts)), Side(target_ids, _offsets(target.counts))
        columns["entity"] = _lists(target.counts, same_entity(*sides, *tags))
    batch = pa.record_batch(columns)
    with pa.OSFile(str(block.path), "wb") as file:
        for part in (batch, pa.record_batch({"words": _strings(words)})):
            with pa.ipc.new_stream(file, part.schema) as stream:
                stream.write(part)
    statistics.pairs = batch.num_rows
    statistics.source_tokens, statistics.target_tokens = len(source_ids), len(target_ids)
    counts = np.stack([np.bincount(some, minlength=len(words)) for some in (source_ids, target_ids)]).astype(np.int32)
    return Tokenised(block.split, block.path, statistics, words, counts)


def _together(source: TokenArrays, target: TokenArrays) -> tuple[list[str], Ints, Ints]:
    """The different words of both sides, and each side's tokens as numbers of them."""
    words, together = unique_numbers(source.words + target.words)
    return words, together[source.ids], together[len(source.words) :][target.ids]


Texts = tuple[list[str], list[str]]
Bools = npt.NDArray[np.bool_]


def _readable(block: Block, statistics: Statistics) -> tuple[list[int], Texts]:
    """The pairs that are text on both sides: their places in the block, and their lines."""
    whole = _decoded(block.source), _decoded(block.target)
    if whole[0] is not None and whole[1] is not None:
        return list(range(len(whole[0]))), (whole[0], whole[1])
    rows: list[int] = []
    texts: Texts = ([], [])
    for row, lines in enumerate(zip(block.source, block.target, strict=True)):
        try:
            source, target = (without_end(line).decode("utf-8") for line in lines)
        except UnicodeDecodeError:
            statistics.skip("not UTF-8", block.first_line + row)
            continue
        if "\0" in source or "\0" in target:
            statistics.skip("a NUL character", block.first_line + row)
            continue
        rows.append(row)
        texts[0].append(source)
        texts[1].append(target)
    return rows, texts


def _decoded(lines: list[bytes]) -> list[str] | None:
    """All lines at once, which is nearly always possible; None if they have to be looked at one by one."""
    joined = b"".join(lines)
    if b"\0" in joined or b"\r" in joined:
        return None
    try:
        return joined.removesuffix(b"\n").decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None


def _with_entities(
    tools: _TokenizingTools, block: Block, rows: list[int], texts: Texts, statistics: Statistics
) -> tuple[list[int], Texts, TokenArrays, TokenArrays, tuple[Bools, Bools]]:
    """The pairs as their tags cut them, their entities as placeholders if asked for, and which tokens are of entities.

    Pairs whose tags belong to another text are left out.
    """
    made: tuple[list[Tokens], list[Tokens]] = ([], [])
    tagged: tuple[list[bool], list[bool]] = ([], [])
    kept: list[int] = []
    for place, (row, *lines) in enumerate(zip(rows, *texts, strict=True)):
        pair = [_tagged(tools, block, row, side, line) for side, line in enumerate(lines)]
        if pair[0] is None or pair[1] is None:
            statistics.skip("tags of another text", block.first_line + row)
            continue
        (source, source_tags), (target, target_tags) = pair[0], pair[1]
        if tools.anonymous:
            words = entities.anonymize(source.words, source_tags, target.words, target_tags, tools.max_tokens)
            source, target = source._replace(words=words[0]), target._replace(words=words[1])
        for side, (tokens, tags) in enumerate(((source, source_tags), (target, target_tags))):
            made[side].append(tokens)
            tagged[side].extend(tag != entities.OUTSIDE for tag in tags)
        kept.append(place)
    texts = [texts[0][place] for place in kept], [texts[1][place] for place in kept]
    which = np.array(tagged[0], bool), np.array(tagged[1], bool)
    return [rows[place] for place in kept], texts, from_tokens(made[0]), from_tokens(made[1]), which


def _tagged(tools: _TokenizingTools, block: Block, row: int, side: int, line: str) -> tuple[Tokens, list[str]] | None:
    """A line's tokens and their tags: those that came with the data, or our own tokens with spaCy's tags."""
    tool = tools.tokenizers[side]
    if block.tags is None:
        assert tools.tagger is not None
        tokens = tool(line)
        return tokens, tools.tagger(line, tokens)
    tagged = block.tags[row][side]
    cut = entities.tokens_as_tagged(line, tagged, tool.normalise)
    return None if cut is None else (cut, tagged.tags)


class _EncodingTools(NamedTuple):
    config: Config
    source: Vocabulary
    target: Vocabulary
    dictionary: Dictionary | None
    senses: Senses | None  # what copied words become


def set_up_encoding(config: Config, source: Vocabulary, target: Vocabulary, dictionary: Dictionary | None) -> None:
    global _tools
    senses = Senses(dictionary, target) if config.pointers.policy == "dictionary" and dictionary else None
    _tools = _EncodingTools(config, source, target, dictionary, senses)


def encode(path: Path) -> tuple[pa.RecordBatch, Statistics]:
    """A tokenised block as the corpus has it: vocabulary ids, and for each target word the choice to be learned."""
    tools: _EncodingTools = _tools
    block, words = read_block(path)
    V = len(tools.target)
    words, source, target, starts, ends = _as_read(tools, block, words)
    in_source, in_target = tools.source.ids(words), tools.target.ids(words)  # block number → id
    ids = in_target[target.words]
    written = None if tools.senses is None else _written(tools.senses, words, source, target)
    copied, names_of = (source, in_target) if written is None else (written.source, tools.target.ids(written.words))
    choices = choose(
        tools.config.pointers.policy,
        source,
        target,
        ids,
        V,
        senses=_senses(tools.dictionary, words, np.unique(target.words[ids == UNK])),
        entity=flat(block, "entity")[1] if "entity" in block.schema.names else None,
        written=None if written is None else (written.source, written.target),
    )
    last = target.offsets[1:]  # the end of sentence comes after each sentence's last word
    lengths, ended = np.diff(source.offsets), np.diff(target.offsets) + 1
    batch = pa.record_batch(
        {
            "source": _lists(lengths, in_source[source.words]),
            "source_words": _lists(lengths, names(copied, names_of[copied.words], V)),
            "starts": _lists(lengths, starts),
            "ends": _lists(lengths, ends),
            "target": _lists(ended, np.insert(choices.target, last, EOS)),
            "target_words": _lists(ended, np.insert(choices.words, last, EOS)),
            "source_text": block.column("source_text"),
            "target_text": block.column("target_text"),
            "line": block.column("line"),
        },
        schema=SCHEMA,
    )
    unknown = choices.unknown
    statistics = Statistics(
        pointers=int((choices.target >= V).sum()),
        unknown=int(unknown.sum()),
        same_word=int((unknown & (choices.same != NOWHERE)).sum()),
        dictionary=int((unknown & (choices.sense != NOWHERE)).sum()),
        source_pieces=len(source.words),
        target_pieces=len(target.words),
    )
    return batch, statistics


class _Written(NamedTuple):
    words: list[str]
    source: Side  # in numbers of these: what copying each position writes
    target: Side


def _written(senses: Senses, words: list[str], source: Side, target: Side) -> _Written:
    """Both sides in the words that are written: what is copied is translated on its way."""
    forms, which = unique_numbers([*(senses[word] or word for word in words), *words])
    copied, said = which[: len(words)], which[len(words) :]
    return _Written(forms, Side(copied[source.words], source.offsets), Side(said[target.words], target.offsets))


def _senses(dictionary: Dictionary | None, words: list[str], asked: Ints) -> dict[int, Ints]:
    """Block number of a target word → block numbers of the source words that it may translate."""
    if dictionary is None:
        return {}
    number = {word: i for i, word in enumerate(words)}
    found = {int(i): [number[s] for s in dictionary.senses(words[i]) if s in number] for i in asked}
    return {i: np.array(senses, np.int32) for i, senses in found.items() if senses}


def read_block(path: Path) -> tuple[pa.RecordBatch, list[str]]:
    """A tokenised block and the words that its numbers stand for."""
    with pa.OSFile(str(path), "rb") as file:
        (block,) = pa.ipc.open_stream(file)  # to its end, where the second stream begins
        (words,) = pa.ipc.open_stream(file)
    return block, words.column("words").to_pylist()


def _as_read(
    tools: _EncodingTools, block: pa.RecordBatch, words: list[str]
) -> tuple[list[str], Side, Side, Ints, Ints]:
    """A block's different words, or pieces; its sides as numbers of them; the source's characters."""
    (offsets, source), (target_offsets, target) = flat(block, "source"), flat(block, "target")
    starts, ends = flat(block, "starts")[1], flat(block, "ends")[1]
    if tools.source.merges is None or tools.target.merges is None:
        return words, Side(source, offsets), Side(target, target_offsets), starts, ends
    x, _ = split_into_pieces(TokenArrays(words, source, starts, ends, np.diff(offsets)), tools.source.merges)
    nowhere = np.zeros_like(target)
    y, _ = split_into_pieces(TokenArrays(words, target, nowhere, nowhere, np.diff(target_offsets)), tools.target.merges)
    words, source, target = _together(x, y)
    return words, Side(source, _offsets(x.counts)), Side(target, _offsets(y.counts)), x.starts, x.ends


def _lists(counts: Ints, values: Ints) -> Any:
    """An Arrow column of lists, from their lengths and all their values end to end."""
    return pa.ListArray.from_arrays(_integers(_offsets(counts)), _integers(values))


def _offsets(counts: Ints) -> Ints:
    return np.append(0, np.cumsum(counts)).astype(np.int32)


# pa.array() would do for both, but imports pandas wherever that is installed, in every worker.


def _integers(values: Any) -> Any:
    array = np.ascontiguousarray(values, np.int32)
    return pa.Array.from_buffers(pa.int32(), len(array), [None, pa.py_buffer(array)])


def _strings(texts: Iterable[str]) -> Any:
    encoded = [text.encode("utf-8") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
