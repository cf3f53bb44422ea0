"""For each target word its shortlist id, or V + the source position to copy from: the paper's z_t and l_t.

The functions work on a whole block of sentence pairs at once. All tokens of a side stand in one array, and words are
numbers that both sides share, so that no Python loop runs over words or pairs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.text.token_arrays import NOWHERE as NOWHERE
from pointing.text.vocabulary import UNK

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Policy = Literal["none", "unknown-words", "entities", "dictionary", "all-matches"]


class Side(NamedTuple):
    """One side of a block: the words of all sentences as numbers, and where each sentence begins."""

    words: Ints  # (tokens,)
    offsets: Ints  # (sentences + 1,)

    def sentence(self) -> npt.NDArray[np.int64]:
        """The number of each token's sentence, (tokens,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def first_position(source: Side, sentence: npt.NDArray[np.int64], words: Ints) -> Ints:
    """For each of `words` its first position in the source sentence whose number stands beside it, or NOWHERE."""
    if len(source.words) == 0:
        return np.full(len(words), NOWHERE, np.int32)
    size = int(max(source.words.max(), words.max(initial=0))) + 1
    keys, first = np.unique(source.sentence() * size + source.words, return_index=True)  # the first of equal keys
    wanted = sentence * size + words
    index = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    position = first[index] - source.offsets[sentence]
    return np.where(keys[index] == wanted, position, NOWHERE).astype(np.int32)


def same_word(source: Side, target: Side) -> Ints:
    """For each target word its first position in its own source sentence, or NOWHERE."""
    return first_position(source, target.sentence(), target.words)


def same_entity(source: Side, target: Side, source_tagged: Bools, target_tagged: Bools) -> Ints:
    """For each target word tagged as an entity its first position that the source tags as an entity, or NOWHERE."""
    no_entity = max(source.words.max(initial=0), target.words.max(initial=0)) + 1
    entities = Side(np.where(source_tagged, source.words, no_entity).astype(np.int32), source.offsets)
    return np.where(target_tagged, same_word(entities, target), NOWHERE).astype(np.int32)


class Choices(NamedTuple):
    """What the model learns for each target word; all (tokens,)."""

    target: Ints  # the choice to be learned: a shortlist id, or V + a source position
    words: Ints  # y: a shortlist id, V + the first position that writes the word, or UNK if no position does
    unknown: Bools  # the word is outside the shortlist
    same: Ints  # first position of the same word in the source, or NOWHERE
    copied: Ints  # first position whose copy writes the word, or NOWHERE; `same` unless copies are translated


def choose(
    policy: Policy,
    source: Side,
    target: Side,
    ids: Ints,
    V: int,
    entity: Ints | None = None,
    written: tuple[Side, Side] | None = None,
) -> Choices:
    """What is to be predicted for each target word (paper §5.2, §5.3). Of several positions the first is taken.

    `ids` (tokens,) are the target words' shortlist ids, UNK outside the shortlist. `entity` is the result of
    `same_entity`, for policy `entities`. `written` is for policy `dictionary`: both sides as numbers of the words that
    are written, where a source word may be a translation. So a pointer is taught only where copying writes the very
    target word. A word that no position writes stays UNK; `unreachable: attention` is decided in training, where l_t is
    known.
    """
    same = same_word(source, target)
    copied = same if written is None else same_word(*written)
    unknown = ids == UNK
    position = copied
    if policy == "entities":
        assert entity is not None
        position = entity
    pointed = position != NOWHERE
    if policy == "none":
        pointed = np.zeros(len(ids), bool)
    elif policy in ("unknown-words", "dictionary"):
        pointed &= unknown
    choice = np.where(pointed, V + position, ids)
    words = np.where(unknown & (copied != NOWHERE), V + copied, ids)
    return Choices(choice.astype(np.int32), words.astype(np.int32), unknown, same, copied)


def number_source_words(source: Side, ids: Ints, V: int) -> Ints:
    """What copying each source position writes: a shortlist id, or V + the first position of the same word.

    `source` holds the words that copying writes; `ids` (tokens,) are their ids in the *target* vocabulary.
    """
    first = first_position(source, source.sentence(), source.words)
    return np.where(ids == UNK, V + first, ids).astype(np.int32)
