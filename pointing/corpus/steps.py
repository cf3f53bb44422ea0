"""What the decoder is to write, step by step: a step for each token, or for each piece of a word that is not copied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pointing.corpus.lexicon import Lexicon
from pointing.corpus.pointers import NOWHERE, Bools, Choices, Ints
from pointing.text.subwords import split_into_pieces
from pointing.text.token_arrays import Longs, TokenArrays, running_sums, sums_of_groups


class Steps(NamedTuple):
    """Without the ends of sentences; all but the lengths are (steps,)."""

    target: Ints  # the choice to be learned
    words: Ints  # y, the words or pieces themselves, named as in source_words
    lengths: Ints  # (lines,) the steps of each one
    token: Longs  # the target token that each step writes, or is a piece of
    goes_on: Bools  # True for a further piece of a word

    def of_tokens(self, values: Ints, of_pieces: int) -> Ints:
        """A value of each token for its steps; `of_pieces` for further pieces."""
        return np.where(self.goes_on, of_pieces, values[self.token]).astype(np.int32)


def one_step_a_token(choices: Choices, counts: Ints) -> Steps:
    token = np.arange(len(choices.target))
    return Steps(choices.target, choices.words, counts, token, np.zeros(len(token), bool))


def steps_of_pieces(lexicon: Lexicon, choices: Choices, target: TokenArrays) -> Steps:
    """Each word that is pointed at in one step, and all others in as many as they have pieces."""
    assert lexicon.target.merges is not None
    pieces, token = split_into_pieces(target, lexicon.target.merges)
    ids = lexicon.target.ids(pieces.words)[pieces.ids]
    goes_on = np.append(False, token[1:] == token[:-1])[: len(token)]
    pointed = (choices.target >= len(lexicon.target))[token]
    steps = ~(pointed & goes_on)
    return Steps(
        np.where(pointed, choices.target[token], ids)[steps],
        np.where(pointed, choices.words[token], ids)[steps],
        sums_of_groups(steps, pieces.counts).astype(np.int32),
        token[steps],
        goes_on[steps],
    )


def first_pieces(linked: Ints, source: TokenArrays, target: TokenArrays, pieces: TokenArrays, token: Longs) -> Ints:
    """The position of the first piece of the source token that is linked to each target token, or NOWHERE.

    `linked` has the position of that source token; the source is read in `pieces`, each of which is part of a `token`.
    """
    before_line = np.repeat(running_sums(pieces.counts)[:-1], source.counts)
    first = np.searchsorted(token, np.arange(len(source.ids))) - before_line  # of each source token
    if not len(first):
        return linked
    before = np.repeat(running_sums(source.counts)[:-1], target.counts)
    return np.where(linked == NOWHERE, NOWHERE, first[before + np.maximum(linked, 0)]).astype(np.int32)
