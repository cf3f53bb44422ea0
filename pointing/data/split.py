"""Splits documents into train, dev and test so that no text is in two splits.

Debian's packages repeat the same paragraph many times (libfoo1, libfoo-dev, libfoo-doc). Two documents are linked if
they share a text, in either language, apart from case, digits and punctuation. Documents that are linked, directly or
through others, are one group, and a group is never divided.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

# A group may fill at most 1/GROUP_SHARE of dev or test, so that no family of packages dominates a split. But groups of
# up to GROUP_PAIRS pairs (a long description) are always allowed, else small splits would have short texts only.
GROUP_SHARE = 20
GROUP_PAIRS = 20


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
            other = first_with.setdefault(_key(text), document)
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
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

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


def _key(text: str) -> str:
    """The text without case, digits and punctuation."""
    return re.sub(r"[\W_]+", " ", re.sub(r"\d+", "0", text.casefold())).strip() or text
