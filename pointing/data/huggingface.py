"""Translation and summarization sets that Hugging Face `datasets` can load, from the hub or from a local path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pointing.data.parallel import CorpusWriter, Summary, writing
from pointing.errors import Failure, Misuse, missing_extra
from pointing.system.progress import track

SPLITS = {"train": "train", "validation": "dev", "test": "test"}
LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
FORMATS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".arrow": "arrow"}


def bring(
    out: str | Path,
    name: str,
    source_column: str,
    target_column: str,
    *,
    config: str | None = None,
    splits: Mapping[str, str] | None = None,
    revision: str | None = None,
    limit: int | None = None,
) -> Summary:
    """Writes a file for each split and column, named after the column: `translation.en` gives `train.en`.

    `splits` maps the set's splits to ours; by default train, validation (as dev) and test, if the set has them. `limit`
    is the largest number of examples of a split. Examples are streamed, so the memory does not grow.
    """
    columns = (source_column, target_column)
    loaded = _load(name, config, revision)
    for split in splits or {}:
        if split not in loaded:
            raise Misuse(f"{name} has no split {split!r}: it has {', '.join(loaded)}")
    chosen = splits or {split: ours for split, ours in SPLITS.items() if split in loaded}
    if not chosen:
        raise Misuse(
            f"{name} has none of the splits {', '.join(SPLITS)}: say which of {', '.join(loaded)} to take as what"
        )
    title = " ".join(filter(None, [name, config, revision]))
    with writing(f"Hugging Face data set {title}", out, _sides(columns)) as corpus:
        for theirs, ours in chosen.items():
            rows = islice(_rows(loaded[theirs], name), limit)
            for row in track(rows, f"{theirs} of {name}", limit, "examples"):
                _add(ours, [_text(row, column, name) for column in columns], corpus)
    return corpus.summary()


def _add(split: str, texts: list[str], corpus: CorpusWriter) -> None:
    lines = [LINE_BREAK.sub(" ", text).strip() for text in texts]
    if not all(lines):
        corpus.left_out["pairs with an empty side"] += 1
        return
    corpus.changed["texts in which line breaks became spaces"] += sum(
        LINE_BREAK.search(text.strip()) is not None for text in texts
    )
    corpus.add(split, *lines)


def _load(name: str, config: str | None, revision: str | None) -> Mapping[str, Any]:
    """The set's splits by name; a split is an iterable of examples."""
    try:
        import datasets
    except ImportError:
        raise missing_extra("datasets", "huggingface") from None
    datasets.disable_progress_bars()  # pointing shows its own
    path = Path(name)
    try:
        if path.is_file():
            options = {"sep": "\t"} if ".tsv" in path.suffixes else {}
            return _streamed(datasets, _format(path), data_files=name, **options)
        if (path / "dataset_dict.json").exists():  # written by save_to_disk
            return dict(datasets.load_from_disk(name))
        if (path / "state.json").exists():
            return {"train": datasets.load_from_disk(name)}
        return _streamed(datasets, name, config, revision=revision)
    except Misuse:
        raise
    except ConnectionError as error:
        raise Failure(
            f"the Hugging Face hub cannot be reached, nor is {name!r} a local path: {_line(error)}"
        ) from error
    except (FileNotFoundError, ValueError, RuntimeError) as error:  # no such set; no such config; needs a script
        raise Misuse(f"{name} cannot be loaded: {_line(error)}") from error
    except Exception as error:  # the hub and the network raise many kinds of errors
        raise Failure(f"{name} could not be fetched: {_line(error)}") from error


def _streamed(datasets: Any, *arguments: Any, **options: Any) -> Mapping[str, Any]:
    return dict(datasets.load_dataset(*arguments, streaming=True, **options))


def _format(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".zst", ".xz", ".bz2")]
    if not suffixes or suffixes[-1] not in FORMATS:
        raise Misuse(f"this is none of {', '.join(FORMATS)}, plain or compressed", path)
    return FORMATS[suffixes[-1]]


def _rows(split: Any, name: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from split
    except Exception as error:  # errors of the network, of the disk, of a format's reader
        raise Failure(f"{name}: reading stopped: {_line(error)}") from error


def _text(row: Mapping[str, Any], column: str, name: str) -> str:
    """The text in a column (`summary`), or in a part of a column (`translation.en`, `highlights.0`)."""
    value: Any = row
    rest = column
    while rest and value is not None:
        whole = isinstance(value, Mapping) and rest in value  # the name of a column may itself have dots
        key, _, rest = (rest, "", "") if whole else rest.partition(".")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            raise Misuse(f"{name} has no column {column!r}: it has {', '.join(_columns(row))}")
    if value is not None and not isinstance(value, str):
        raise Misuse(f"column {column!r} of {name} holds no text but {type(value).__name__}: {str(value)[:60]}")
    return value or ""


def _columns(row: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _columns(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def _sides(columns: tuple[str, str]) -> list[str]:
    """Names for the files: the last parts of the columns' names, or the whole names if the last parts are the same."""
    last = [column.rpartition(".")[2] for column in columns]
    if last[0] == last[1] or any(name.isdecimal() for name in last):
        last = list(columns)
    if last[0] == last[1]:
        raise Misuse(f"source and target are the same column, {columns[0]!r}")
    return [re.sub(r"[^\w.-]+", "-", name) for name in last]


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
