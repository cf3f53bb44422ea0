"""A block of pairs on its way through a worker process: raw lines → tokens on disk → rows of the corpus.

Every worker builds its tools once (`set_up_…`); blocks and what was made of them cross between processes.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pointing import entities
from pointing.config import Config, Text
from pointing.corpus import SCHEMA
from pointing.dictionary import Dictionary
from pointing.files import without_end
from pointing.pointers import NOWHERE, Ints, Side, choose, names
from pointing.text import Tokenizer, Tokens
from pointing.vocabulary import EOS, FIRST, UNK, Vocabulary

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
    unknown: int = 0  # target words outside the shortlist
    same_word: int = 0  # of those, found in the source as they are
    dictionary: int = 0  # of those, found by a sense only
    padding: float = 0.0  # share of the batches' places

    def add(self, other: Statistics) -> None:
        for reason, count in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.first_skipped.setdefault(reason, other.first_skipped[reason])
        for name in ("pairs", "source_tokens", "target_tokens", "pointers", "unknown", "same_word", "dictionary"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def skip(self, reason: str, line: int) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.first_skipped.setdefault(reason, line)

    def shares(self) -> dict[str, float]:
        pairs, tokens, unknown = (max(1, n) for n in (self.pairs, self.target_tokens, self.unknown))
        return {
            "pointers_per_100": 100 * self.pointers / pairs,
            "unknown_share": self.unknown / tokens,
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


class _TokenizingTools(NamedTuple):
    source: Tokenizer
    target: Tokenizer
    max_tokens: int
    entities: bool
    tagger: entities.SpacyTagger | None


def set_up_tokenizing(config: Config) -> None:
    global _tools
    source, target = (tokenizer(config.text, language) for language in config.data.languages)
    anonymous = config.pointers.policy == "entities"
    tagger = None if config.pointers.tagger is None or not anonymous else entities.SpacyTagger(config.pointers.tagger)
    _tools = _TokenizingTools(source, target, config.text.max_tokens, anonymous, tagger)


def tokenize(block: Block) -> Tokenised:
    """A block's pairs as tokens, in an Arrow file whose words are numbered within the block, both sides together."""
    gc.disable()  # many small lists and no cycles: looking for cycles would take a third of the time
    try:
        return _tokenize(_tools, block)
    finally:
        gc.enable()


def _tokenize(tools: _TokenizingTools, block: Block) -> Tokenised:
    statistics = Statistics()
    words: tuple[list[str], list[str]] = ([], [])
    offsets: tuple[list[int], list[int]] = ([0], [0])
    starts: list[int] = []
    ends: list[int] = []
    texts: tuple[list[str], list[str]] = ([], [])
    lines: list[int] = []
    for row, (source_line, target_line) in enumerate(zip(block.source, block.target, strict=True)):
        line = block.first_line + row
        made = _tokenize_pair(tools, source_line, target_line, None if block.tags is None else block.tags[row])
        if isinstance(made, str):
            statistics.skip(made, line)
            continue
        for side, some in enumerate((made.source.words, made.target)):
            words[side].extend(some)
            offsets[side].append(len(words[side]))
            texts[side].append(made.raw[side])
        starts.extend(made.source.starts)
        ends.extend(made.source.ends)
        lines.append(line)
    numbered: Any = pa.array(words[0] + words[1], pa.string()).dictionary_encode()
    ids = numbered.indices.to_numpy()
    source_ids, target_ids = ids[: len(words[0])], ids[len(words[0]) :]
    batch = pa.record_batch(
        {
            "source": _lists(offsets[0], source_ids),
            "target": _lists(offsets[1], target_ids),
            "starts": _lists(offsets[0], np.array(starts, np.int32)),
            "ends": _lists(offsets[0], np.array(ends, np.int32)),
            "source_text": pa.array(texts[0], pa.string()),
            "target_text": pa.array(texts[1], pa.string()),
            "line": pa.array(lines, pa.int32()),
        }
    )
    with pa.OSFile(str(block.path), "wb") as file:
        for part in (batch, pa.record_batch({"words": numbered.dictionary})):
            with pa.ipc.new_stream(file, part.schema) as stream:
                stream.write(part)
    statistics.pairs, statistics.source_tokens, statistics.target_tokens = len(lines), len(words[0]), len(words[1])
    size = len(numbered.dictionary)
    counts = np.stack([np.bincount(some, minlength=size) for some in (source_ids, target_ids)]).astype(np.int32)
    return Tokenised(block.split, block.path, statistics, numbered.dictionary.to_pylist(), counts)


