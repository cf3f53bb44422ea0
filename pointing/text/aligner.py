"""Word alignment (IBM Model 1 in both directions): which words of a parallel corpus translate each other.

The paper does not say how its dictionary was made (§5.3). `induce` uses the priors of fast_align (Dyer et al. 2013),
and keeps the word pairs on which both directions agree.

A *cell* is one source token and one target token of the same sentence pair. EM computes for every cell the probability
that the one token translates the other, and sums these over the corpus for each pair of words.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointing.errors import Misuse
from pointing.system.progress import progress, track
from pointing.text.dictionary import Dictionary, is_word
from pointing.text.token_arrays import NOWHERE

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

MIN_LINK = 0.2  # probability in both directions together that a link has to reach
MAX_TOKENS = 200  # a side: longer sentence pairs are skipped, they say little about words and their cost is quadratic
CELLS_AT_ONCE = 1 << 22  # cells in memory at a time


def induce(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    *,
    iterations: int = 5,
    min_association: float = 0.1,
    min_count: int = 1,
) -> Dictionary:
    """A dictionary of the associated words of a parallel corpus (`associated`)."""
    if iterations < 1 or min_count < 1 or not 0 <= min_association <= 1:
        raise Misuse("a dictionary needs iterations and min_count of at least 1, and min_association from 0 to 1")
    return associated(estimate(pairs, iterations=iterations), min_association=min_association, min_count=min_count)


def associated(estimates: Estimate, *, min_association: float = 0.1, min_count: int = 1) -> Dictionary:
    """The associated word pairs of a parallel corpus, each with the probability that copying should write the target.

    The association of a pair is links / sqrt(count of the source word * count of the target word): near 1 only for two
    words that seldom occur without each other. Words that occur fewer than min_count times on their side take part in
    the alignment, but not in the dictionary. By default all words do: pointers are for rare words.

    The probability of a translation is (links - 1) / count of the source word. One link is taken off as in
    leave-one-out estimation: a pair that is seen once says nothing about other sentences. A pair of equal words stands
    for the copy, which needs no evidence: its probability is links / count.
    """
    source_count, target_count = estimates.source_count[estimates.source], estimates.target_count[estimates.target]
    association = estimates.links / np.sqrt(source_count * target_count)  # (P,)
    frequent = np.minimum(source_count, target_count) >= min_count
    candidates = np.flatnonzero(frequent & (association >= max(min_association, 1e-4)))
    candidates = candidates[np.argsort(-association[candidates], kind="stable")]
    columns = estimates.source, estimates.target, estimates.links, source_count
    entries = [
        (source, target, round(max(0.0, links if source == target else links - 1) / count, 4))
        for s, t, links, count in zip(*(column[candidates].tolist() for column in columns), strict=True)
        if is_word(source := estimates.source_words[s]) and is_word(target := estimates.target_words[t])
    ]
    return Dictionary(sorted(entries, key=lambda entry: -entry[2]))  # of equal probabilities the more associated first


class Prior(NamedTuple):
    """Prior beliefs about links. `diagonal` and `alpha` have fast_align's meaning and values."""

    diagonal: float = 4.0  # a cell has the prior weight exp(-diagonal * its distance from the diagonal)
    null: float = 0.2  # probability that a word translates no word; it is then drawn from a uniform distribution
    alpha: float = 0.01  # Dirichlet prior on p(word | given): the smaller it is, the fewer translations a word has
    same: float = 10.0  # factor on the first p(word | given) of equal words: names, numbers, loan words


DEFAULT = Prior()
MODEL_1 = Prior(diagonal=0.0, null=0.0, alpha=0.0, same=1.0)  # IBM Model 1 with nothing added


class Estimate(NamedTuple):
    """The result of EM for the P different word pairs that occur in the same sentence pair."""

    source_words: list[str]
    target_words: list[str]
    source_count: Integers  # (source words,) occurrences of each word
    target_count: Integers  # (target words,)
    source: Integers  # (P,) ids, ascending
    target: Integers  # (P,) ids, ascending for each source id
    forward: Floats  # (P,) p(target | source)
    backward: Floats  # (P,) p(source | target)
    links: Floats  # (P,) expected number of links in the corpus
    linked: Integers  # (tokens,) for each target token of all pairs its source position, or NOWHERE


