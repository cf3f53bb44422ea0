"""Word alignment (IBM Model 1 in both directions): which words of a parallel corpus translate each other.

The paper does not say how its dictionary was made (§5.3). `induce` has the priors of fast_align (Dyer et al. 2013), and
keeps the word pairs on which both directions agree.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pointing.errors import Misuse
from pointing.system.progress import progress, track
from pointing.text.dictionary import Dictionary, is_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.integer[Any]]
    Floats = NDArray[np.float64]

MAX_TOKENS = 200  # a side: longer pairs are passed over, they say little about single words and cost the square
CELLS = 1 << 22  # cells (source token, target token) that are worked on at a time


def induce(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    *,
    iterations: int = 5,
    min_probability: float = 0.1,
    min_count: int = 1,
) -> Dictionary:
    """The word pairs of a parallel corpus whose weight is at least min_probability.

    The weight is links / sqrt(count of the source word * count of the target word): near 1 only for two words that are
    seldom seen without each other. Words seen fewer than min_count times on their side help to explain their sentences,
    but stay out of the dictionary. By default none do: rare words are what a pointer is for.
    """
    if iterations < 1 or min_count < 1 or not 0 <= min_probability <= 1:
        raise Misuse("a dictionary needs iterations and min_count of at least 1, and min_probability from 0 to 1")
    found = estimate(pairs, iterations=iterations)
    counts = found.source_count[found.source], found.target_count[found.target]  # (P,) each
    weight = (found.links / np.sqrt(counts[0] * counts[1])).round(4)  # (P,)
    keep = np.flatnonzero((weight >= max(min_probability, 1e-4)) & (np.minimum(*counts) >= min_count))
    keep = keep[np.argsort(-weight[keep], kind="stable")]
    columns = found.source[keep].tolist(), found.target[keep].tolist(), weight[keep].tolist()
    words = ((found.source_words[s], found.target_words[t], w) for s, t, w in zip(*columns, strict=True))
    return Dictionary(pair for pair in words if is_word(pair[0]) and is_word(pair[1]))


class Prior(NamedTuple):
    """What is believed of a link before any text is read. `diagonal` and `alpha` are fast_align's, at its values."""

    diagonal: float = 4.0  # a cell weighs exp(-diagonal * distance from the sentence pair's diagonal)
    null: float = 0.2  # probability that a word translates nothing; then any word is as likely, the rare ones too
    alpha: float = 0.01  # Dirichlet prior on p(word | given): the smaller, the fewer translations a word has
    same: float = 10.0  # at first a word is this much likelier to translate itself: names, numbers, loan words


DEFAULT = Prior()
MODEL_1 = Prior(diagonal=0.0, null=0.0, alpha=0.0, same=1.0)  # IBM Model 1 with nothing added


class Estimate(NamedTuple):
    """What EM has found out about the P word pairs that ever met in a sentence pair."""

    source_words: list[str]
    target_words: list[str]
    source_count: Integers  # how often each word was seen
    target_count: Integers
    source: Integers  # (P,) ids, ascending
    target: Integers  # (P,) ids, ascending for each source
    forward: Floats  # (P,) p(target | source)
    backward: Floats  # (P,) p(source | target)
    links: Floats  # (P,) how many links are expected, all told


def estimate(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]], *, iterations: int = 5, prior: Prior = DEFAULT
) -> Estimate:
    """EM over all cells of all sentence pairs in both directions; then a pass that counts links.

    A link has the product of both directions' posteriors (agreement, Liang et al. 2006): in one direction a rare word
    is a garbage collector, which explains whatever nothing else does, but seldom in both.
    """
    sources, targets = _intern(pairs)
    blocks = list(_blocks(sources, targets))
    keys = _co_occurrences(blocks)
    source, target = (keys >> 32).astype(np.int32), keys.astype(np.int32)  # the lower half
    first = np.where(_namesakes(sources, targets)[target] == source, prior.same, 1.0)
    forward = _Direction(prior, first, given=source, words=len(targets.words), over=2)
    backward = _Direction(prior, first, given=target, words=len(sources.words), over=1)
    links = np.zeros(len(keys))
    work = sum(block.cells for block in blocks) * (iterations + 2)
    with TemporaryFile() as index, progress("inducing a dictionary", work, "word pairs") as bar:
        for block in blocks:  # on disk: it takes 4 bytes a cell, and a large corpus has billions of cells
            _positions(keys, block.keys()).tofile(index)
            bar.advance(block.cells)
        for left in range(iterations, -1, -1):
            index.seek(0)
            for block in blocks:
                pair = np.fromfile(index, np.int32, block.cells).astype(np.intp)  # (n * J * I,)
                near = block.near(prior.diagonal)  # (J, I)
                by_forward, by_backward = forward.posterior(pair, near), backward.posterior(pair, near)  # (n, J, I)
                if left:
                    np.add.at(forward.counts, pair, by_forward.ravel())
                    np.add.at(backward.counts, pair, by_backward.ravel())
                else:
                    np.add.at(links, pair, (by_forward * by_backward).ravel())
                bar.advance(block.cells)
            if left:
                forward.maximise()
                backward.maximise()
    counts = np.bincount(sources.tokens), np.bincount(targets.tokens)
    return Estimate(sources.words, targets.words, *counts, source, target, forward.p, backward.p, links)


