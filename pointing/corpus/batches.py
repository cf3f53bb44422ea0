"""Which examples make a batch, epoch after epoch; and a batch's candidate words (large-vocabulary trick, §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.corpus.examples import Batch, Split
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.text.dictionary import Dictionary
from pointing.text.vocabulary import EOS, UNK, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
POOL = 100  # batches whose examples are sorted by length together


def plan(
    source: Ints, target: Ints, batch: int, by: Literal["sentences", "tokens"], seed: int, epoch: int, pool: int = POOL
) -> list[Longs]:
    """One epoch's batches as rows, in order: examples of like length together, everything else shuffled.

    `source` and `target` are the examples' lengths. The same seed and epoch give the same plan, so the order can be
    taken up again at any batch.
    """
    rng = np.random.default_rng([seed, epoch])
    lengths = np.maximum(source, target)
    order = rng.permutation(len(lengths))
    examples = batch * pool if by == "sentences" else max(1, int(batch * pool / max(1.0, lengths.mean())))
    batches: list[Longs] = []
    for start in range(0, len(order), examples):
        rows = order[start : start + examples]
        if by == "tokens":
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            batches += _by_tokens(rows, lengths[rows], batch)
        else:
            batches += _by_sentences(rows[_alike(source[rows], target[rows])], batch)
    return [batches[number] for number in rng.permutation(len(batches))]


def _alike(source: Ints, target: Ints) -> Longs:
    """An order that puts examples of like length together on both sides.

    By target length, and in each by source length, up and down in turn, so that where one target length ends the next
    begins with sources as long.
    """
    return np.lexsort((np.where(target % 2 == 0, source, -source), target))


def _by_sentences(rows: Longs, batch: int) -> list[Longs]:
    return [rows[start : start + batch] for start in range(0, len(rows), batch)]


def _by_tokens(rows: Longs, lengths: Ints, budget: int) -> list[Longs]:
    """Cuts rows, shortest first, so that no batch has more than `budget` tokens, padding counted; one row at least."""
    batches, start = [], 0
    while start < len(rows):
        coming = lengths[start : start + budget]
        cost = coming * np.arange(1, len(coming) + 1)
        taken = max(1, int(np.searchsorted(cost, budget, side="right")))
        batches.append(rows[start : start + taken])
        start += taken
    return batches


def padding_share(source: Ints, target: Ints, batches: list[Longs]) -> float:
    """The share of the places of all padded tensors, source and target, that hold nothing."""
    real = int(source.sum()) + int(target.sum())
    padded = sum(len(rows) * (int(source[rows].max()) + int(target[rows].max())) for rows in batches)
    return 1 - real / max(1, padded)


class Batches:
    """A split's batches without end, epoch after epoch; `epoch` and `done` say where it is, and where to go on."""

    def __init__(
        self,
        split: Split,
        batch: int,
        by: Literal["sentences", "tokens"] = "sentences",
        *,
        seed: int = 1,
        epoch: int = 0,
        done: int = 0,
    ) -> None:
        self.split, self.size, self.by, self.seed = split, batch, by, seed
        self.epoch, self.done = epoch, done

    def __iter__(self) -> Iterator[Batch]:
        while True:
            lengths = self.split.source_lengths, self.split.target_lengths
            batches = plan(*lengths, self.size, self.by, self.seed, self.epoch)
            if self.done >= len(batches):
                what = f"the checkpoint is at batch {self.done:,} of an epoch of {len(batches):,}"
                raise Misuse(f"{what}: it is damaged, or its corpus is another one: begin a new run", self.split.path)
            for number in range(self.done, len(batches)):
                self.done = number + 1
                if self.done == len(batches):
                    self.epoch, self.done = self.epoch + 1, 0
                yield self.split.batch(batches[number])


class CandidateTranslations(NamedTuple):
    """The dictionary between two vocabularies, as arrays: ids[offsets[source id] : offsets[source id + 1]]."""

    offsets: Longs
    ids: Ints

    @classmethod
    def of_lexicon(cls, lexicon: Lexicon) -> CandidateTranslations | None:
        if lexicon.dictionary is None:
            return None
        return cls.between(lexicon.source, lexicon.target, lexicon.dictionary)

    @classmethod
    def between(cls, source: Vocabulary, target: Vocabulary, dictionary: Dictionary) -> CandidateTranslations:
        pairs = {(source[word], target[other]) for word, other, _ in dictionary.pairs()}
        in_both = sorted((x, y) for x, y in pairs if x != UNK and y != UNK)
        array = np.array(in_both, dtype=np.int64).reshape(-1, 2)
        return cls(np.searchsorted(array[:, 0], np.arange(len(source) + 1)), array[:, 1].astype(np.int32))

    def of(self, x: Longs) -> Longs:
        """The target ids that any of the source ids translates to."""
        start, count = self.offsets[x], self.offsets[x + 1] - self.offsets[x]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        translated: Longs = self.ids[np.repeat(start, count) + within].astype(np.int64)
        return translated


def candidates(batch: Batch, size: int, V: int, translations: CandidateTranslations | None = None) -> Tensor:
    """The target words (C,) that compete in this batch in training (large-vocabulary trick, paper §5.2), sorted.

    The source's words and their translations, the words to predict, then the most common target words: `size` words,
    or more if the first ones are more already.
    """
    import torch

    x, source_words = batch.x[batch.read_mask].numpy(), batch.source_words[batch.x_mask].numpy()
    return torch.from_numpy(_candidates(x, [source_words, batch.y[batch.mask].numpy()], size, V, translations))


def candidates_by_source(batch: Batch, size: int, V: int, translations: CandidateTranslations | None = None) -> Tensor:
    """The target words (B, C) that compete at test, for each source its own: its output depends on no other source.

    Chosen as in training, but without words to predict. Rows with fewer than C words are filled up with EOS.
    """
    import torch

    masks = batch.read_mask.numpy(), batch.x_mask.numpy()
    sources = zip(batch.x.numpy(), batch.source_words.numpy(), *masks, strict=True)
    rows = [
        _candidates(x[read], [source_words[positions]], size, V, translations)
        for x, source_words, read, positions in sources
    ]
    padded = np.full((len(rows), max(map(len, rows))), EOS)
    for row, words in zip(padded, rows, strict=True):
        row[: len(words)] = words
    return torch.from_numpy(padded)


def _candidates(x: Longs, words: list[Longs], size: int, V: int, translations: CandidateTranslations | None) -> Longs:
    required = [np.array([EOS, UNK]), *(part[part < V] for part in words)]
    if translations is not None:
        required.append(translations.of(np.unique(x)))
    chosen = np.unique(np.concatenate(required))
    common = np.setdiff1d(np.arange(min(V, size)), chosen, assume_unique=True)  # ids go from common to rare
    return np.sort(np.concatenate([chosen, common[: max(0, size - len(chosen))]]))
