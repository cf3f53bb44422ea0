"""The bilingual word dictionary (paper §5.3): load it, induce it from a parallel corpus, look words up both ways.

Training looks a target word's senses up in the source sentence; at test the translations of a copied source word are
the inverse. The paper does not say how its dictionary was made. `induce` counts links of IBM Model 1 with the priors
of fast_align (Dyer et al. 2013), trained in both directions, where both directions agree.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pointing.errors import Misuse
from pointing.files import read_text, write_text
from pointing.progress import progress, track

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.integer[Any]]
    Floats = NDArray[np.float64]

MAX_TOKENS = 200  # a side; longer pairs say little about single words, and cost the square of their length
CELLS = 1 << 22  # (source token, target token) cells worked on at a time: what bounds the memory


class Dictionary:
    """Word pairs source <-> target, many to many, each with a weight (probability or 1.0)."""

    def __init__(self, pairs: Iterable[tuple[str, str, float]] = ()) -> None:
        """Of a pair given twice the larger weight counts; of equal weights the earlier pair is the better one."""
        self._weights: dict[tuple[str, str], float] = {}
        for source, target, weight in pairs:
            for word in (source, target):
                if not _is_word(word):
                    raise Misuse(f"{word!r} cannot stand in a dictionary: it is empty or holds a tab or line end")
            self._weights[source, target] = max(weight, self._weights.get((source, target), 0.0))
        self._senses = _best_first((target, source, weight) for source, target, weight in self.pairs())
        self._translations = _best_first(self.pairs())

    @classmethod
    def load(cls, path: str | Path) -> Dictionary:
        """A file of `source TAB target [TAB probability]`, or of OpenNMT's `source|||target`; plain or .gz.

        A third column that is not a number, such as a part of speech, is ignored; so are further columns and blank lines.
        """
        dictionary = cls(_read(path))
        if not len(dictionary):
            raise Misuse("this dictionary is empty: expected lines of source TAB target", path)
        return dictionary

    def save(self, path: str | Path) -> None:
        """`source TAB target TAB probability`: what `load` reads back, to the last digit and in the same order."""
        if not len(self):
            raise Misuse("there is no word pair to save; a dictionary needs more text, or lower thresholds", path)
        write_text(path, "".join(f"{source}\t{target}\t{weight!r}\n" for source, target, weight in self.pairs()))

    def senses(self, target_word: str) -> Sequence[str]:
        """The source words that it translates, best first."""
        return self._senses.get(target_word, ())

    def translations(self, source_word: str) -> Sequence[str]:
        """The target words that translate it, best first."""
        return self._translations.get(source_word, ())

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """(source, target, weight), in the order they were given."""
        for (source, target), weight in self._weights.items():
            yield source, target, weight

    def __len__(self) -> int:
        return len(self._weights)

    def normalized(self, source: Callable[[str], str], target: Callable[[str], str]) -> Dictionary:
        """The same pairs written as the corpus writes its words; a pair of which nothing is left is dropped."""
        pairs = ((source(word), target(other), weight) for word, other, weight in self.pairs())
        return Dictionary(pair for pair in pairs if pair[0] and pair[1])


def _best_first(pairs: Iterable[tuple[str, str, float]]) -> dict[str, tuple[str, ...]]:
    found: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for word, other, weight in pairs:
        found[word].append((-weight, other))
    return {word: tuple(other for _, other in sorted(others, key=_rank)) for word, others in found.items()}


def _rank(scored: tuple[float, str]) -> float:
    return scored[0]


def _is_word(word: str) -> bool:
    """Whether a line of a dictionary file can hold it: `load` takes the whitespace around a word away."""
    return bool(word) and word == word.strip() and not re.search(r"[\t\n]", word)


def _read(path: str | Path) -> Iterator[tuple[str, str, float]]:
    for number, line in read_text(path):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t" if "\t" in line else "|||")]
        if len(columns) < 2:
            raise Misuse("no tab here: expected source TAB target, or source|||target", path, number)
        if not columns[0] or not columns[1]:
            raise Misuse(f"the {'target' if columns[0] else 'source'} word is missing", path, number)
        weight = _number(columns[2]) if len(columns) > 2 else None
        if weight is not None and not 0 <= weight <= 1:
            raise Misuse(f"{columns[2]} is not a probability, which lies between 0 and 1", path, number)
        yield columns[0], columns[1], 1.0 if weight is None else weight


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None  # `inf` is how some dictionaries mark an infinitive


def induce(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    *,
    iterations: int = 5,
    min_probability: float = 0.1,
    min_count: int = 1,
) -> Dictionary:
    """The word pairs of a parallel corpus that translate each other in a share of at least min_probability.

    That share is links / sqrt(source word's count * target word's count): near 1 only where either word is seldom seen
    without the other. Words seen fewer than min_count times on their side help to explain the sentences they are in, but
    are left out of the dictionary. The default keeps them: rare words are what a pointer is for.
    """
    if iterations < 1 or min_count < 1 or not 0 <= min_probability <= 1:
        raise Misuse("a dictionary needs iterations and min_count of 1 or more, and min_probability from 0 to 1")
    found = estimate(pairs, iterations=iterations)
    source_count, target_count = found.source_count[found.source], found.target_count[found.target]
    share = (found.links / np.sqrt(source_count * target_count)).round(4)
    keep = np.flatnonzero(
        (share > 0) & (share >= min_probability) & (np.minimum(source_count, target_count) >= min_count)
    )
    best = keep[np.argsort(-share[keep], kind="stable")]
    sources, targets = found.source[best].tolist(), found.target[best].tolist()
    words = zip(map(found.source_words.__getitem__, sources), map(found.target_words.__getitem__, targets), strict=True)
    weighted = zip(words, share[best].tolist(), strict=True)
    return Dictionary((word, other, weight) for (word, other), weight in weighted if _is_word(word) and _is_word(other))


class Prior(NamedTuple):
    """What is believed of an alignment before the words are seen. All but `same` are fast_align's, at its values."""

    diagonal: float = 4.0  # a cell's weight is exp(-diagonal * its distance from the diagonal)
    null: float = 0.08  # probability that a word translates nothing
    alpha: float = 0.01  # Dirichlet prior of p(word | given): the smaller, the fewer translations a word has
    same: float = 10.0  # a word is at first this much likelier to translate itself than any other: names, numbers


