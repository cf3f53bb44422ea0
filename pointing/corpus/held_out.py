"""Splits dev and test off from the training data, where no files of their own are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from pointing.errors import Misuse

Hashes = npt.NDArray[np.uint64]
Parts = npt.NDArray[np.int8]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
TRAIN, LEFT_OUT = 0, -1  # the held-out splits are numbered from 1
SMALL_GROUP, LARGEST_GROUP = 5, 2
"""A group of pairs that stay together may fill a fifth of a held-out split; half of it, if it is hardly filled else."""


def usual_size(pairs: int) -> int:
    """How many of so many pairs are held out for each of dev and test: a twentieth, within limits."""
    return min(2000, max(pairs // 20, min(100, pairs // 10)))


def text_key(text: str) -> str:
    """The text without case, digits and punctuation."""
    return re.sub(r"[\W_]+", " ", re.sub(r"\d+", "0", text.casefold())).strip() or text


def hashes(texts: Iterable[str], seed: int) -> Hashes:
    """A number for each text, the same on every machine."""
    start = blake2b(f"{seed} ".encode(), digest_size=8)

    def number(text: str) -> int:
        hashed = start.copy()
        hashed.update(text.encode("utf-8", "surrogatepass"))
        return int.from_bytes(hashed.digest(), "big")

    return np.fromiter(map(number, texts), np.uint64)


def hold_out(keys: Hashes, sources: Hashes, sizes: Mapping[str, int | None]) -> Parts:
    """The part of each pair: TRAIN, or the number of one of the splits in `sizes`, from 1; or LEFT_OUT.

    Pairs with equal `keys` stay together; the order of the keys, which are hashes, decides where they go. A held-out
    pair whose source is in the training part too is left out.
    """
    wanted = {name: usual_size(len(keys)) if size is None else size for name, size in sizes.items()}
    if sum(wanted.values()) >= len(keys) or not all(wanted.values()):
        needed = " and ".join(f"{size:,} for {name}" if size else name for name, size in wanted.items())
        raise Misuse(f"{len(keys):,} pairs are too few to hold out {needed}: give more, or dev files of their own")
    groups, group_of_pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
    part_of_group = np.full(len(groups), TRAIN, np.int8)
    for part, (name, size) in enumerate(wanted.items(), 1):
        chosen = _groups_for(size, counts, part_of_group == TRAIN)
        if chosen is None:
            raise Misuse(
                f"too many pairs belong together to hold out {size:,} for {name}: there are {len(groups):,} different "
                "keys or sources; take another key column or none, or give dev files of their own"
            )
        part_of_group[chosen] = part
    parts: Parts = part_of_group[group_of_pair]
    parts = np.where((parts != TRAIN) & np.isin(sources, sources[parts == TRAIN]), LEFT_OUT, parts).astype(np.int8)
    for part, name in enumerate(wanted, 1):
        if not (parts == part).any():
            raise Misuse(
                f"nothing is left to hold out for {name}: all its sources are in the training part too, with other "
                "keys; take another key column or none, or give dev files of their own"
            )
    return parts


def _groups_for(size: int, counts: Longs, is_free: Bools) -> list[int] | None:
    """Free groups that fill `size` pairs, or at least half of that; None if it cannot be filled so far."""
    chosen: list[int] = []
    room, small = size, max(1, size // SMALL_GROUP)
    for least, largest in ((1, small), (small + 1, size // LARGEST_GROUP)):
        for group in np.flatnonzero(is_free & (least <= counts) & (counts <= largest)).tolist():
            if counts[group] <= room:
                chosen.append(group)
                room -= int(counts[group])
            if not room:
                break
        if room <= size // 2:
            return chosen
    return None