class _Pair(NamedTuple):
    source: Tokens
    target: list[str]  # nobody asks where a target word stood in its line
    raw: tuple[str, str]


def _tokenize_pair(
    tools: _TokenizingTools,
    source_line: bytes,
    target_line: bytes,
    tags: tuple[entities.Tagged, entities.Tagged] | None,
) -> _Pair | str:
    """Both sides, or why the pair is left out."""
    try:
        raw = without_end(source_line).decode("utf-8"), without_end(target_line).decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if b"\0" in source_line or b"\0" in target_line:
        return "a NUL character"
    if tags is None:
        source, target = tools.source(raw[0]), tools.target.words(raw[1])
    else:
        places = [entities.locate(line, tagged.words) for line, tagged in zip(raw, tags, strict=True)]
        if places[0] is None or places[1] is None:
            return "tags of another text"
        source = Tokens([tools.source.normalise(word) for word in tags[0].words], *places[0])
        target = [tools.target.normalise(word) for word in tags[1].words]
    if not source.words or not target:
        return "an empty side"
    if len(source.words) > tools.max_tokens or len(target) > tools.max_tokens:
        return f"more than {tools.max_tokens} tokens"
    if not tools.entities:
        return _Pair(source, target, raw)
    if tags is not None:
        source_tags, target_tags = tags[0].tags, tags[1].tags
    else:
        assert tools.tagger is not None
        source_tags = tools.tagger(raw[0], source)
        target_tags = tools.tagger(raw[1], tools.target(raw[1]))
    anonymous = entities.anonymize(source.words, source_tags, target, target_tags, tools.max_tokens)
    return _Pair(source._replace(words=anonymous[0]), anonymous[1], raw)


class _EncodingTools(NamedTuple):
    config: Config
    source: Vocabulary
    target: Vocabulary
    dictionary: Dictionary | None


def set_up_encoding(config: Config, source: Vocabulary, target: Vocabulary, dictionary: Dictionary | None) -> None:
    global _tools
    _tools = _EncodingTools(config, source, target, dictionary)


def encode(path: Path) -> tuple[pa.RecordBatch, Statistics]:
    """A tokenised block as the corpus has it: vocabulary ids, and for each target word the choice to be learned."""
    tools: _EncodingTools = _tools
    block, words = read_block(path)
    V = len(tools.target)
    source, target = (_side(block, column) for column in ("source", "target"))
    in_source, in_target = tools.source.ids(words), tools.target.ids(words)  # block number → id
    ids = in_target[target.words]
    choices = choose(
        tools.config.pointers.policy,
        source,
        target,
        ids,
        V,
        placeholders=range(FIRST, FIRST + tools.target.placeholders),
        senses=_senses(tools.dictionary, words, np.unique(target.words[ids == UNK])),
    )
    last = target.offsets[1:]  # the end of sentence comes after each sentence's last word
    ended = target.offsets + np.arange(len(target.offsets))
    batch = pa.record_batch(
        {
            "source": _lists(source.offsets, in_source[source.words]),
            "source_words": _lists(source.offsets, names(source, in_target[source.words], V)),
            "starts": block.column("starts"),
            "ends": block.column("ends"),
            "target": _lists(ended, np.insert(choices.target, last, EOS)),
            "target_words": _lists(ended, np.insert(ids, last, EOS)),
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
    )
    return batch, statistics


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


def _side(block: pa.RecordBatch, column: str) -> Side:
    lists: Any = block.column(column)
    return Side(lists.values.to_numpy(), lists.offsets.to_numpy())


def _lists(offsets: Any, values: Ints) -> Any:
    return pa.ListArray.from_arrays(pa.array(np.asarray(offsets, np.int32)), pa.array(values.astype(np.int32)))
