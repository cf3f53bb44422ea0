"""Prepared examples on disk, memory-mapped, and as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, Field

from pointing.config import Config, checked
from pointing.corpus.familiarity import FAMILIARITIES
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.system.border import check_file, entering, read_object
from pointing.text.forms import FORMS
from pointing.text.token_arrays import NOWHERE
from pointing.text.vocabulary import MOST_PLACEHOLDERS

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
FORM_COLUMNS = pa.schema(  # further columns, with text.forms
    {
        # How each source token is written (text/forms.py), plus FORMS times how familiar it is (corpus/familiarity.py).
        "source_forms": pa.list_(pa.int32()),
        "target_forms": pa.list_(pa.int32()),  # how the word of each choice is written; 0 for EOS
    }
)
# With pointers.places words: how many pieces each position has.
PLACE_COLUMNS = pa.schema({"pieces": pa.list_(pa.int32())})
# With pointers.guidance: the position that a word aligner links to each word, or NOWHERE.
LINK_COLUMNS = pa.schema({"links": pa.list_(pa.int32())})
PREPARED = "prepared.json"  # what a prepared corpus has, and nothing else
KIND = "a prepared corpus; run `pointing prepare` again"
EXAMPLES_AT_A_TIME = 1 << 10
ROW_GROUP = 1 << 15  # examples that lie together on disk


def schema(config: Config) -> pa.Schema:
    """The columns of a corpus with these settings."""
    return _columns(config.text.forms, config.points_at_words, config.pointers.guidance > 0)


def _columns(forms: bool, places: bool, links: bool) -> pa.Schema:
    more = (forms, FORM_COLUMNS), (places, PLACE_COLUMNS), (links, LINK_COLUMNS)
    return pa.schema([*SCHEMA, *(field for wanted, columns in more if wanted for field in columns)])


SCHEMAS = [_columns(*wanted) for wanted in product((False, True), repeat=3)]


class Batch(NamedTuple):
    """Tensors of B examples; padding is 0 and False, or NOWHERE.

    J source positions, which are what the encoder reads: each one thing, or with `place` words of several pieces.
    """

    rows: Longs  # which examples these are
    x: Tensor  # (B, J) source ids, or (B, P) with P pieces; each source ends with EOS, as in dl4mt
    x_mask: Tensor  # (B, J)
    source_words: Tensor  # (B, J) what copying each position writes: target id, or V + first position; EOS at the end
    target: Tensor  # (B, T) the choices to be learned
    y: Tensor  # (B, T) the words themselves, named as in source_words: target id, V + first position, or UNK
    mask: Tensor  # (B, T)
    x_form: Tensor | None = None  # as x: how each source token is written, and how familiar it is (`source_forms`)
    y_form: Tensor | None = None  # (B, T) how each word is written
    place: Tensor | None = None  # (B, P) the position that each piece is a part of; NOWHERE at padding
    links: Tensor | None = None  # (B, T) the position that a word aligner links to the word, or NOWHERE

    @property
    def read_mask(self) -> Tensor:
        """Which things of x are real, not padding."""
        return self.x_mask if self.place is None else self.place != NOWHERE

    def part(self, rank: int, world: int) -> Batch:
        """One process's examples of a batch. Where there are none left for it: one, with every step masked."""
        mine = slice(rank, None, world) if rank < len(self.rows) else slice(0, 1)
        part = self._of(self.rows[mine], lambda tensor: tensor[mine])
        return part if rank < len(self.rows) else part._replace(mask=part.mask & False)

    def to(self, device: torch.device) -> Batch:
        return self._of(self.rows, lambda tensor: tensor.to(device, non_blocking=True))

    def _of(self, rows: Longs, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with all its tensors changed."""
        changed: list[Any] = [None if tensor is None else change(tensor) for tensor in self[1:]]
        return Batch(rows, *changed)


class Split:
    """The examples of one part of a corpus, in groups as they lie on disk."""

    def __init__(
        self, groups: Sequence[pa.RecordBatch], path: Path | None = None, sizes: tuple[int, int] | None = None
    ) -> None:
        self.groups, self.path, self.sizes = groups, path, sizes
        self._read: set[int] = set()  # groups whose texts were found to be whole
        self.first_row = np.cumsum([0, *(group.num_rows for group in self.groups)])
        self.source_lengths = self._lengths("source")  # of what the encoder reads
        self.position_counts = self._lengths("source_words")
        self.target_lengths = self._lengths("target")

    @classmethod
    def open(cls, path: Path, sizes: tuple[int, int] | None = None) -> Split:
        """A file of examples, memory-mapped: nothing is loaded that is not used.

        `sizes` of the vocabularies are what its ids are compared with when they are used.
        """
        check_file(path)
        with entering(path, KIND):
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            if reader.schema not in SCHEMAS:
                raise ValueError("it has other columns")
            groups = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            for group in groups:
                _check_lists(group)
            return cls(groups, path, sizes)

    def __len__(self) -> int:
        return int(self.first_row[-1])

    def __getitem__(self, row: int) -> dict[str, Any]:
        """One example, whole."""
        group = int(np.searchsorted(self.first_row, row, side="right")) - 1
        with entering(self.path or "examples", KIND):
            if group not in self._read:
                self.groups[group].validate(full=True)
                self._read.add(group)
            example: dict[str, Any] = self.groups[group].slice(row - self.first_row[group], 1).to_pylist()[0]
        if self.sizes is not None and max(example["target"], default=0) >= self.sizes[1] + len(example["source"]):
            what = f"damaged: example {row} points outside of its source"
            raise Misuse(f"{what}; run `pointing prepare` again", self.path)
        return example

    def rows_with_pointers(self, V: int) -> Iterator[int]:
        """The examples in which something is to be copied, in order."""
        for group, first in zip(self.groups, self.first_row.tolist(), strict=False):
            offsets, values = flat(group, "target")
            row = np.searchsorted(offsets, np.flatnonzero(values >= V), side="right") - 1
            yield from (first + np.unique(row)).tolist()

    def batch(self, rows: Longs) -> Batch:
        read, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        source_lengths = self.position_counts[rows]
        x = self._padded("source", rows, read, end=1)
        source_words = self._padded("source_words", rows, source_lengths, end=1)
        target, y = (self._padded(column, rows, target_lengths, end=0) for column in ("target", "target_words"))
        forms = None
        if self.has("source_forms"):
            x_form = self._padded("source_forms", rows, read, end=1)
            forms = x_form, self._padded("target_forms", rows, target_lengths, end=0)
        pieces = self._padded("pieces", rows, source_lengths, end=0) if self.has("pieces") else None
        links = self._padded("links", rows, target_lengths, end=0, padding=NOWHERE) if self.has("links") else None
        self._check_ids(rows, x, source_words, target, y, forms, links)
        if pieces is not None and ((pieces.sum(1) != read) | ((pieces > 0).sum(1) != source_lengths)).any():
            what = f"damaged: of the examples {rows.min()} to {rows.max()} one has other pieces than it counts"
            raise Misuse(f"{what}; run `pointing prepare` again", self.path)
        return make_batch(rows, x, source_words, source_lengths, target, y, target_lengths, forms, pieces, links)

    def check(self) -> None:
        """Reads all examples; what is wrong with one is misuse."""
        with entering(self.path or "examples", KIND):
            for group in self.groups:
                group.validate(full=True)
        for first in range(0, len(self), EXAMPLES_AT_A_TIME):
            self.batch(np.arange(first, min(first + EXAMPLES_AT_A_TIME, len(self))))

    def _check_ids(
        self,
        rows: Longs,
        x: Longs,
        source_words: Longs,
        target: Longs,
        y: Longs,
        forms: tuple[Longs, Longs] | None,
        links: Longs | None,
    ) -> None:
        """Refuses examples that name words or positions which are not there: their file is damaged."""
        if self.sizes is None or not len(rows):
            return
        X, J = self.sizes[0], source_words.shape[1]
        choices = self.sizes[1] + J
        limits = [(x, X), (source_words, choices), (target, choices), (y, choices)]
        limits += [] if forms is None else [(forms[0], FORMS * FAMILIARITIES), (forms[1], FORMS)]
        limits += [] if links is None else [(links - NOWHERE, J - NOWHERE)]
        if any(ids.min(initial=0) < 0 or ids.max(initial=0) >= limit for ids, limit in limits):
            what = f"damaged: of the examples {rows.min()} to {rows.max()} one has an id that is no word and no place"
            raise Misuse(f"{what}; run `pointing prepare` again", self.path)

    def has(self, column: str) -> bool:
        """True if the examples have this column."""
        return bool(self.groups) and column in self.groups[0].schema.names

    def _padded(self, column: str, rows: Longs, lengths: Ints, end: int, padding: int = 0) -> Longs:
        """A column's values at some rows, `end` places longer than the longest; one copy for each group touched."""
        values_of_rows = np.zeros((len(rows), int(lengths.max(initial=0)) + end), np.int64)
        groups = np.searchsorted(self.first_row, rows, side="right") - 1
        for group in np.unique(groups):
            here = np.flatnonzero(groups == group)
            offsets, values = flat(self.groups[group], column)
            starts = offsets[rows[here] - self.first_row[group]]
            values_of_rows[here] = padded(values, starts, lengths[here], values_of_rows.shape[1], padding)
        return values_of_rows

    def _lengths(self, column: str) -> Ints:
        return np.concatenate([np.diff(flat(group, column)[0]) for group in self.groups] or [np.empty(0, np.int32)])


def _check_lists(group: pa.RecordBatch) -> None:
    """Refuses lists that do not lie in their column, without a look at what is in them."""
    group.validate()
    for name in group.schema.names:
        column = group.column(name)
        if column.null_count:
            raise ValueError(f"{name} has nothing in some rows")
        if pa.types.is_list(column.type):
            offsets, values = flat(group, name)
            if len(offsets) != group.num_rows + 1 or offsets[0] < 0 or offsets[-1] > len(values):
                raise ValueError(f"{name} has rows outside of itself")
            if (np.diff(offsets) < 0).any():
                raise ValueError(f"{name} has rows that end before they begin")
    source, positions, target = (np.diff(flat(group, name)[0]) for name in ("source", "source_words", "target"))
    partners = {"source_forms": source} | dict.fromkeys(("starts", "ends", "pieces"), positions)
    partners |= dict.fromkeys(("target_words", "target_forms", "links"), target)
    if "pieces" not in group.schema.names:  # the encoder reads one thing at each position
        partners["source"] = positions
    for name, lengths in partners.items():
        if name in group.schema.names and (np.diff(flat(group, name)[0]) != lengths).any():
            raise ValueError(f"{name} has rows of another length than those of the column that it belongs to")


def padded(values: Ints, starts: Ints | Longs, lengths: Ints | Longs, width: int, padding: int = 0) -> Longs:
    """(B, width): `lengths` values from each of `starts` on; the rest is 0, which is EOS, or another `padding`."""
    place = np.arange(width)
    real = place < lengths[:, None]
    return np.where(real, values[np.where(real, starts[:, None] + place, 0)], np.int64(padding))


def place_of_pieces(pieces: Longs, source_lengths: Ints | Longs, width: int) -> Longs:
    """(B, width) the position that each piece is a part of, from how many `pieces` (B, J - 1) each position has.

    The source's end is a position of its own, of one piece. Padding is NOWHERE.
    """
    ends = np.cumsum(pieces, 1)  # (B, J - 1), those of padding equal to the last one
    in_all = ends[:, -1:] if pieces.shape[1] else np.zeros((len(pieces), 1), np.int64)
    piece = np.arange(width)
    place = (piece[None, :, None] >= ends[:, None, :]).sum(2)  # positions that end before the piece
    place = np.where(piece == in_all, source_lengths[:, None], place)
    return np.where(piece > in_all, np.int64(NOWHERE), place)


def make_batch(
    rows: Longs,
    x: Longs,
    source_words: Longs,
    source_lengths: Ints | Longs,
    target: Longs,
    y: Longs,
    target_lengths: Ints | Longs,
    forms: tuple[Longs, Longs] | None = None,
    pieces: Longs | None = None,
    links: Longs | None = None,
) -> Batch:
    """Padded arrays as tensors with their masks. A source is one position longer than its words: there is its EOS."""
    import torch

    x_mask = np.arange(source_words.shape[1]) <= source_lengths[:, None]
    mask = np.arange(target.shape[1]) < target_lengths[:, None]
    place = None if pieces is None else place_of_pieces(pieces, source_lengths, x.shape[1])
    arrays = (x, x_mask, source_words, target, y, mask, *(forms or (None, None)), place, links)
    tensors: list[Any] = [None if array is None else torch.from_numpy(array) for array in arrays]
    return Batch(rows, *tensors)


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
        path = folder / PREPARED
        if not path.exists():
            raise Misuse(f"not a prepared corpus: there is no {PREPARED} in it", folder)
        self.about = read_object(path, "what `pointing prepare` writes")
        about = checked(About, self.about, path)
        if missing := {"train", "dev"} - about.statistics.keys():
            raise Misuse(f"there are no statistics of {min(missing)}: run `pointing prepare` again", path)

    @cached_property
    def lexicon(self) -> Lexicon:
        config = checked(Config, self.about["settings"], self.folder / PREPARED)
        return Lexicon.load(self.folder, config, self.about.get("placeholders", 0))

    def split(self, name: str) -> Split:
        return Split.open(self.folder / f"{name}.arrow", (len(self.lexicon.source), len(self.lexicon.target)))


class Counted(BaseModel):
    """What `corpus/statistics.py` counted of a split, as far as it is read again."""

    pairs: int
    skipped: dict[str, int]
    first_skipped: dict[str, int]
    target_tokens: int
    pointers: int
    unknown: int
    pointers_per_100: float
    pieces_per_word: float = 1.0
    unknown_share: float
    reached_by_same_word: float
    reached_by_same_word_or_dictionary: float


class About(BaseModel):
    """What prepared.json holds."""

    made_from: str
    settings: dict[str, Any]
    statistics: dict[str, Counted]
    placeholders: Annotated[int, Field(ge=0, le=MOST_PLACEHOLDERS)] = 0  # of corpora before their vocabularies had them
