"""All that turns text into ids and ids into text: tokenizers, vocabularies, merges, dictionary, pointer policy.

A prepared corpus and a run each keep one in their folder. `Tokenization` is the part of it that the settings alone
decide; `Lexicon` adds what was learned from the training text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pointing.config import Config, Text
from pointing.corpus.familiarity import Familiar
from pointing.errors import Misuse
from pointing.system.border import check_regular
from pointing.text import entities
from pointing.text.dictionary import Dictionary, Senses
from pointing.text.entities import SpacyTagger, Tagged
from pointing.text.protected import PRESETS, Protector
from pointing.text.tokenizer import Tokenizer, Tokens
from pointing.text.vocabulary import Vocabulary

DICTIONARY, FAMILIAR = "dictionary.tsv", "familiar.tsv"
VOCABULARIES = ("source.vocabulary", "target.vocabulary")
# Files of a lexicon; some may be missing.
LEXICON = (*VOCABULARIES, "source.merges", "target.merges", DICTIONARY, FAMILIAR)


def make_tokenizer(text: Text, language: str) -> Tokenizer:
    protector = make_protector(text)
    return Tokenizer(
        text.tokenizer,
        language,
        lowercase=text.lowercase,
        digits=text.digits,
        unicode=text.unicode,
        protector=protector,
    )


def make_protector(text: Text) -> Protector | None:
    """What finds the protected spans of a line, if there are any."""
    if not text.protects:
        return None
    kinds = PRESETS[text.protect] if isinstance(text.protect, str) else text.protect
    return Protector(kinds, text.protect_patterns)


@dataclass(frozen=True)
class Tokenization:
    """How the settings cut lines into tokens, and how they know which tokens are names of entities."""

    config: Config

    @cached_property
    def source(self) -> Tokenizer:
        return make_tokenizer(self.config.text, self.config.data.languages[0])

    @cached_property
    def target(self) -> Tokenizer:
        return make_tokenizer(self.config.text, self.config.data.languages[1])

    @property
    def both(self) -> tuple[Tokenizer, Tokenizer]:
        return self.source, self.target

    @property
    def counts_copies(self) -> bool:
        """True if the vocabularies, or what the encoder reads, depend on which words are copied."""
        return self.config.vocabulary.copied_min_count is not None or self.config.pointers.familiarity

    @cached_property
    def tagger(self) -> SpacyTagger | None:
        pipeline = self.config.pointers.tagger
        return None if pipeline is None else SpacyTagger(pipeline)

    def tagged(self, line: str, tags: Tagged | None, tokenizer: Tokenizer) -> tuple[Tokens, list[str]] | None:
        """A line's tokens and their entity tags; None if the tags are not of this line, or there is no tagger.

        Tags that come with the data also say where tokens end. Without them the tagger marks our own tokens.
        """
        if tags is not None:
            tokens = entities.tokens_as_tagged(line, tags, tokenizer.normalise)
            return None if tokens is None else (tokens, tags.tags)
        if self.tagger is None:
            return None
        tokens = tokenizer(line)
        return tokens, self.tagger(line, tokens)

    def read_dictionary(self, path: str | Path) -> Dictionary:
        """A dictionary's words in the form that the text's words have."""
        return Dictionary.load(path).normalized(self.source.normalise, self.target.normalise)


@dataclass(frozen=True)
class Lexicon:
    """A tokenization with the vocabularies, the dictionary and the familiar words of one training text."""

    config: Config
    source: Vocabulary
    target: Vocabulary
    dictionary: Dictionary | None = None
    familiar: Familiar | None = None  # with pointers.familiarity

    @cached_property
    def tokenization(self) -> Tokenization:
        return Tokenization(self.config)

    @cached_property
    def senses(self) -> Senses | None:
        """What copied words are written as, if the dictionary translates them."""
        if self.dictionary is None or not self.config.pointers.translates:
            return None
        return Senses(self.dictionary, self.target)

    def translations(self, words: Sequence[str]) -> list[str | None]:
        """What copying each word writes instead of the word itself; None where it is written as it is."""
        senses = self.senses
        return [None] * len(words) if senses is None else [senses[word] for word in words]

    def with_dictionary(self, path: str | Path) -> Lexicon:
        """The same, but what is copied is written as this dictionary translates it."""
        if self.config.text.uses_subwords or self.config.pointers.uses_entities:
            copied = "pieces of words" if self.config.text.uses_subwords else "entities"
            raise Misuse(f"a dictionary is of single words, and this run copies {copied}", path)
        words = self.tokenization.read_dictionary(path)
        pointers = self.config.pointers.model_copy(update={"policy": "dictionary", "dictionary": Path(path)})
        return replace(self, config=self.config.model_copy(update={"pointers": pointers}), dictionary=words)

    def save(self, folder: Path) -> None:
        for name, vocabulary in zip(VOCABULARIES, (self.source, self.target), strict=True):
            vocabulary.save(folder / name)
        if self.dictionary is not None:
            self.dictionary.save(folder / DICTIONARY)
        if self.familiar is not None:
            self.familiar.save(folder / FAMILIAR)

    @classmethod
    def load(cls, folder: Path, config: Config, unlisted_placeholders: int = 0) -> Lexicon:
        """What `save` wrote. Older vocabulary files do not list the placeholders of entities: the caller knows them."""
        source, target = (Vocabulary.load(folder / name, unlisted_placeholders) for name in VOCABULARIES)
        for side, vocabulary in (("source", source), ("target", target)):
            if config.text.uses_subwords and vocabulary.merges is None:
                raise Misuse("these merges of subwords cannot be read: the file is missing", folder / f"{side}.merges")
        path = folder / DICTIONARY
        if path.exists():
            check_regular(path)
        familiar = Familiar.load(folder / FAMILIAR) if config.pointers.familiarity else None
        return cls(config, source, target, Dictionary.load(path) if path.exists() else None, familiar)
