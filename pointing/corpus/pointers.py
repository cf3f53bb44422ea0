"""For each target word: its shortlist id, or V + the source position to copy from (the paper's z_t and l_t).

Everything here works on a whole block of pairs at a time, its tokens laid end to end: no loop over words or pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.text.vocabulary import UNK

Ints = npt.NDArray[np.int32]
Policy = Literal["none", "unknown-words", "entities", "dictionary", "all-matches"]
NOWHERE = -1


class Side(NamedTuple):
    """One side of a block: the words of all its sentences as numbers, and where each sentence begins."""

    words: Ints  # (tokens,)
    offsets: Ints  # (sentences + 1,)

    def sentence(self) -> npt.NDArray[np.int64]:
        """The number of each token's sentence."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def first_position(source: Side, sentence: npt.NDArray[np.int64], words: Ints) -> Ints:
    """Where each of `words` stands first in the source sentence of the number beside it, or NOWHERE."""
    if len(source.words) == 0:
        return np.full(len(words), NOWHERE, np.int32)
    width = int(max(source.words.max(), words.max(initial=0))) + 1
    keys, first = np.unique(source.sentence() * width + source.words, return_index=True)  # first of equals
    wanted = sentence * width + words
    found = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    place = first[found] - source.offsets[sentence]
    return np.where(keys[found] == wanted, place, NOWHERE).astype(np.int32)


def same_word(source: Side, target: Side) -> Ints:
    """Where each target word stands first in its own source sentence, or NOWHERE."""
    return first_position(source, target.sentence(), target.words)


def same_entity(
    source: Side, target: Side, source_tagged: npt.NDArray[np.bool_], target_tagged: npt.NDArray[np.bool_]
) -> Ints:
    """Where each target word that is of an entity stands first in its source sentence as of an entity, or NOWHERE."""
    nothing = max(source.words.max(initial=0), target.words.max(initial=0)) + 1
    named = Side(np.where(source_tagged, source.words, nothing).astype(np.int32), source.offsets)
    return np.where(target_tagged, same_word(named, target), NOWHERE).astype(np.int32)


def a_sense(
    source: Side, target: Side, senses: Mapping[int, npt.NDArray[np.int32]], wanted: npt.NDArray[np.bool_]
) -> Ints:
    """Where the first source word stands that is a sense of the target word; asked only where `wanted`."""
    place = np.full(len(target.words), NOWHERE, np.int32)
    asked = np.flatnonzero(wanted)
    lists = [senses.get(int(word), np.empty(0, np.int32)) for word in target.words[asked]]
    count = np.array([len(one) for one in lists], dtype=np.int64)
    if count.sum() == 0:
        return place
    token = np.repeat(asked, count)  # a row for each sense of each asked token
    each = first_position(source, target.sentence()[token], np.concatenate(lists))
    reached = each != NOWHERE
    nearest = np.full(len(place), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(nearest, token[reached], each[reached])
    return np.where(nearest < np.iinfo(np.int32).max, nearest, NOWHERE).astype(np.int32)


class Choices(NamedTuple):
    target: Ints  # the choice to be learned: a shortlist id, or V + a source position
    words: Ints  # the words themselves, by the name that `names` would give them; UNK where copying writes no such word
    unknown: npt.NDArray[np.bool_]  # the word is outside the shortlist
    same: Ints  # where the same word stands in the source, or NOWHERE
    sense: Ints  # where a sense of it stands, asked for unknown words that are not there themselves


def choose(
    policy: Policy,
    source: Side,
    target: Side,
    ids: Ints,
    V: int,
    senses: Mapping[int, Ints],
    entity: Ints | None = None,
    written: tuple[Side, Side] | None = None,
) -> Choices:
    """What is to be predicted for each target word (paper §5.2, §5.3); the first place wins where there are several.

    `ids` (tokens,) are the target words' shortlist ids, UNK outside it; `entity` what `same_entity` found; `written`
    both sides in numbers of the words that copying would write, where these are not the source's own.
    A word that nothing reaches stays UNK: `unreachable: attention` is decided while training, where l_t is known.
    """
    same = same_word(source, target)
    unknown = ids == UNK
    sense = a_sense(source, target, senses, unknown & (same == NOWHERE))
    there = same != NOWHERE
    if policy == "none":
        pointed = np.zeros(len(ids), bool)
    elif policy == "all-matches":
        pointed = there
    elif policy == "entities":
        assert entity is not None
        pointed = entity != NOWHERE
    else:
        pointed = there & unknown
    place = same if entity is None else entity
    choice = np.where(pointed, V + place, ids)
    if policy == "dictionary":
        choice = np.where(unknown & (sense != NOWHERE), V + sense, choice)
    copied = same if written is None else same_word(*written)
    words = np.where(unknown & (copied != NOWHERE), V + copied, ids)
    return Choices(choice.astype(np.int32), words.astype(np.int32), unknown, same, sense)


def names(source: Side, ids: Ints, V: int) -> Ints:
    """What the source's words are called in the output: a shortlist id, or V + the first position of the same word.

    `ids` (tokens,) are the source words' ids in the *target* vocabulary.
    """
    first = first_position(source, source.sentence(), source.words)
    return np.where(ids == UNK, V + first, ids).astype(np.int32)