MODEL_1 = Prior(diagonal=0.0, null=0.0, alpha=0.0, same=1.0)  # IBM Model 1 as in the textbook; no NULL word


class Estimate(NamedTuple):
    """What EM found out about the P word pairs that ever shared a sentence pair."""

    source_words: list[str]
    target_words: list[str]
    source_count: Integers  # how often each was seen
    target_count: Integers
    source: Integers  # (P,) ids, ascending
    target: Integers  # (P,) ids, ascending for each source
    forward: Floats  # (P,) p(target | source)
    backward: Floats  # (P,) p(source | target)
    links: Floats  # (P,) expected number of links by agreement


def estimate(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]], *, iterations: int = 5, prior: Prior = Prior()
) -> Estimate:
    """EM over all cells (source token, target token) in both directions; then one pass that counts links.

    A link's probability is the product of both directions' posteriors (agreement, Liang et al. 2006): in one direction a
    rare word is a garbage collector, which explains whatever nothing else explains, but seldom in both.
    """
    text = _intern(pairs)
    blocks = list(_blocks(text))
    keys = _co_occurrences(blocks)
    source, target = keys >> 32, keys & 0xFFFFFFFF
    first = np.where(_same_word(text)[target] == source, prior.same, 1.0)
    forward = _Direction(prior, first, given=source, words=len(text.target_words), over=2)
    backward = _Direction(prior, first, given=target, words=len(text.source_words), over=1)
    links = np.zeros(len(keys))
    work = sum(block.cells for block in blocks) * (iterations + 2)
    with TemporaryFile() as index, progress("inducing a dictionary", work, "word pairs") as bar:
        for block in blocks:  # on disk: 4 bytes a cell, and a large corpus has billions of cells
            _positions(keys, block.keys()).tofile(index)
            bar.advance(block.cells)
        for left in range(iterations, -1, -1):
            index.seek(0)
            for block in blocks:
                pair = np.fromfile(index, np.int32, block.cells).astype(np.intp)  # (n * J * I,)
                near = block.near_the_diagonal(prior.diagonal)  # (J, I)
                by_forward = forward.posterior(pair, near, block.target[:, :, None])  # (n, J, I)
                by_backward = backward.posterior(pair, near, block.source[:, None, :])  # (n, J, I)
                if not left:
                    np.add.at(links, pair, (by_forward * by_backward).ravel())
                bar.advance(block.cells)
            if left:
                forward.maximise()
                backward.maximise()
    count = np.bincount(text.source), np.bincount(text.target)
    return Estimate(text.source_words, text.target_words, *count, source, target, forward.p, backward.p, links)


