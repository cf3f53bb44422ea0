"""For each step of the target its piece, or V + the source word to copy: the paper's z_t and l_t.

A word that is copied is one step, however many pieces the tokenizer makes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from pointing.errors import Misuse
from pointing.huggingface.pieces import Cut, PieceTokenizer, Source, pieces_of
from pointing.huggingface.spacing import has_space
from pointing.text.tokenizer import Tokenizer

Policy = Literal["cut", "rare", "all"]


class TargetWriter:
    """Which target words are taught as pointers: words that the source has, written in the same way, and that are

    - `cut`: cut into several pieces by the tokenizer, or have a digit. The tokenizer's vocabulary knows which words are
      frequent where the model was trained before, so nothing is counted;
    - `rare`: seen fewer than `min_count` times in the texts that `counts` (`count_words`) was made from;
    - `all`: any word with a letter or a digit.
    """

    def __init__(
        self,
        pieces: PieceTokenizer,
        V: int,
        policy: Policy = "cut",
        counts: Mapping[str, int] | None = None,
        min_count: int = 5,
    ) -> None:
        if policy not in get_args(Policy):
            raise Misuse(f"there is no policy {policy!r} for pointers, only {', '.join(get_args(Policy))}")
        if policy == "rare" and counts is None:
            raise Misuse("the policy 'rare' needs counts of the target's words: give counts=count_words(target_lines)")
        self.pieces, self.V, self.policy = pieces, V, policy
        self.counts, self.min_count = counts or {}, min_count

    def __call__(self, source: Source, line: str) -> list[int]:
        """The labels of a target line, as the tokenizer ends it. Of several places of a word the first is taken."""
        cut = self.pieces.target(line)
        place = {word: position for position, word in reversed(list(enumerate(source.words)))}
        words = self.pieces.words(line)
        labels, done = [], 0
        for start, end in zip(words.starts, words.ends, strict=True):
            word = line[start:end]
            if word not in place or not self._is_pointer(cut, start, end):
                continue
            first, last = pieces_of(cut, start, end)
            while first > done and cut.spans[first - 1] == (start, start):
                first -= 1  # the space before the word, where it is a piece of its own
            labels += [*cut.ids[done:first], *(self._space(line[:start], word) or []), self.V + place[word]]
            done = last
        return [*labels, *cut.ids[done:]]

    def _is_pointer(self, cut: Cut, start: int, end: int) -> bool:
        word, before = cut.text[start:end], cut.text[:start]
        if not any(letter.isalnum() for letter in word):
            return False
        if self._space(before, word) is None:
            return False
        first, last = pieces_of(cut, start, end)
        spans = cut.spans[first:last]
        if not spans or any(span[0] < start or span[1] > end for span in spans):
            return False  # cut off, or a piece has letters of a neighbour
        if self.policy == "cut":
            return len({begin for begin, _ in spans}) > 1 or any(letter.isdigit() for letter in word)
        return self.policy == "all" or self.counts.get(word, 0) < self.min_count

    def _space(self, before: str, word: str) -> list[int] | None:
        """The pieces between the text so far and a pointer; None if the space that is there cannot be written so."""
        is_spaced = bool(before.strip()) and before[-1].isspace()
        if is_spaced == has_space(before.rstrip(), word):
            return []
        return [self.pieces.space] if is_spaced and self.pieces.space is not None else None


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs in target lines, for the policy `rare`."""
    words = Tokenizer("regex", unicode="keep").words
    return Counter(word for line in lines for word in words(line))
