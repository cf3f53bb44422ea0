"""Prepared examples on disk, memory-mapped, and as tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointing.config import Config, checked
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Texts: TypeAlias = Sequence[str] | Any  # or an Arrow column of strings

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
FORMS_SCHEMA = pa.schema(  # with text.forms
    [
        *SCHEMA,
        pa.field("source_forms", pa.list_(pa.int32())),  # how each source token is written (text/forms.py)
        pa.field("target_forms", pa.list_(pa.int32())),  # how the word of each choice is written; 0 for EOS
    ]
)
PREPARED = "prepared.json"  # what a prepared corpus has, and nothing else
ROW_GROUP = 1 << 15  # examples that lie together on disk


class Batch(NamedTuple):
    """Tensors of B examples; padding is 0 and False."""

    rows: Longs  # which examples these are
    x: Tensor  # (B, J) source ids; each source ends with EOS, as in dl4mt
    x_mask: Tensor  # (B, J)
    source_words: Tensor  # (B, J) what copying each position writes: target id, or V + first position; EOS at the end
    target: Tensor  # (B, T) the choices to be learned
    y: Tensor  # (B, T) the words themselves, named as in source_words: target id, V + first position, or UNK
    mask: Tensor  # (B, T)
    x_form: Tensor | None = None  # (B, J) how each source token is written, if forms are learned (text/forms.py)
    y_form: Tensor | None = None  # (B, T) how each word is written

    def part(self, rank: int, world: int) -> Batch:
        """One process's examples of a batch. Where there are none left for it: one, with every step masked."""
        mine = slice(rank, None, world) if rank < len(self.rows) else slice(0, 1)
        part = self._of(self.rows[mine], lambda tensor: tensor[mine])
        return part if rank < len(self.rows) else part._replace(mask=part.mask & False)

    def to(self, device: torch.device) -> Batch:
        return self._of(self.rows, lambda tensor: tensor.to(device, non_blocking=True))

    def _of(self, rows: Longs, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with all its tensors changed."""
        _, *tensors = self
        return Batch(rows, *(change(tensor) for tensor in tensors if tensor is not None))


class Split:
    """The examples of one part of a corpus, in groups as they lie on disk."""

    def __init__(self, groups: Sequence[pa.RecordBatch]) -> None:
        self.groups = groups
        self.first_row = np.cumsum([0, *(group.num_rows for group in self.groups)])
        self.source_lengths = self._lengths("source")
        self.target_lengths = self._lengths("target")

    @classmethod
    def open(cls, path: Path) -> Split:
        """A file of examples, memory-mapped: nothing is loaded that is not used."""
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except (pa.ArrowInvalid, OSError) as error:
            raise Misuse(f"not a prepared corpus ({error}); run `pointing prepare` again", path) from None
        return cls([reader.get_batch(number) for number in range(reader.num_record_batches)])

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
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        x, source_words = (self._padded(column, rows, source_lengths, end=1) for column in ("source", "source_words"))
        target, y = (self._padded(column, rows, target_lengths, end=0) for column in ("target", "target_words"))
        forms = None
        if self.has_forms:
            x_form = self._padded("source_forms", rows, source_lengths, end=1)
            forms = x_form, self._padded("target_forms", rows, target_lengths, end=0)
        return make_batch(rows, x, source_words, source_lengths, target, y, target_lengths, forms)

    @property
    def has_forms(self) -> bool:
        """True if the examples know how their words are written."""
        return bool(self.groups) and "source_forms" in self.groups[0].schema.names

    def _padded(self, column: str, rows: Longs, lengths: Ints, end: int) -> Longs:
        """A column's values at some rows, `end` places longer than the longest; one copy for each group touched."""
        values_of_rows = np.zeros((len(rows), int(lengths.max(initial=0)) + end), np.int64)
        groups = np.searchsorted(self.first_row, rows, side="right") - 1
        for group in np.unique(groups):
            here = np.flatnonzero(groups == group)
            offsets, values = flat(self.groups[group], column)
            starts = offsets[rows[here] - self.first_row[group]]
            values_of_rows[here] = padded(values, starts, lengths[here], values_of_rows.shape[1])
        return values_of_rows

    def _lengths(self, column: str) -> Ints:
        return np.concatenate([np.diff(flat(group, column)[0]) for group in self.groups] or [np.empty(0, np.int32)])


def padded(values: Ints, starts: Ints | Longs, lengths: Ints | Longs, width: int) -> Longs:
    """(B, width): `lengths` values from each of `starts` on; the rest is 0, which is EOS."""
    place = np.arange(width)
    real = place < lengths[:, None]
    return np.where(real, values[np.where(real, starts[:, None] + place, 0)], np.int64(0))


def make_batch(
    rows: Longs,
    x: Longs,
    source_words: Longs,
    source_lengths: Ints | Longs,
    target: Longs,
    y: Longs,
    target_lengths: Ints | Longs,
    forms: tuple[Longs, Longs] | None = None,
) -> Batch:
    """Padded arrays as tensors with their masks. A source is one position longer than its words: there is its EOS."""
    import torch

    x_mask = np.arange(x.shape[1]) <= source_lengths[:, None]
    mask = np.arange(target.shape[1]) < target_lengths[:, None]
    arrays = (x, x_mask, source_words, target, y, mask, *(forms or ()))
    return Batch(rows, *(torch.from_numpy(array) for array in arrays))


# Arrow columns from arrays and back. pa.array() and to_numpy() would do, but import pandas wherever that is installed.


def flat(group: pa.RecordBatch, column: str) -> tuple[Ints, Ints]:
    """A list column as it lies in the file: offsets (rows + 1,) and all values end to end; nothing is copied."""
    lists = group.column(column)
    return _integers(lists.offsets), _integers(lists.values)


def _integers(array: Any) -> Ints:
    return np.frombuffer(array.buffers()[1] or b"", np.int32, len(array), 4 * array.offset)


def list_column(counts: Any, values: Ints) -> Any:
    """Lists from their lengths and all their values end to end."""
    return pa.ListArray.from_arrays(int_column(np.append(0, np.cumsum(counts))), int_column(values))


def int_column(values: Any) -> Any:
    if isinstance(values, pa.Array):
        return values
    array = np.ascontiguousarray(values, np.int32)
    return pa.Array.from_buffers(pa.int32(), len(array), [None, pa.py_buffer(array)])


def text_column(texts: Texts) -> Any:
    if isinstance(texts, pa.Array):
        return texts
    encoded = [text.encode("utf-8") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


class Corpus:
    """A prepared folder: the lexicon, the splits, and how they were made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.about: dict[str, Any] = json.loads((folder / PREPARED).read_text())
            self.about["made_from"]
        except (OSError, ValueError, TypeError, KeyError):
            raise Misuse("not a prepared corpus: there is no whole prepared.json in it", folder) from None

    @cached_property
    def lexicon(self) -> Lexicon:
        config = checked(Config, self.about["settings"], self.folder / PREPARED)
        return Lexicon.load(self.folder, config, self.about.get("placeholders", 0))

    def split(self, name: str) -> Split:
        return Split.open(self.folder / f"{name}.arrow")
