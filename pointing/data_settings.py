"""The settings of the section `data`: which files there are to learn from, and which parts of them are held out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from pointing.checking import Settings

Positive = Annotated[int, Field(gt=0)]


class Parallel(Settings):
    """Two text files, plain or .gz: line n of both is one example."""

    source: Path
    target: Path
    source_tags: Path | None = None  # for pointers.policy: entities, a tag for every token
    target_tags: Path | None = None


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str | Path) else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Column = Annotated[str, BeforeValidator(_as_text)]  # its name, or its number from 1 in a table without a header


class Table(Settings):
    """Files with both sides in them: CSV, TSV, JSONL, PO, XLIFF, or text with a tab between the sides.

    `train: strings.csv` and `train: [a.po, b.po]` are short for `train: {files: [...]}`.
    """

    files: Annotated[tuple[Path, ...], Field(min_length=1), BeforeValidator(_as_list)]
    source_column: Column | None = None  # null: guessed
    target_column: Column | None = None
    key_column: Column | None = None  # rows with the same value in it stay together when dev and test are split off


def _form_of_files(value: Any) -> str:
    """The form that is meant, as `checking` knows it: the name of its class, in brackets."""
    return "(Table)" if isinstance(value, Table) or (isinstance(value, Mapping) and "files" in value) else "(Parallel)"


def _named_files(value: Any) -> Any:
    """A file, or a list of files, as what it is short for."""
    if not isinstance(value, str | Path | list | tuple | Mapping | Settings):
        raise ValueError("should be a file, a list of files, or two files as source and target")
    return {"files": value} if isinstance(value, str | Path | list | tuple) else value


Files = Annotated[
    Annotated[Parallel, Tag("(Parallel)")] | Annotated[Table, Tag("(Table)")],
    Discriminator(_form_of_files),
    BeforeValidator(_named_files),
]


class HeldOut(Settings):
    """What is split off from the training data where no dev, or neither dev nor test, is given."""

    dev: Positive | None = None  # pairs; null: a twentieth, but 100 (of few pairs a tenth) to 2,000
    test: Positive | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 62)] = 1


class Data(Settings):
    train: Files
    dev: Files | None = None  # for validation; null: split off from train
    test: Files | None = None  # null: split off from train if dev is, else there is none
    held_out: HeldOut = HeldOut()
    languages: tuple[str, str] = ("en", "fr")  # of source and target; the Moses tokenizer and detokenising need them

    def given(self) -> dict[str, Parallel | Table]:
        """The splits that have files of their own."""
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: files for name, files in splits.items() if files is not None}

    def split_off(self) -> list[str]:
        """The splits that are taken from the training data."""
        if self.dev is not None:
            return []
        return ["dev"] if self.test is not None else ["dev", "test"]
