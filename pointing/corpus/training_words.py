"""How often each target word stands in the training text, as `pointing evaluate` asks: counted once, by `prepare`.

All target lines count, also those of pairs that are left out of the corpus; words are whole, and in the form that the
tokenizer gives them. Runs keep the file; exported runs do not, for it has every word of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path

import numpy as np

from pointing.corpus.encoding import Pairs
from pointing.corpus.lexicon import Tokenization
from pointing.corpus.sources import Lines
from pointing.errors import Misuse
from pointing.system.border import read_text_file
from pointing.system.files import write_text
from pointing.text import entities
from pointing.text.entities import Tagged
from pointing.text.protected import is_protected, protected_text
from pointing.text.tokenizer import Tokenizer

TRAINING_WORDS = "training-words.tsv"
LONGEST_COUNT = 12  # digits


def words_of_line(text: str, tokenizer: Tokenizer) -> list[str]:
    """The normalised words of a line, protected spans by their text."""
    words = tokenizer.words(text)
    return words if tokenizer.protector is None else [_shown(word, tokenizer) for word in words]


def _shown(word: str, tokenizer: Tokenizer) -> str:
    return tokenizer.normalise(protected_text(word)) if is_protected(word) else word


def words_of_lines(
    texts: Iterable[str], tokenizer: Tokenizer, tags: Iterable[Tagged] | None = None
) -> Iterator[list[str]]:
    """The normalised words of each line.

    A line that has tags is split as its tags are, because models with entities learn to write these words. Any other
    line is tokenised.
    """
    for text, tagged in zip(texts, chain(tags or (), repeat(None)), strict=False):  # there may be fewer tags than texts
        tokens = None if tagged is None else entities.tokens_as_tagged(text, tagged, tokenizer.normalise)
        yield words_of_line(text, tokenizer) if tokens is None else tokens.words


def count_words(lines: Iterable[bytes], tokenizer: Tokenizer, tags: Iterable[Tagged] | None = None) -> Counter[str]:
    """The words of lines as they are in a file."""
    texts = (line.decode("utf-8", "replace") for line in lines)
    return Counter(chain.from_iterable(words_of_lines(texts, tokenizer, tags)))


def count_target_words(lines: Lines, pairs: Pairs, tokenization: Tokenization) -> Counter[str]:
    """What `count_words` gives for the target lines, from the tokens that `tokenize_pairs` has made of them."""
    tokenizer = tokenization.target
    if tokenization.config.pointers.uses_entities:  # their tokens may be placeholders
        return count_words(lines.target, tokenizer, None if lines.tags is None else [tags for _, tags in lines.tags])
    target = pairs.target if pairs.whole_target is None else pairs.whole_target
    kept = set(pairs.rows)
    counts = count_words((line for row, line in enumerate(lines.target) if row not in kept), tokenizer)
    for word, count in zip(target.words, np.bincount(target.ids, minlength=len(target.words)).tolist(), strict=True):
        if count:
            counts[_shown(word, tokenizer)] += count
    return counts


def save_counts(counts: Mapping[str, int], path: Path) -> None:
    """Writes lines of a count, a tab and a word, the most frequent first; a word may have tabs in it."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    write_text(path, "".join(f"{count}\t{word}\n" for word, count in ranked))


def load_counts(path: Path) -> dict[str, int]:
    """What `save_counts` wrote."""
    whole = read_text_file(path, "counted words")
    counts: dict[str, int] = {}
    for line, text in enumerate(whole.removesuffix("\n").split("\n") if whole else [], 1):
        count, tab, word = text.partition("\t")
        is_count = count.isascii() and count.isdecimal() and len(count) <= LONGEST_COUNT
        if not tab or not word or not is_count or word in counts:
            raise Misuse("not a count, a tab and a new word", path, line)
        counts[word] = int(count)
    return counts


def merge_counts(paths: Iterable[Path], path: Path) -> None:
    """Writes the sums of several files' counts."""
    sums: Counter[str] = Counter()
    for each in paths:
        sums.update(load_counts(each))
    save_counts(sums, path)