def estimate(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]], *, iterations: int = 5, prior: Prior = DEFAULT
) -> Estimate:
    """EM over all cells of all sentence pairs in both directions, then one pass that counts links.

    The probability of a link is the product of both directions' posteriors (agreement, Liang et al. 2006). In one
    direction alone, rare words attract target words that no other word explains; in both directions they seldom do.
    """
    sources, targets, linked = _intern(pairs)
    blocks = list(_blocks(sources, targets))
    keys = _co_occurrences(blocks)
    source, target = (keys >> 32).astype(np.int32), keys.astype(np.int32)  # the lower half
    first = np.where(_namesakes(sources, targets)[target] == source, prior.same, 1.0)
    forward = _Direction(prior, first, given=source, words=len(targets.words), over=2)
    backward = _Direction(prior, first, given=target, words=len(sources.words), over=1)
    links = np.zeros(len(keys))
    work = sum(block.cells for block in blocks) * (iterations + 2)
    with TemporaryFile() as index, progress("inducing a dictionary", work, "word pairs") as bar:
        for block in blocks:  # the index is kept on disk: 4 bytes a cell, and a large corpus has billions of cells
            _positions(keys, block.keys()).tofile(index)
            bar.advance(block.cells)
        for iterations_left in range(iterations, -1, -1):
            index.seek(0)
            for block in blocks:
                pair = np.fromfile(index, np.int32, block.cells).astype(np.intp)  # (n * J * I,)
                near = block.near(prior.diagonal)  # (J, I)
                by_forward, by_backward = forward.posterior(pair, near), backward.posterior(pair, near)  # (n, J, I)
                if iterations_left:
                    np.add.at(forward.counts, pair, by_forward.ravel())
                    np.add.at(backward.counts, pair, by_backward.ravel())
                else:
                    both = by_forward * by_backward
                    np.add.at(links, pair, both.ravel())
                    best = np.where(both.max(2) >= MIN_LINK, both.argmax(2), NOWHERE)  # (n, J)
                    linked[targets.origin[block.sentences, None] + np.arange(best.shape[1])] = best
                bar.advance(block.cells)
            if iterations_left:
                forward.maximise()
                backward.maximise()
    counts = np.bincount(sources.tokens), np.bincount(targets.tokens)
    return Estimate(sources.words, targets.words, *counts, source, target, forward.p, backward.p, links, linked)


class _Direction:
    """p(word | given) for all P pairs, and their expected counts. `over` is the axis of the given words in a block."""

    def __init__(self, prior: Prior, first: Floats, *, given: Integers, words: int, over: int) -> None:
        self.given, self.over, self.alpha = given, over, prior.alpha
        self.p, self.counts = first / max(1, words), np.zeros(len(first))
        self.null = prior.null / (1 - prior.null) / max(1, words)

    def posterior(self, pair: Integers, near: Floats) -> Floats:
        """E step: for each cell the probability that its word is the translation of its given word, (n, J, I)."""
        p = self.p[pair].reshape(-1, *near.shape) * near  # (n, J, I)
        p /= p.sum(self.over, keepdims=True) + self.null * near.sum(self.over - 1, keepdims=True)
        return p

    def maximise(self) -> None:
        """M step. With a Dirichlet prior by variational Bayes, which gives small counts nearly no probability."""
        if self.alpha:
            from torch import digamma, from_numpy

            counts = self.counts + self.alpha
            totals = np.bincount(self.given, counts)
            self.p = np.exp(digamma(from_numpy(counts)).numpy() - digamma(from_numpy(totals)).numpy()[self.given])
        else:
            self.p = self.counts / np.bincount(self.given, self.counts)[self.given]
        self.counts[:] = 0


class _Side(NamedTuple):
    """One language of the corpus as ids: the tokens of all sentences in one array, and where each sentence lies."""

    words: list[str]
    tokens: Integers
    starts: Integers
    lengths: Integers
    origin: Integers  # where each sentence begins among the tokens of all pairs, also of those that were left out

    def rows(self, sentences: Integers) -> Integers:
        """The tokens of n sentences of equal length, (n, length)."""
        return self.tokens[self.starts[sentences, None] + np.arange(self.lengths[sentences[0]])]