class _Direction:
    """p(word | given) for all P pairs, and expected counts of them; `over` is the axis of a block's given words."""

    def __init__(self, prior: Prior, first: Floats, *, given: Integers, words: int, over: int) -> None:
        self.given, self.over, self.alpha = given, over, prior.alpha
        self.p, self.counts = first / max(1, words), np.zeros(len(first))
        self.null = prior.null / (1 - prior.null) / max(1, words)

    def posterior(self, pair: Integers, near: Floats) -> Floats:
        """E step: the probability that a cell's given word is the one that its other word translates."""
        p = self.p[pair].reshape(-1, *near.shape) * near  # (n, J, I)
        p /= p.sum(self.over, keepdims=True) + self.null * near.sum(self.over - 1, keepdims=True)
        return p

    def maximise(self) -> None:
        """M step; with a Dirichlet prior by variational Bayes, where few counts become hardly any probability."""
        if self.alpha:
            from torch import digamma, from_numpy

            counts = self.counts + self.alpha
            totals = np.bincount(self.given, counts)
            self.p = np.exp(digamma(from_numpy(counts)).numpy() - digamma(from_numpy(totals)).numpy()[self.given])
        else:
            self.p = self.counts / np.bincount(self.given, self.counts)[self.given]
        self.counts[:] = 0


class _Side(NamedTuple):
    """One language of the corpus as ids: all tokens in a row, and where each sentence lies among them."""

    words: list[str]
    tokens: Integers
    starts: Integers
    lengths: Integers

    def rows(self, sentences: Integers) -> Integers:
        """Sentences of equal length, (n, length)."""
        return self.tokens[self.starts[sentences, None] + np.arange(self.lengths[sentences[0]])]


def _intern(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> tuple[_Side, _Side]:
    sides = [(dict[str, int](), array("i"), array("i")) for _ in range(2)]  # ids, tokens, lengths
    for pair in track(pairs, "reading sentence pairs", None, "pairs"):
        if all(0 < len(words) <= MAX_TOKENS for words in pair):
            for words, (ids, tokens, lengths) in zip(pair, sides, strict=True):
                tokens.extend([ids.setdefault(word, len(ids)) for word in words])
                lengths.append(len(words))
    source, target = (
        _Side(list(ids), np.asarray(tokens), np.cumsum(lengths, dtype=np.int64) - lengths, np.asarray(lengths))
        for ids, tokens, lengths in sides
    )
    return source, target


def _namesakes(source: _Side, target: _Side) -> Integers:
    """For each target id the id of the same word in the source, or -1."""
    ids = {word: number for number, word in enumerate(source.words)}
    return np.array([ids.get(word, -1) for word in target.words], np.int32)


class _Block(NamedTuple):
    """n sentence pairs of one shape: no padding, and a sum over a sentence's words is a sum over an axis."""

    source: Integers  # (n, I)
    target: Integers  # (n, J)

    @property
    def cells(self) -> int:
        return self.source.size * int(self.target.shape[1])

    def keys(self) -> Integers:
        """Both ids of each cell in one number."""
        return (self.source[:, None, :].astype(np.int64) << 32 | self.target[:, :, None]).ravel()  # (n * J * I,)

    def near(self, diagonal: float) -> Floats:
        i, j = ((np.arange(length) + 0.5) / length for length in (self.source.shape[1], self.target.shape[1]))
        near: Floats = np.exp(-diagonal * np.abs(j[:, None] - i))  # (J, I)
        return near


def _blocks(source: _Side, target: _Side) -> Iterator[_Block]:
    shapes = source.lengths.astype(np.int64) << 32 | target.lengths
    order = np.argsort(shapes, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(shapes[order])) + 1) if len(order) else []:
        n = max(1, CELLS // int(source.lengths[alike[0]] * target.lengths[alike[0]]))
        for start in range(0, len(alike), n):
            yield _Block(source.rows(alike[start : start + n]), target.rows(alike[start : start + n]))


def _co_occurrences(blocks: Sequence[_Block]) -> Integers:
    """The keys of all word pairs, sorted, each once."""
    keys: Integers = np.empty(0, np.int64)
    waiting: list[Integers] = []
    cells = 0
    for block in track(blocks, "collecting word pairs", len(blocks), "blocks"):
        waiting.append(block.keys())
        cells += block.cells
        if cells > max(4 * CELLS, len(keys)):
            keys, waiting, cells = _unique(np.concatenate([keys, *waiting])), [], 0
    return _unique(np.concatenate([keys, *waiting]))


def _unique(keys: Integers) -> Integers:
    keys = np.sort(keys)  # numpy.unique takes ten times as long
    return keys[np.diff(keys, prepend=-1) > 0]


def _positions(keys: Integers, wanted: Integers) -> Integers:
    order = np.argsort(wanted)  # asked for in order, four times as fast: neighbours in memory are read together
    positions = np.empty(len(wanted), np.int32)
    positions[order] = np.searchsorted(keys, wanted[order])
    return positions
