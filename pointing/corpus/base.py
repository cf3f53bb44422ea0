"""The vocabularies of another run, to begin with: its words keep their order, words of the new text come after them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from pointing.config import Config
from pointing.corpus.familiarity import Familiar
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.system.progress import say
from pointing.text.vocabulary import FIRST, Vocabulary


class Base(NamedTuple):
    """Vocabularies that a corpus is prepared with, instead of making its own from nothing."""

    source: Vocabulary
    target: Vocabulary
    forms: bool  # True: the target vocabulary knows how its words are usually written
    grow: bool  # True: words of the new text are added
    fingerprint: str  # of all of this
    familiar: Familiar | None = None

    @classmethod
    def of(cls, lexicon: Lexicon, grow: bool) -> Base:
        """The vocabularies of a run."""
        forms, both = lexicon.config.text.forms, (lexicon.source, lexicon.target)
        parts = [
            [v.words, v.counts, v.placeholders, v.writings, None if v.merges is None else v.merges.pairs] for v in both
        ]
        familiar = [] if lexicon.familiar is None else [lexicon.familiar.counts]
        fingerprint = sha256(json.dumps([forms, grow, parts, *familiar]).encode()).hexdigest()
        return cls(*both, forms, grow, fingerprint, lexicon.familiar)

    def check(self, config: Config) -> None:
        """Raises an error if the settings ask for something that the vocabularies of another run cannot give."""
        has_pieces = self.source.merges is not None
        if has_pieces != config.text.uses_subwords:
            words, value = ("pieces of words", "bpe") if has_pieces else ("whole words", "null")
            raise Misuse(f"--from: the vocabularies of that run hold {words}: set text.subwords={value}")
        for side in ("source", "target"):
            if getattr(config.embeddings, side) is not None:
                reason = "with --from every word starts from the other run's embeddings"
                raise Misuse(f"embeddings.{side} does nothing, since {reason}: set it to null")

    def writings(self, of_text: Mapping[str, str]) -> dict[str, str]:
        """How target words are usually written: in the new text, but words of the base stay as the model knows them."""
        if not self.forms:
            return dict(of_text)
        return self.target.writings | {word: text for word, text in of_text.items() if word not in self.target}


def extended(base: Vocabulary, text: Vocabulary, size: int | None, key: str) -> Vocabulary:
    """All words of `base`, then the most frequent other words of `text`, as long as there is room.

    `size` is the limit that the setting `key` gives, with the end of sentence and the unknown word, as in
    `Vocabulary.build`. Words of `base` stay even if they are more. The placeholders are those of `text`.
    """
    ranks = [rank for rank, word in enumerate(text.words) if word not in base]
    room = len(ranks) if size is None else max(0, size - FIRST - len(base.words))
    if room < len(ranks):
        beside = f"beside the {len(base.words):,} of the other run"
        say(f"{key}={size} has room for {room:,} of {len(ranks):,} new words, {beside}: raise it to learn more")
    added = ranks[:room]
    return Vocabulary(
        [*base.words, *(text.words[rank] for rank in added)],
        [*base.counts, *(text.counts[rank] for rank in added)],
        text.placeholders,
    )
