"""Raw text → prepared corpus: tokens, vocabularies, pointers, statistics, streamed in blocks over all cores.

    count lines → tokenise blocks → count words → vocabularies → dictionary → choose pointers → Arrow files

Nothing holds more than a few blocks: what is between two passes lies on disk, in the folder that becomes the corpus
only when everything is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pointing import __version__
from pointing.config import CORPUS, Config, Parallel, Text, Training
from pointing.corpus import vectors as embeddings
from pointing.corpus.batches import padding_share, plan
from pointing.corpus.encoding import (
    Block,
    Statistics,
    encode,
    read_block,
    read_dictionary,
    set_up_encoding,
    set_up_tokenizing,
    tokenize,
    tokenizer,
)
from pointing.corpus.examples import DICTIONARY, PREPARED, ROW_GROUP, SCHEMA, Corpus
from pointing.errors import Misuse
from pointing.system.files import count_lines, digest, read_blocks, read_text, whole_folder, write_text
from pointing.system.progress import progress
from pointing.system.tables import Table
from pointing.system.workers import in_order
from pointing.text import entities
from pointing.text.aligner import induce
from pointing.text.dictionary import Dictionary
from pointing.text.subwords import require_tokenizers
from pointing.text.tokenizer import subscript, visible
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

BLOCK = 20_000  # pairs that a worker takes at a time


def prepare(config: Config, folder: Path, workers: int | None = None) -> tuple[Corpus, bool]:
    """The prepared corpus of a configuration; False if it was there already, made from the same files and settings."""
    tags = config.pointers.policy == "entities"
    counts = {name: _check_files(files, tags) for name, files in config.data.splits().items()}
    made_from = _fingerprint(config)
    _check_folder(folder)
    if all((folder / name).exists() for name in (PREPARED, *(f"{split}.arrow" for split in counts))):
        corpus = Corpus(folder)
        if corpus.about["made_from"] == made_from:
            return corpus, False
    with whole_folder(folder) as part:
        _prepare(config, part, counts, made_from, workers)
    return Corpus(folder), True


def _prepare(config: Config, part: Path, lines: dict[str, int], made_from: str, workers: int | None) -> None:
    if config.text.subwords is not None:
        require_tokenizers()  # before all the work, not after half of it
    statistics = {name: Statistics() for name in lines}
    blocks, counts = _tokenize_all(config, part, lines, statistics, workers)
    placeholders = config.text.max_tokens if config.pointers.anonymous else 0
    source, target = (
        _vocabulary(config, some, size, placeholders)
        for some, size in zip(counts, (config.vocabulary.source, config.vocabulary.target), strict=True)
    )
    source.save(part / "source.vocabulary")
    target.save(part / "target.vocabulary")
    dictionary = _dictionary(config, blocks["train"])
    if dictionary is not None:
        dictionary.save(part / DICTIONARY)
    for name, paths in blocks.items():
        encoded = in_order(encode, paths, workers, set_up_encoding, config, source, target, dictionary)
        total = statistics[name].pairs
        with progress(f"pointing {name}", total, "pairs") as bar, _writer(part / f"{name}.arrow") as write:
            for batch, found in encoded:
                statistics[name].add(found)
                write(batch)
                bar.advance(batch.num_rows)
    about = {
        "made_from": made_from,
        "made_by": __version__,
        "placeholders": placeholders,
        "settings": config.model_dump(mode="json"),
        "statistics": {name: asdict(some) | some.shares() for name, some in statistics.items()},
    }
    write_text(part / PREPARED, json.dumps(about, indent=1) + "\n")
    _embed(config, part)
    for path in part.glob("*-block-*"):
        path.unlink()


def _tokenize_all(
    config: Config, part: Path, lines: dict[str, int], statistics: dict[str, Statistics], workers: int | None
) -> tuple[dict[str, list[Path]], tuple[dict[str, int], dict[str, int]]]:
    """The tokenised blocks of each split, and how often each word stands on either side of the training text."""
    splits = config.data.splits()
    tags = config.pointers.policy == "entities"
    jobs = chain.from_iterable(_blocks(name, files, part, tags) for name, files in splits.items())
    blocks: dict[str, list[Path]] = {name: [] for name in lines}
    index: dict[str, int] = {}
    counts = np.zeros((2, 0), np.int64)  # source, target
    with progress("tokenising", sum(lines.values()), "pairs") as bar:
        for done in in_order(tokenize, jobs, workers, set_up_tokenizing, config):
            blocks[done.split].append(done.path)
            statistics[done.split].add(done.statistics)
            bar.advance(done.statistics.pairs + sum(done.statistics.skipped.values()))
            if done.split == "train":
                words = np.fromiter((index.setdefault(word, len(index)) for word in done.words), np.int64)
                counts = np.pad(counts, ((0, 0), (0, len(index) - counts.shape[1])))
                counts[:, words] += done.counts
    for name, files in splits.items():
        if statistics[name].pairs == 0:
            raise Misuse(f"no pair is left of {lines[name]:,}: {_skipped(statistics[name])}", files.source)
    source, target = (
        {word: count for word, count in zip(index, some.tolist(), strict=True) if count} for some in counts
    )
    return blocks, (source, target)


def _vocabulary(config: Config, counts: dict[str, int], size: int | None, placeholders: int) -> Vocabulary:
    if config.text.subwords is None:
        return Vocabulary.build(counts, size, config.vocabulary.min_count, placeholders)
    assert size is not None
    with progress("merging", len(counts), "words") as bar:
        made = Vocabulary.of_pieces(counts, size, config.vocabulary.min_count)
        bar.advance(len(counts))
    return made


def _embed(config: Config, part: Path) -> None:
    """Embeddings to start from, where the settings ask for them."""
    sides: list[tuple[Literal["source", "target"], Any]]
    sides = [("source", config.embeddings.source), ("target", config.embeddings.target)]
    for side, wanted in sides:
        if wanted is not None:
            vectors = embeddings.make(Corpus(part), side, wanted, config.embeddings.width)
            embeddings.save(part / f"{side}.vectors.npy", vectors)


def statistics(corpus: Corpus, training: Training) -> dict[str, dict[str, Any]]:
    """What was counted, and how much padding batches of this kind would have."""
    about = {}
    for name, counted in corpus.about["statistics"].items():
        split = corpus.split(name)
        lengths = split.source_lengths, split.target_lengths
        batches = plan(*lengths, training.batch, training.batch_by, training.seed, epoch=0)
        about[name] = {**counted, "padding": padding_share(*lengths, batches)}
    return about


def tables(corpus: Corpus, training: Training) -> list[Table]:
    """The statistics as people read them."""
    about = statistics(corpus, training)
    rows = [
        [
            name,
            f"{s['pairs']:,}",
            f"{sum(s['skipped'].values()):,}",
            f"{s['target_tokens']:,}",
            f"{s['pointers_per_100']:.1f}",
            f"{s['unknown_share']:.2%}",
            f"{s['reached_by_same_word']:.1%}",
            f"{s['reached_by_same_word_or_dictionary']:.1%}" if corpus.dictionary else "–",
            f"{s['padding']:.1%}",
        ]
        for name, s in about.items()
    ]
    header = ["split", "pairs", "left out", "target words", "pointers per 100", "outside the shortlist"]
    header += ["of those, same word", "or dictionary", "padding"]
    units = "words" if corpus.target.merges is None else "pieces"
    title = f"{corpus.folder}: {len(corpus.source):,} source and {len(corpus.target):,} target {units}"
    if corpus.target.merges is not None:
        header[4:4] = ["pieces per word"]
        for row, s in zip(rows, about.values(), strict=True):
            row[4:4] = [f"{s['pieces_per_word']:.2f}"]
    left_out = [
        [f"{name}: {reason}", f"{count:,}", f"{s['first_skipped'][reason]:,}"]
        for name, s in about.items()
        for reason, count in s["skipped"].items()
    ]
    shown = [Table(title, header, rows)]
    return [*shown, Table("Left out", ["why", "pairs", "first on line"], left_out)] if left_out else shown


def show(corpus: Corpus, row: int, split: str = "train") -> str:
    """One example for people: its raw lines, and for each target word where it is to come from."""
    example = corpus.split(split)[row]
    V = len(corpus.target)
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    learned = [f"{raw[c - V]}{subscript(c - V)}" if c >= V else _word(corpus.target, c) for c in example["target"]]
    learned = [word.rstrip() for word in learned]  # of pieces' marks the space
    shown = {
        "source": " ".join(f"{word}{subscript(position)}" for position, word in enumerate(raw)),
        "target": example["target_text"],
        "learned": " ".join(learned),
    }
    lines = (f"  {name:<9}{visible(text)}" for name, text in shown.items())
    return "\n".join([f"{split}, line {example['line']}", *lines])


def _word(vocabulary: Vocabulary, number: int) -> str:
    """A word as it is, and what is none in angle brackets."""
    return vocabulary.word(number) or {EOS: "‹end›", UNK: "‹unknown›"}.get(number, f"‹entity {number - FIRST + 1}›")


OURS = re.compile(r"prepared\.json|\w+\.arrow|(source|target)\.(vocabulary|merges|vectors\.npy)|dictionary\.tsv")


def _check_folder(folder: Path) -> None:
    """A corpus replaces its folder, so there must be nothing in it but a corpus."""
    if folder.exists() and not folder.is_dir():
        raise Misuse("this is a file: give a folder for the corpus", folder)
    others = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if PREPARED in others:
        others = [name for name in others if not OURS.fullmatch(name)]
    if others:
        raise Misuse(f"there is something else in this folder ({others[0]}): give another one for the corpus", folder)


def _check_files(files: Parallel, tags: bool = False) -> int:
    """How many lines the files of a split have; it must be the same number, and not 0."""
    counters: list[tuple[Path, Callable[[Path], int]]] = [(files.source, count_lines), (files.target, count_lines)]
    if tags:
        named = (files.source_tags, files.target_tags)
        counters += [(path, entities.count_tagged_sentences) for path in named if path is not None]
    with ThreadPoolExecutor() as pool:  # most of it is decompression, which threads can do side by side
        counted = [(path, pool.submit(count, path)) for path, count in counters]
    first = counted[0][1].result()
    for path, lines in counted:
        if lines.result() == 0:
            raise Misuse("this file is empty", path)
        if lines.result() != first:
            what = f"{lines.result():,} lines, but {files.source} has {first:,}: line n of both must be one example"
            raise Misuse(what, path)
    return first


def _fingerprint(config: Config) -> str:
    """Of everything that decides what the corpus will hold: settings, what is in the files, our own version.

    Files may move, and settings that are at their default do not count, so that a new one makes no corpus old.
    """
    decides = config.model_dump(include=CORPUS, exclude_defaults=True)
    tagger = Path(config.pointers.tagger or "")
    pipeline = sorted(path for path in tagger.rglob("*") if path.is_file()) if config.pointers.tagger else []
    text = json.dumps([decides, pipeline, __version__], default=digest)  # which is asked for what JSON has not: paths
    return sha256(text.encode()).hexdigest()


def _blocks(split: str, files: Parallel, folder: Path, tagged: bool) -> Iterator[Block]:
    sides = zip(read_blocks(files.source, BLOCK), read_blocks(files.target, BLOCK), strict=True)
    tags = None
    if tagged and files.source_tags is not None and files.target_tags is not None:
        tags = zip(entities.read_tags(files.source_tags), entities.read_tags(files.target_tags), strict=True)
    for number, (source, target) in enumerate(sides):
        path = folder / f"{split}-block-{number:06d}"
        some = None if tags is None else list(islice(tags, BLOCK))
        yield Block(split, path, number * BLOCK + 1, source, target, some)


def _dictionary(config: Config, blocks: list[Path]) -> Dictionary | None:
    if config.pointers.dictionary is None:
        return None
    if config.pointers.dictionary == "induced":
        found = induce(_pairs(blocks))
        return found if len(found) else None  # in a tiny text nothing is certain
    return read_dictionary(config.pointers.dictionary, config)


def induce_dictionary(files: Parallel, text: Text, languages: tuple[str, str]) -> Dictionary:
    """A dictionary straight from two files."""
    _check_files(files)
    source, target = (tokenizer(text, language) for language in languages)
    lines = zip(read_text(files.source), read_text(files.target), strict=True)
    return induce((source.words(one), target.words(other)) for (_, one), (_, other) in lines)


def _pairs(blocks: list[Path]) -> Iterator[tuple[list[str], list[str]]]:
    """The training pairs' words."""
    for path in blocks:
        block, words = read_block(path)
        sides = [block.column(column).to_pylist() for column in ("source", "target")]
        for source, target in zip(*sides, strict=True):
            yield [words[i] for i in source], [words[i] for i in target]


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """with _writer(path) as write: write(batch) …: batches gathered into row groups of one size."""
    waiting: list[pa.RecordBatch] = []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:

        def write(batch: pa.RecordBatch) -> None:
            waiting.append(batch)
            if sum(one.num_rows for one in waiting) >= ROW_GROUP:
                flush()

        def flush() -> None:
            if waiting:
                writer.write_batch(pa.concat_batches(waiting))
                waiting.clear()

        yield write
        flush()


def _skipped(statistics: Statistics) -> str:
    return ", ".join(
        f"{count:,} have {reason} (first on line {statistics.first_skipped[reason]:,})"
        for reason, count in statistics.skipped.items()
    )
