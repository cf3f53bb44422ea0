"""A block of pairs on its way through a worker process: raw lines → tokens on disk → examples.

Between the two steps the words of all blocks are counted, and vocabularies and dictionary are made. Every worker
builds its tools once (`set_up_…`); blocks and what was made of them cross between processes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pointing.config import Config
from pointing.corpus.encoding import Pairs, copied_tokens, encode_pairs, tokenize_pairs
from pointing.corpus.examples import flat, int_column, list_column, text_column
from pointing.corpus.lexicon import Lexicon, Tokenization
from pointing.corpus.pointers import NOWHERE
from pointing.corpus.sources import Lines
from pointing.corpus.statistics import Statistics
from pointing.corpus.training_words import count_target_words, save_counts
from pointing.text.aligner import Integers
from pointing.text.protected import is_protected
from pointing.text.token_arrays import Bools, Ints, TokenArrays, Writing, WritingCounts, running_sums, sums_of_groups

_tokenization: Tokenization  # of this process
_lexicon: Lexicon


class Block(NamedTuple):
    """What a worker tokenises: lines of a split, and the file for the result."""

    split: str
    path: Path
    lines: Lines


class TokenizedBlock(NamedTuple):
    split: str
    path: Path
    statistics: Statistics
    words: list[str]  # different ones
    counts: Ints  # (3, words): in the source, in the target, and there in a pair whose source has the word too
    writings: WritingCounts  # of the target side; empty if forms are not learned


def set_up_tokenizing(config: Config) -> None:
    global _tokenization
    _tokenization = Tokenization(config)
    if config.pointers.tagger is not None:
        _ = _tokenization.tagger  # what is wrong with it is said now


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """For work that makes many small lists and no cycles: looking for cycles would take a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@without_garbage_collection()
def tokenize_block(block: Block) -> TokenizedBlock:
    """Writes a block's pairs as tokens, whose words are numbered within the block, both sides together."""
    numbers, source_lines, target_lines, tags, _ = block.lines
    pairs, statistics = tokenize_pairs(_tokenization, source_lines, target_lines, tags, numbers)
    source, target = pairs.source, pairs.target
    columns: dict[str, Any] = {
        "source": list_column(source.counts, source.ids),
        "target": list_column(target.counts, target.ids),
        "starts": list_column(source.counts, source.starts),
        "ends": list_column(source.counts, source.ends),
        "source_text": text_column(pairs.texts[0]),
        "target_text": text_column(pairs.texts[1]),
        "line": int_column(np.array(numbers, np.int32)[pairs.rows]),
    }
    if pairs.entity is not None:
        columns["entity"] = list_column(target.counts, pairs.entity)
    lists = {"words": source.words}  # of different texts, none of which has a line feed
    for side, tokens in (("source", source), ("target", target)):
        if tokens.writing is not None:
            columns[f"{side}_surfaces"] = list_column(tokens.counts, tokens.writing.ids)
            columns[f"{side}_spaces"] = list_column(tokens.counts, tokens.writing.spaces)
            lists[f"{side}_surfaces"] = tokens.writing.surfaces
    batches = [pa.record_batch(columns)]
    batches += [pa.record_batch({name: text_column(["\n".join(texts)])}) for name, texts in lists.items()]
    with pa.OSFile(str(block.path), "wb") as file:
        for batch in batches:
            with pa.ipc.new_stream(file, batch.schema) as stream:
                stream.write(batch)
    if block.split == "train":
        save_counts(count_target_words(block.lines, pairs, _tokenization), words_file(block.path))
    copied = target.ids[copied_tokens(pairs)] if _tokenization.counts_copies else target.ids[:0]
    counts = [np.bincount(ids, minlength=len(source.words)) for ids in (source.ids, target.ids, copied)]
    counted = np.stack(counts).astype(np.int32)
    return TokenizedBlock(block.split, block.path, statistics, source.words, counted, target.count_writings())


def words_file(block: Path) -> Path:
    """Where the target words of a tokenised block's lines are counted."""
    return block.with_suffix(".words")


def set_up_encoding(lexicon: Lexicon) -> None:
    global _lexicon
    _lexicon = lexicon


class TokenizedPairs(NamedTuple):
    """What a worker encodes: the file of a tokenised block."""

    path: Path
    linked: Integers | None  # of each target token that is no protected span, by `unprotected_words`
    of_training: bool


@without_garbage_collection()
def encode_block(block: TokenizedPairs) -> tuple[pa.RecordBatch, Statistics]:
    """A tokenised block as the corpus holds it."""
    pairs, lines = read_block(block.path)
    linked = None if block.linked is None else _among_all_tokens(pairs, block.linked)
    return encode_pairs(_lexicon, pairs, lines, linked, block.of_training)


def unprotected_words(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The words of a tokenised block's pairs, for a word aligner: a protected span has no translation."""
    pairs, _ = read_block(path)
    words = pairs.source.words
    texts, ends = [], []
    for side, kept in zip((pairs.source, pairs.target), _unprotected(pairs), strict=True):
        texts.append([words[number] for number in side.ids[kept].tolist()])
        ends.append(pairwise(running_sums(sums_of_groups(kept, side.counts)).tolist()))
    for source, target in zip(*ends, strict=True):
        yield texts[0][slice(*source)], texts[1][slice(*target)]


def _unprotected(pairs: Pairs) -> tuple[Bools, Bools]:
    """Which tokens of source and target are no protected spans."""
    is_word = np.array([not is_protected(word) for word in pairs.source.words], bool)
    return is_word[pairs.source.ids], is_word[pairs.target.ids]


def _among_all_tokens(pairs: Pairs, linked: Integers) -> Ints:
    """(M,) the positions that `linked` gives among unprotected words, as positions among all tokens."""
    source, target = _unprotected(pairs)
    position = pairs.source.positions()[source]  # of each unprotected source token among all of its line
    first = running_sums(sums_of_groups(source, pairs.source.counts))[:-1]
    here = np.flatnonzero(target)[linked != NOWHERE]
    line = np.repeat(np.arange(len(pairs.target.counts)), pairs.target.counts)[here]
    in_all = np.full(len(target), NOWHERE, np.int32)
    in_all[here] = position[first[line] + linked[linked != NOWHERE]]
    return in_all


def read_block(path: Path) -> tuple[Pairs, pa.Int32Array]:
    """The pairs of a tokenised block, and their line numbers."""
    with pa.OSFile(str(path), "rb") as file:
        (block,) = pa.ipc.open_stream(file)  # to its end, where the next stream begins
        lists = [
            batch
            for _ in range(3 if "source_spaces" in block.schema.names else 1)
            for batch in pa.ipc.open_stream(file)
        ]
    words, *surfaces = (texts.column(0)[0].as_py().split("\n") for texts in lists)

    def writing(side: int) -> Writing | None:
        if not surfaces:
            return None
        name = ("source", "target")[side]
        return Writing(surfaces[side], flat(block, f"{name}_surfaces")[1], flat(block, f"{name}_spaces")[1])

    (source_offsets, source), (target_offsets, target) = flat(block, "source"), flat(block, "target")
    nowhere = np.zeros_like(target)  # nobody asks where a target word stands in its line
    pairs = Pairs(
        list(range(block.num_rows)),
        (block.column("source_text"), block.column("target_text")),
        TokenArrays(
            words, source, flat(block, "starts")[1], flat(block, "ends")[1], np.diff(source_offsets), writing(0)
        ),
        TokenArrays(words, target, nowhere, nowhere, np.diff(target_offsets), writing(1)),
        flat(block, "entity")[1] if "entity" in block.schema.names else None,
    )
    return pairs, block.column("line")