class _Direction:
    """p(word | given) of every pair, and p(word | nothing), in one direction."""

    def __init__(self, prior: Prior, first: Floats, given: Integers, words: int, over: int) -> None:
        self.prior, self.given, self.over = prior, given, over
        self.p = first / max(1, words)
        self.null = np.full(words, 1 / max(1, words))
        self.counts, self.null_counts = np.zeros_like(self.p), np.zeros_like(self.null)

    def posterior(self, pair: Integers, near: Floats, words: Integers) -> Floats:
        """E step: the probability of each cell's link, given its sentence pair; counted for the M step.

        words is (n, J, 1) where source words explain target words, (n, 1, I) where it is the other way round.
        """
        axis = self.over
        cells = self.p[pair].reshape(len(words), *near.shape) * near  # (n, J, I)
        nothing = self.prior.null / (1 - self.prior.null) * near.sum(axis - 1, keepdims=True) * self.null[words]
        total = cells.sum(axis, keepdims=True) + nothing  # as words
        cells /= total
        np.add.at(self.counts, pair, cells.ravel())
        np.add.at(self.null_counts, words.ravel(), (nothing / total).ravel())
        return cells

    def maximise(self) -> None:
        """M step; with a Dirichlet prior, the mean field one of Johnson (2007)."""
        if self.prior.alpha:
            from torch import digamma, from_numpy

            counts = self.counts + self.prior.alpha
            log_p = digamma(from_numpy(counts)).numpy()
            log_p -= digamma(from_numpy(np.bincount(self.given, counts))).numpy()[self.given]
            self.p = np.exp(log_p)
        else:
            self.p = self.counts / np.bincount(self.given, self.counts)[self.given]
        if self.prior.null:
            self.null = self.null_counts / self.null_counts.sum()
        self.counts[:], self.null_counts[:] = 0, 0


class _Text(NamedTuple):
    """The corpus as ids: all tokens in a row, and how many each sentence has."""

    source_words: list[str]
    target_words: list[str]
    source: Integers
    target: Integers
    source_lengths: Integers
    target_lengths: Integers


def _intern(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> _Text:
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    source, target, source_lengths, target_lengths = array("i"), array("i"), array("i"), array("i")
    for words, others in track(pairs, "reading sentence pairs", None, "pairs"):
        if 0 < len(words) <= MAX_TOKENS and 0 < len(others) <= MAX_TOKENS:
            source.extend([source_ids.setdefault(word, len(source_ids)) for word in words])
            target.extend([target_ids.setdefault(word, len(target_ids)) for word in others])
            source_lengths.append(len(words))
            target_lengths.append(len(others))
    arrays = map(np.asarray, (source, target, source_lengths, target_lengths))
    return _Text(list(source_ids), list(target_ids), *arrays)


def _same_word(text: _Text) -> Integers:
    """For each target id, the source id of the same word, or -1."""
    ids = {word: number for number, word in enumerate(text.source_words)}
    return np.array([ids.get(word, -1) for word in text.target_words], np.int64)


class _Block(NamedTuple):
    """n sentence pairs of one shape, so that sums over them are sums over an axis, without padding."""

    source: Integers  # (n, I)
    target: Integers  # (n, J)

    @property
    def cells(self) -> int:
        return self.source.size * self.target.shape[1]

    def keys(self) -> Integers:
        return (self.source[:, None, :].astype(np.int64) << 32 | self.target[:, :, None]).ravel()  # (n * J * I,)

    def near_the_diagonal(self, weight: float) -> Floats:
        i, j = ((np.arange(length) + 0.5) / length for length in (self.source.shape[1], self.target.shape[1]))
        return np.exp(-weight * np.abs(j[:, None] - i))  # (J, I)


def _blocks(text: _Text) -> Iterator[_Block]:
    source_starts = np.cumsum(text.source_lengths) - text.source_lengths
    target_starts = np.cumsum(text.target_lengths) - text.target_lengths
    shapes = text.source_lengths.astype(np.int64) << 32 | text.target_lengths
    order = np.argsort(shapes, kind="stable")
    for same_shape in np.split(order, np.flatnonzero(np.diff(shapes[order])) + 1):
        if len(same_shape):
            i, j = (np.arange(lengths[same_shape[0]]) for lengths in (text.source_lengths, text.target_lengths))
            at_once = max(1, CELLS // (len(i) * len(j)))
            for start in range(0, len(same_shape), at_once):
                chosen = same_shape[start : start + at_once, None]  # (n, 1)
                yield _Block(text.source[source_starts[chosen] + i], text.target[target_starts[chosen] + j])


def _co_occurrences(blocks: Iterable[_Block]) -> Integers:
    """The keys of all word pairs, sorted, each once."""
    keys, waiting, cells = np.empty(0, np.int64), [], 0
    for block in blocks:
        waiting.append(block.keys())
        cells += block.cells
        if cells > max(4 * CELLS, len(keys)):
            keys, waiting, cells = _unique(np.concatenate([keys, *waiting])), [], 0
    return _unique(np.concatenate([keys, *waiting]))


def _unique(keys: Integers) -> Integers:
    keys = np.sort(keys)  # ten times as fast as numpy.unique, which hashes
    return keys[np.diff(keys, prepend=-1) > 0]


def _positions(keys: Integers, wanted: Integers) -> Integers:
    order = np.argsort(wanted)  # found in order they are found four times as fast: memory is read in a row
    positions = np.empty(len(wanted), np.int32)
    positions[order] = np.searchsorted(keys, wanted[order])
    return positions
