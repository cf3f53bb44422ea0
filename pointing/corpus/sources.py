"""The pairs of lines that the data settings name, split by split: from two files, or from files with both sides.

Files of lines are streamed. Files with both sides in them, such as tables, are read whole. Dev and test are split off
from the training data if the settings give no files for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import compress, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointing.config import Data, HeldOut, Parallel, Table
from pointing.corpus.held_out import LEFT_OUT, TRAIN, Parts, hashes, hold_out, text_key
from pointing.documents.columns import Wanted
from pointing.documents.pairs import Read, read_pairs
from pointing.errors import Misuse
from pointing.system.border import read_bytes
from pointing.system.digests import Digests
from pointing.system.files import about_lines, count_lines, read_blocks, without_end
from pointing.text import entities
from pointing.text.entities import Tagged

PAIRS_OF_A_BLOCK = 20_000  # that a worker takes at a time
DUPLICATES = "a source that the training part has too"
HELD_OUT_FILES = {name: (f"held-out-{name}.source", f"held-out-{name}.target") for name in ("dev", "test")}
"""The files in which a prepared corpus and its runs keep dev and test, if these were split off."""


class Lines(NamedTuple):
    """Some pairs: line n of the source and line n of the target are an example."""

    numbers: list[int]  # of the lines in their file, from 1
    source: list[bytes]  # with line ends
    target: list[bytes]
    tags: list[tuple[Tagged, Tagged]] | None = None
    keys: list[str] | None = None  # pairs with equal keys stay in one split


class Texts(NamedTuple):
    """The pairs of a whole split; what was not UTF-8 is replaced."""

    source: list[str]
    target: list[str]
    tags: list[tuple[Tagged, Tagged]] | None


@dataclass(frozen=True)
class RawSplit:
    """The pairs of a split."""

    path: Path  # the file, for messages
    pairs: int  # how many; about, if they were not counted
    blocks: Callable[[], Iterator[Lines]]  # all pairs in order, some at a time
    left_out: Counter[str] = field(default_factory=Counter)  # what the file has besides, by reason
    first_left_out: dict[str, int] = field(default_factory=dict)  # the line of the first one
    notes: tuple[str, ...] = ()  # what was guessed, and files that have nothing
    languages: tuple[str | None, str | None] = (None, None)  # that names of columns or headers of files say


def open_splits(data: Data, with_tags: bool = False, digests: Digests | None = None) -> dict[str, RawSplit]:
    """The splits in the order train, dev, test. What is wrong with the files is said here, before any work.

    With `digests` files are hashed while they are read, and files of lines are not counted: each is read once. That two
    of them have different numbers of lines is then said at the end of the shorter one.
    """
    splits = {name: _open(files, data.languages, with_tags, digests) for name, files in data.given().items()}
    if off := data.split_off():
        splits |= _divide(splits["train"], data.held_out, off)
    return {name: splits[name] for name in ("train", "dev", "test") if name in splits}


def open_split(data: Data, name: str, with_tags: bool = False) -> RawSplit | None:
    """One of the splits, from its own files alone if it has some; None if there is no such split."""
    files, off = data.given().get(name), data.split_off()
    if files is not None and not (name == "train" and off):
        return _open(files, data.languages, with_tags)
    return _divide(_open(data.train, data.languages, with_tags), data.held_out, off).get(name)


def read_split(data: Data, name: str, with_tags: bool = False) -> Texts | None:
    """All pairs of a split as text; None if there is no such split."""
    split = open_split(data, name, with_tags)
    return None if split is None else _texts(split)


def keep_held_out(split: RawSplit, name: str, folder: Path) -> None:
    """Writes a split that was taken from the training data as two files of lines, so that it can be found again."""
    texts = _texts(split)
    for lines, file_name in zip((texts.source, texts.target), HELD_OUT_FILES[name], strict=True):
        with (folder / file_name).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)


def _texts(split: RawSplit) -> Texts:
    texts = Texts([], [], None)
    for block in split.blocks():
        for lines, texts_of_side in ((block.source, texts.source), (block.target, texts.target)):
            texts_of_side += [without_end(line).decode("utf-8", "replace") for line in lines]
        if block.tags is not None:
            texts = texts._replace(tags=[*(texts.tags or ()), *block.tags])
    return texts


def _open(
    files: Parallel | Table, languages: tuple[str, str], with_tags: bool, digests: Digests | None = None
) -> RawSplit:
    if isinstance(files, Parallel):
        return _two_files(files, with_tags, digests)
    return _table(files, languages, read_bytes if digests is None else digests.read_bytes)


def _two_files(files: Parallel, with_tags: bool, digests: Digests | None) -> RawSplit:
    watching = None if digests is None else digests.watching

    def blocks() -> Iterator[Lines]:
        both = (files.source, files.target)
        sides = (read_blocks(path, PAIRS_OF_A_BLOCK, watching) for path in both)
        tags = None
        if with_tags and files.source_tags is not None and files.target_tags is not None:
            tags = zip(entities.read_tags(files.source_tags), entities.read_tags(files.target_tags), strict=True)
        first = 1
        for source, target in zip_longest(*sides, fillvalue=list[bytes]()):
            if len(source) != len(target):
                _count(files, with_tags)  # says so
                raise Misuse("this file was changed while it was read", files.source)
            block_tags = None if tags is None else list(islice(tags, PAIRS_OF_A_BLOCK))
            yield Lines(list(range(first, first + len(source))), source, target, block_tags)
            first += len(source)

    with_tags_here = with_tags and files.source_tags is not None
    pairs = _count(files, with_tags) if digests is None or with_tags_here else _about(files)
    return RawSplit(files.source, pairs, blocks)


def _about(files: Parallel) -> int:
    """About how many lines the two files have; neither may be empty."""
    both = (files.source, files.target)
    for path in both:
        _check_exists(path)
    for path in both:
        if not (lines := about_lines(path)):
            raise Misuse("this file is empty", path)
    return lines


def _count(files: Parallel, with_tags: bool) -> int:
    """How many lines the two files have; it must be the same number, and not 0."""
    counters: list[tuple[Path, Callable[[Path], int]]] = [(files.source, count_lines), (files.target, count_lines)]
    if with_tags:
        named = (files.source_tags, files.target_tags)
        counters += [(path, entities.count_tagged_sentences) for path in named if path is not None]
    for path, _ in counters:
        _check_exists(path)
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


def _check_exists(path: Path) -> None:
    if not path.exists():
        here = "" if path.is_absolute() else f", neither in {Path.cwd()} nor beside the settings file"
        raise Misuse(f"there is no such file{here}", path)


def _table(files: Table, languages: tuple[str, str], read: Read) -> RawSplit:
    wanted = Wanted(files.source_column, files.target_column, languages)
    for number, path in enumerate(files.files):
        _check_exists(path)
        if any(path.samefile(other) for other in files.files[:number]):
            raise Misuse("this file is given twice", path)
    found = [read_pairs(path, wanted, files.key_column, read) for path in files.files]
    pairs = [pair for file in found for pair in file.pairs]
    if not pairs:
        raise Misuse(found[0].emptiness, found[0].path)

    def blocks() -> Iterator[Lines]:
        for first in range(0, len(pairs), PAIRS_OF_A_BLOCK):
            block = pairs[first : first + PAIRS_OF_A_BLOCK]
            sides = ([pair.source for pair in block], [pair.target for pair in block])
            source, target = ([f"{text}\n".encode() for text in side] for side in sides)
            # A pair without a key belongs together with those of the same source, as if there were no keys.
            keys = None if files.key_column is None else [pair.key or text_key(pair.source) for pair in block]
            yield Lines([pair.line for pair in block], source, target, None, keys)

    left_out = sum((file.left_out for file in found), Counter[str]())
    first_left_out = {reason: line for file in reversed(found) for reason, line in file.first_left_out.items()}
    empty = [f"{file.path}: {file.emptiness}" for file in found if not file.pairs]
    notes = (*(note for file in found for note in file.notes), *empty)
    return RawSplit(files.files[0], len(pairs), blocks, left_out, first_left_out, notes, found[0].languages)


def _divide(whole: RawSplit, held_out: HeldOut, names: list[str]) -> dict[str, RawSplit]:
    """The training data, and the splits that are taken from it."""
    keys, sources, numbers = [], [], list[int]()
    for block in whole.blocks():
        texts = [text_key(without_end(line).decode("utf-8", "replace")) for line in block.source]
        sources.append(hashes(texts, held_out.seed))
        keys.append(sources[-1] if block.keys is None else hashes(block.keys, held_out.seed))
        numbers += block.numbers
    sizes = {name: getattr(held_out, name) for name in names}
    try:
        parts = hold_out(np.concatenate(keys), np.concatenate(sources), sizes)
    except Misuse as error:
        raise Misuse(str(error), whole.path) from None
    train = replace(whole, pairs=int((parts == TRAIN).sum()), blocks=_selection(whole, parts, TRAIN))
    if duplicates := int((parts == LEFT_OUT).sum()):
        train.left_out[DUPLICATES] = duplicates
        train.first_left_out[DUPLICATES] = numbers[int((parts == LEFT_OUT).argmax())]
    held = {
        name: RawSplit(whole.path, int((parts == number).sum()), _selection(whole, parts, number))
        for number, name in enumerate(names, 1)
    }
    return {"train": train, **held}


def _selection(whole: RawSplit, parts: Parts, part: int) -> Callable[[], Iterator[Lines]]:
    """The blocks of the pairs of one part."""

    def blocks() -> Iterator[Lines]:
        first = 0
        for block in whole.blocks():
            chosen = (parts[first : first + len(block.source)] == part).tolist()
            first += len(block.source)
            if any(chosen):
                yield Lines(*(None if column is None else list(compress(column, chosen)) for column in block))  # type: ignore[arg-type]

    return blocks
