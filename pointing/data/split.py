"""Splits documents or packages into train, dev and test so that no text is in two splits.

Debian's packages repeat the same paragraph many times (libfoo1, libfoo-dev, libfoo-doc). Two documents are linked if
they share a text, in either language, apart from case, digits and punctuation. Documents that are linked, directly or
through others, are one group, and a group is never divided.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from pointing.corpus.held_out import text_key
from pointing.data.filters import Pair
from pointing.errors import Misuse

# A group may fill at most 1/GROUP_SHARE of dev or test, so that no family of packages dominates a split. But groups of
# up to GROUP_PAIRS pairs (a long description) are always allowed, else small splits would have short texts only.
GROUP_SHARE = 20
GROUP_PAIRS = 20
# Whole packages: dev and test take at most 1/PACKAGE_SHARE of their pairs from one package, and nothing from a package
# that has more than PACKAGE_WASTE times as many, since what they do not take of a package is lost for train too.
PACKAGE_SHARE = 16
PACKAGE_WASTE = 6


def groups(texts: Sequence[Collection[str]]) -> list[list[int]]:
    """Groups of documents (by number) that share a text, directly or through others; texts[i] belong to document i."""
    parent = list(range(len(texts)))

    def root(document: int) -> int:
        while parent[document] != document:
            parent[document] = parent[parent[document]]
            document = parent[document]
        return document

    first_with: dict[str, int] = {}
    for document, document_texts in enumerate(texts):
        for text in document_texts:
            other = first_with.setdefault(text_key(text), document)
            parent[root(document)] = root(other)

    members: dict[int, list[int]] = defaultdict(list)
    for document in range(len(texts)):
        members[root(document)].append(document)
    return list(members.values())


def deal(
    groups: Sequence[Sequence[int]], names: Sequence[str], pairs: Sequence[int], held_out: Mapping[str, int], seed: int
) -> dict[str, list[int]]:
    """The documents of "train" and of each held-out split, which gets about as many pairs as `held_out` says, not more.

    Groups are ordered by a hash of seed and name. So the order is the same on every machine, and documents that are
    added or removed later move few others to another split.
    """

    def rank(group: Sequence[int]) -> bytes:
        name = min(names[document] for document in group)
        return _rank(f"{seed} {name}")

    dealt: dict[str, list[int]] = {"train": [], **{split: [] for split in held_out}}
    room = dict(held_out)
    for group in sorted(groups, key=rank):
        size = sum(pairs[document] for document in group)
        for split, size_of_split in held_out.items():
            if size <= min(room[split], max(size_of_split // GROUP_SHARE, GROUP_PAIRS)):
                room[split] -= size
                dealt[split] += group
                break
        else:
            dealt["train"] += group
    return dealt


def hold_out(
    pairs: Mapping[str, Sequence[Pair]],
    held_out: Mapping[str, int],
    seed: int,
    left_out: Counter[str],
    never: Collection[str] = (),
) -> dict[str, list[tuple[str, Pair]]]:
    """(package, pair) of "train" and of each held-out split: a package is in one split only.

    Held-out splits take only pairs of whose two texts no other package has one, apart from case, digits and
    punctuation. What they do not take of their packages is counted in `left_out`. `never` are packages for train only.
    """
    owners = [Counter(key for of_package in pairs.values() for key in _keys(of_package, side)) for side in (0, 1)]

    def is_own(pair: Pair) -> bool:
        return all(of_side[text_key(text)] == 1 for of_side, text in zip(owners, pair, strict=True))

    splits: dict[str, list[tuple[str, Pair]]] = {"train": [], **{split: [] for split in held_out}}
    most = {split: max(size // PACKAGE_SHARE, GROUP_PAIRS) for split, size in held_out.items()}
    room = dict(held_out)
    for package in sorted(pairs, key=lambda name: _rank(f"{seed} {name}")):
        own = [] if package in never else [pair for pair in pairs[package] if is_own(pair)]
        for split in held_out:
            few_enough = len(pairs[package]) <= PACKAGE_WASTE * most[split]
            if room[split] and few_enough and min(most[split], room[split]) / 2 <= len(own):
                taken = sample(own, min(most[split], room[split]), f"{seed} {package}")
                splits[split] += [(package, pair) for pair in taken]
                room[split] -= len(taken)
                left_out["pairs of held-out packages that other packages have too"] += len(pairs[package]) - len(own)
                left_out[f"pairs of held-out packages above {most[split]}"] += len(own) - len(taken)
                break
        else:
            splits["train"] += [(package, pair) for pair in pairs[package]]
    for split, missing in room.items():
        if missing > held_out[split] / 2:
            raise Misuse(
                f"there are too few small packages for {held_out[split]:,} pairs in {split}: "
                "ask for fewer pairs in dev and test, or name more packages"
            )
    return {split: sorted(taken, key=lambda item: item[0]) for split, taken in splits.items()}


def sample(pairs: Sequence[Pair], size: int, seed: str) -> list[Pair]:
    """So many of the pairs, in their order; the same on every machine."""
    chosen = set(sorted(pairs, key=lambda pair: _rank(f"{seed} {pair[0]} {pair[1]}"))[:size])
    return [pair for pair in pairs if pair in chosen]


def _keys(pairs: Sequence[Pair], side: int) -> set[str]:
    return {text_key(pair[side]) for pair in pairs}


def _rank(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
