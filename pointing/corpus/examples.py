"""Prepared examples on disk, memory-mapped, and as tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointing.errors import Misuse
from pointing.text.dictionary import Dictionary
from pointing.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    {
        "source": pa.list_(pa.int32()),  # ids in the source vocabulary
        "source_words": pa.list_(pa.int32()),  # their names in the output: target id, or V + first position
        "starts": pa.list_(pa.int32()),  # where each source token's characters begin in source_text
        "ends": pa.list_(pa.int32()),
        "target": pa.list_(pa.int32()),  # the choice to be learned: target id, or V + source position; ends with EOS
        "target_words": pa.list_(pa.int32()),  # the same words by name, as in source_words; UNK where there is none
        "source_text": pa.string(),  # the raw lines
        "target_text": pa.string(),
        "line": pa.int32(),  # of the files that they came from, counted from 1
    }
)
PREPARED = "prepared.json"  # what a prepared corpus has, and nothing else
DICTIONARY = "dictionary.tsv"  # of word pairs, if there is one
LEXICON = ("source.vocabulary", "target.vocabulary", "source.merges", "target.merges", DICTIONARY)  # runs keep copies
ROW_GROUP = 1 << 15  # examples that lie together on disk


class Batch(NamedTuple):
    """Tensors of B examples; padding is 0 and False."""

    rows: Longs  # which examples these are
    x: Tensor  # (B, J) source ids; each source ends with EOS, as in dl4mt
    x_mask: Tensor  # (B, J)
    x_words: Tensor  # (B, J) what copying each position writes: target id, or V + first position; EOS at the end
    target: Tensor  # (B, T) the choices to be learned
    y: Tensor  # (B, T) the words themselves, named as in x_words: target id, V + first position, or UNK
    mask: Tensor  # (B, T)

    def part(self, rank: int, world: int) -> Batch:
        """One process's examples of a batch. Where there are none left for it: one, with every step masked."""
        mine = slice(rank, None, world) if rank < len(self.rows) else slice(0, 1)
        part = Batch(self.rows[mine], *(tensor[mine] for tensor in self[1:]))
        return part if rank < len(self.rows) else part._replace(mask=part.mask & False)

    def to(self, device: torch.device) -> Batch:
        return Batch(self.rows, *(tensor.to(device, non_blocking=True) for tensor in self[1:]))


class Split:
    """One memory-mapped file of examples."""

    def __init__(self, path: Path) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except (pa.ArrowInvalid, OSError) as error:
            raise Misuse(f"not a prepared corpus ({error}); run `pointing prepare` again", path) from None
        self.groups = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self.first_row = np.cumsum([0, *(group.num_rows for group in self.groups)])
        self.source_lengths = self._lengths("source")
        self.target_lengths = self._lengths("target")

    def __len__(self) -> int:
        return int(self.first_row[-1])

    def __getitem__(self, row: int) -> dict[str, Any]:
        """One example, whole."""
        group = int(np.searchsorted(self.first_row, row, side="right")) - 1
        example: dict[str, Any] = self.groups[group].slice(row - self.first_row[group], 1).to_pylist()[0]
        return example

    def rows_with_pointers(self, V: int) -> Iterator[int]:
        """The examples in which something is to be copied, in order."""
        for group, first in zip(self.groups, self.first_row.tolist(), strict=False):
            offsets, values = flat(group, "target")
            row = np.searchsorted(offsets, np.flatnonzero(values >= V), side="right") - 1
            yield from (first + np.unique(row)).tolist()

    def batch(self, rows: Longs) -> Batch:
        import torch

        x, lengths = self._padded("source", rows, 1)
        target, target_lengths = self._padded("target", rows)
        arrays = (
            x,
            np.arange(x.shape[1]) <= lengths[:, None],
            self._padded("source_words", rows, 1)[0],
            target,
            self._padded("target_words", rows)[0],
            np.arange(target.shape[1]) < target_lengths[:, None],
        )
        return Batch(rows, *(torch.from_numpy(array) for array in arrays))

    def _padded(self, column: str, rows: Longs, more: int = 0) -> tuple[Longs, Ints]:
        """A column's values at some rows, (B, longest + more), and their lengths (B,); the rest is 0, which is EOS.

        One copy for each group touched.
        """
        lengths = (self.source_lengths if column.startswith("source") else self.target_lengths)[rows]
        width = np.arange(lengths.max(initial=0) + more)
        padded = np.zeros((len(rows), len(width)), np.int64)
        groups = np.searchsorted(self.first_row, rows, side="right") - 1
        for group in np.unique(groups):
            here = np.flatnonzero(groups == group)
            offsets, values = flat(self.groups[group], column)
            start = offsets[rows[here] - self.first_row[group]]
            real = width < lengths[here, None]
            padded[here] = values[np.where(real, start[:, None] + width, 0)] * real
        return padded, lengths

    def _lengths(self, column: str) -> Ints:
        return np.concatenate([np.diff(flat(group, column)[0]) for group in self.groups] or [np.empty(0, np.int32)])


def flat(group: pa.RecordBatch, column: str) -> tuple[Ints, Ints]:
    """A list column as it lies in the file: offsets (rows + 1,) and all values end to end; nothing is copied."""
    lists = group.column(column)
    return _integers(lists.offsets), _integers(lists.values)


def _integers(array: Any) -> Ints:
    """What array.to_numpy() gives, which imports pandas wherever that is installed."""
    return np.frombuffer(array.buffers()[1] or b"", np.int32, len(array), 4 * array.offset)


class Corpus:
    """A prepared folder: vocabularies, splits, the dictionary if there is one, and how they were made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.about: dict[str, Any] = json.loads((folder / PREPARED).read_text())
            self.about["made_from"]
        except (OSError, ValueError, TypeError, KeyError):
            raise Misuse("not a prepared corpus: there is no whole prepared.json in it", folder) from None

    @cached_property
    def source(self) -> Vocabulary:
        return self._vocabulary("source")

    @cached_property
    def target(self) -> Vocabulary:
        return self._vocabulary("target")

    def _vocabulary(self, side: str) -> Vocabulary:
        path, subwords = self.folder / f"{side}.vocabulary", self.about["settings"]["text"].get("subwords")
        return Vocabulary.load(path, self.about["placeholders"], subwords is not None)

    @cached_property
    def dictionary(self) -> Dictionary | None:
        path = self.folder / DICTIONARY
        return Dictionary.load(path) if path.exists() else None

    def split(self, name: str) -> Split:
        return Split(self.folder / f"{name}.arrow")
