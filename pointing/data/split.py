"""Train, dev and test that share no text: documents with a text in common always land on the same side.

Debian's packages say the same paragraph again and again (libfoo1, libfoo-dev, libfoo-doc). So documents are linked
when any text of theirs, in either language, is the same but for case, digits and punctuation. What is linked, directly
or through others, is one group; whole groups are dealt out.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

SHARE = 20  # a group may fill at most a twentieth of dev or test, so that no family of packages rules it,
PAIRS = 20  # but always as much as a long description gives, or small splits would hold short ones only


def groups(texts: Sequence[Collection[str]]) -> list[list[int]]:
    """Documents (by number) that share a text, directly or through others; texts[i] are all texts of document i."""
    parent = list(range(len(texts)))

    def root(document: int) -> int:
        while parent[document] != document:
            parent[document] = parent[parent[document]]
            document = parent[document]
        return document

    first_with: dict[str, int] = {}
    for document, its_texts in enumerate(texts):
        for text in its_texts:
            other = first_with.setdefault(_key(text), document)
            parent[root(document)] = root(other)

    members: dict[int, list[int]] = defaultdict(list)
    for document in range(len(texts)):
        members[root(document)].append(document)
    return list(members.values())


def deal(
    groups: Sequence[Sequence[int]],
    names: Sequence[str],
    pairs: Sequence[int],
    held_out: Mapping[str, int],
    seed: int,
) -> dict[str, list[int]]:
    """Documents for "train" and for each held-out split, which gets about as many pairs as asked, and no more.

    The order is a hash of seed and name, so that it is the same on every machine, and so that documents that come or
    go later move few of the others.
    """

    def rank(group: Sequence[int]) -> bytes:
        name = min(names[document] for document in group)
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    dealt: dict[str, list[int]] = {"train": [], **{split: [] for split in held_out}}
    room = dict(held_out)
    for group in sorted(groups, key=rank):
        size = sum(pairs[document] for document in group)
        for split, wanted in held_out.items():
            if size <= min(room[split], max(wanted // SHARE, PAIRS)):
                room[split] -= size
                dealt[split] += group
                break
        else:
            dealt["train"] += group
    return dealt


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", " ", re.sub(r"\d+", "0", text.casefold())).strip() or text