def _intern(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> tuple[_Side, _Side, Integers]:
    """Both languages as ids, without the sentence pairs that are empty or too long; and all target tokens, NOWHERE."""
    sides = [(dict[str, int](), array("i"), array("i"), array("q")) for _ in range(2)]  # ids, tokens, lengths, origin
    read = [0, 0]  # tokens of both sides
    for pair in track(pairs, "reading sentence pairs", None, "pairs"):
        if all(0 < len(words) <= MAX_TOKENS for words in pair):
            for words, (ids, tokens, lengths, origin), before in zip(pair, sides, read, strict=True):
                tokens.extend([ids.setdefault(word, len(ids)) for word in words])
                lengths.append(len(words))
                origin.append(before)
        read = [before + len(words) for before, words in zip(read, pair, strict=True)]
    source, target = (
        _Side(
            list(ids),
            np.asarray(tokens),
            np.cumsum(lengths, dtype=np.int64) - lengths,
            np.asarray(lengths),
            np.asarray(origin),
        )
        for ids, tokens, lengths, origin in sides
    )
    return source, target, np.full(read[1], NOWHERE, np.int16)


def _namesakes(source: _Side, target: _Side) -> Integers:
    """For each target id the source id of the same word, or -1."""
    ids = {word: number for number, word in enumerate(source.words)}
    return np.array([ids.get(word, -1) for word in target.words], np.int32)


class _Block(NamedTuple):
    """n sentence pairs with I source and J target tokens each, so that no padding is needed."""

    source: Integers  # (n, I)
    target: Integers  # (n, J)
    sentences: Integers  # (n,) their numbers

    @property
    def cells(self) -> int:
        return self.source.size * int(self.target.shape[1])

    def keys(self) -> Integers:
        """Both ids of each cell packed into one number."""
        return (self.source[:, None, :].astype(np.int64) << 32 | self.target[:, :, None]).ravel()  # (n * J * I,)

    def near(self, diagonal: float) -> Floats:
        """The prior weight of each cell by its distance from the sentence pair's diagonal."""
        i, j = ((np.arange(length) + 0.5) / length for length in (self.source.shape[1], self.target.shape[1]))
        near: Floats = np.exp(-diagonal * np.abs(j[:, None] - i))  # (J, I)
        return near


def _blocks(source: _Side, target: _Side) -> Iterator[_Block]:
    """All sentence pairs, grouped by shape."""
    shapes = source.lengths.astype(np.int64) << 32 | target.lengths
    order = np.argsort(shapes, kind="stable")
    for same_shape in np.split(order, np.flatnonzero(np.diff(shapes[order])) + 1) if len(order) else []:
        n = max(1, CELLS_AT_ONCE // int(source.lengths[same_shape[0]] * target.lengths[same_shape[0]]))
        for start in range(0, len(same_shape), n):
            sentences = same_shape[start : start + n]
            yield _Block(source.rows(sentences), target.rows(sentences), sentences)


def _co_occurrences(blocks: Sequence[_Block]) -> Integers:
    """The keys of all different word pairs, ascending."""
    keys: Integers = np.empty(0, np.int64)
    waiting: list[Integers] = []
    cells = 0
    for block in track(blocks, "collecting word pairs", len(blocks), "blocks"):
        waiting.append(block.keys())
        cells += block.cells
        if cells > max(4 * CELLS_AT_ONCE, len(keys)):
            keys, waiting, cells = _unique(np.concatenate([keys, *waiting])), [], 0
    return _unique(np.concatenate([keys, *waiting]))


def _unique(keys: Integers) -> Integers:
    keys = np.sort(keys)  # numpy.unique takes ten times as long as this
    return keys[np.diff(keys, prepend=-1) > 0]


def _positions(keys: Integers, wanted: Integers) -> Integers:
    """Where each wanted key stands among `keys`."""
    order = np.argsort(wanted)  # searching in ascending order is four times as fast: it reads memory in order
    positions = np.empty(len(wanted), np.int32)
    positions[order] = np.searchsorted(keys, wanted[order])
    return positions
