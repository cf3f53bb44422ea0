"""What the user's data are like: pairs, lengths, languages, words that are copied, spans that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pointing.config import Config, Data, Parallel, Table, checked
from pointing.corpus.encoding import copied_tokens, tokenize_pairs
from pointing.corpus.lexicon import Tokenization
from pointing.corpus.sources import Lines, RawSplit, open_splits
from pointing.corpus.word_counts import WordCounts
from pointing.documents.pairs import is_table
from pointing.errors import Misuse
from pointing.system.progress import progress
from pointing.text.languages import language_of_name, language_of_text
from pointing.text.protected import PRESETS, Protector

SAMPLE = 100_000  # pairs that are looked at, evenly through the data
LINES_FOR_LANGUAGE, LINES_FOR_SPANS = 2_000, 10_000  # of the sample
SPLITS = {"dev": ("dev", "valid", "validation", "val"), "test": ("test",)}  # how files of other splits are named


@dataclass(frozen=True)
class Findings:
    """What was found in the data."""

    data: Data
    splits: dict[str, int]  # pairs of each split
    notes: tuple[str, ...]  # what was guessed
    guessed_languages: tuple[str | None, str | None]
    every: int  # one pair out of so many was looked at; the counts below are those of the sample
    words: WordCounts
    lengths: tuple[float, float]  # mean tokens of source and target
    longest: int  # tokens within which 99 % of the pairs are
    shorter: float  # median of target length ÷ source length
    copied_share: float  # of the target's words, those that stand in the source as they are; no punctuation
    with_spans: float  # share of sources with a protected span
    spans_kept: float  # share of those whose target has the same spans

    @property
    def languages(self) -> tuple[str, str]:
        """As guessed; a language that could not be guessed as the settings have it."""
        source, target = self.guessed_languages
        return source or self.data.languages[0], target or self.data.languages[1]

    @property
    def summarizes(self) -> bool:
        """True if targets are much shorter than sources and in the same language, as far as that is known."""
        source, target = self.guessed_languages
        return self.shorter < 0.6 and source == target


def data_settings(files: Sequence[Path], languages: tuple[str, str] | None, columns: Table | None) -> Data:
    """The data section for some files: two files of lines, or files with both sides in them.

    Files whose name begins with `train` bring dev and test files of the same kind along.
    """
    values: dict[str, Any] = {} if languages is None else {"languages": languages}
    told = {} if columns is None else columns.model_dump(exclude={"files"}, exclude_none=True)
    splits = _with_siblings(files)
    if len(files) == 2 and not any(map(is_table, files)):
        if told:
            raise Misuse(f"two files of lines have no columns: leave out {', '.join(told)}", files[0])
        return checked(Data, values | {name: {"source": pair[0], "target": pair[1]} for name, pair in splits.items()})
    key = told.pop("key_column", None)
    if key is not None and "dev" in splits:
        raise Misuse(f"a key column is for splitting off dev, but there is {splits['dev'][0]}: leave it out", files[0])
    values |= {name: {"files": paths, **told} for name, paths in splits.items()}
    values["train"]["key_column"] = key
    return checked(Data, values)


def _with_siblings(files: Sequence[Path]) -> dict[str, list[Path]]:
    """The files as the training part, and dev and test files that are named like them."""
    found = {"train": list(files)}
    if all(file.name.startswith("train") for file in files):
        for split, names in SPLITS.items():
            for name in names:
                paths = [file.with_name(name + file.name.removeprefix("train")) for file in files]
                if split not in found and all(path.exists() for path in paths):
                    found[split] = paths
    return found


def look(data: Data, is_told: bool) -> Findings:
    """Looks at a sample of the training data; languages are guessed unless the user has told them."""
    splits = open_splits(data)
    train = splits["train"]
    every = -(-train.pairs // SAMPLE)
    sample = _sample(train, every)
    guessed = data.languages if is_told else _languages(data, train, sample)
    # Words are counted as `prepare` will see them.
    text = {"forms": True, "protect": "software", "max_tokens": 1000}
    tokenization = Tokenization(checked(Config, {"data": data.model_dump(), "text": text}))
    pairs, statistics = tokenize_pairs(tokenization, sample.source, sample.target, None, sample.numbers)
    if not statistics.pairs:
        raise Misuse(f"no pair is left of {len(sample.source):,}: {statistics.reasons()}", train.path)
    copied = copied_tokens(pairs)
    words, size = pairs.source.words, len(pairs.source.words)
    counts = [
        np.bincount(ids, minlength=size) for ids in (pairs.source.ids, pairs.target.ids, pairs.target.ids[copied])
    ]
    columns = [dict(zip(words, side.tolist(), strict=True)) for side in counts]
    is_word = np.array([any(map(str.isalnum, word)) for word in words], bool)[pairs.target.ids]
    lengths = pairs.source.counts, pairs.target.counts
    spans = _spans(pairs.texts)
    return Findings(
        data=data,
        splits={name: split.pairs for name, split in splits.items()},
        notes=tuple(note for split in splits.values() for note in split.notes),
        guessed_languages=guessed,
        every=every,
        words=WordCounts(*({word: count for word, count in side.items() if count} for side in columns)),
        lengths=(float(lengths[0].mean()), float(lengths[1].mean())),
        longest=int(np.quantile(np.maximum(*lengths), 0.99, method="higher")),
        shorter=float(median((lengths[1] / np.maximum(1, lengths[0])).tolist())),
        copied_share=float(copied[is_word].mean()) if is_word.any() else 0.0,
        with_spans=spans[0],
        spans_kept=spans[1],
    )


def _sample(train: RawSplit, every: int) -> Lines:
    numbers: list[int] = []
    source: list[bytes] = []
    target: list[bytes] = []
    first = 0
    with progress("looking at the data", train.pairs, "pairs") as bar:
        for block in train.blocks():
            start = -first % every
            first += len(block.source)
            numbers += block.numbers[start::every]
            source += block.source[start::every]
            target += block.target[start::every]
            bar.advance(len(block.source))
    return Lines(numbers, source, target)


def _languages(data: Data, train: RawSplit, sample: Lines) -> tuple[str | None, str | None]:
    """By the names of columns or files, by a PO file's header, else by common words."""
    source, target = train.languages
    if isinstance(data.train, Parallel):
        ends = (path.name.removesuffix(".gz").rpartition(".")[2] for path in (data.train.source, data.train.target))
        source, target = map(language_of_name, ends)
    source_text, target_text = (
        [line.decode("utf-8", "replace") for line in side[:LINES_FOR_LANGUAGE]]
        for side in (sample.source, sample.target)
    )
    return source or language_of_text(source_text), target or language_of_text(target_text)


def _spans(texts: tuple[Sequence[str], Sequence[str]]) -> tuple[float, float]:
    """The share of sources with a protected span, and of those the share whose target has the same ones."""
    protector = Protector(PRESETS["software"])

    def bag(text: str) -> Counter[str]:
        return Counter(text[span.start : span.end] for span in protector(text))

    step = max(1, len(texts[0]) // LINES_FOR_SPANS)
    bags = [(bag(source), target) for source, target in zip(texts[0][::step], texts[1][::step], strict=True)]
    with_spans = [(spans, bag(target)) for spans, target in bags if spans]
    kept = sum(spans == others for spans, others in with_spans)
    return len(with_spans) / max(1, len(bags)), kept / max(1, len(with_spans))
