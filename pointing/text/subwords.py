"""Words → pieces by byte-pair merges (Sennrich et al. 2016): the other way to write rare words.

A piece ends with a mark if its word goes on, as subword-nmt writes it: `nois@@ y`. The space is part of the mark. No
word has a space in it, so a text may contain `@@` like any other characters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from pointing.errors import Misuse, missing_extra
from pointing.system.border import read_text_file
from pointing.system.files import write_text
from pointing.text.forms import JOINED
from pointing.text.protected import is_protected
from pointing.text.token_arrays import (
    Longs,
    TokenArrays,
    Writing,
    ranges,
    running_sums,
    sums_within_groups,
    unique_numbers,
)
from pointing.text.tokenizer import Memory

MARK = "@@ "
LONGEST_SPLIT = 100  # characters; longer words (addresses, encoded data) stay whole, and are in no vocabulary
FORMAT = "pointing-merges-1"
FIRST_LETTER = 0x20000  # code point of the first letter that stands for a symbol while merges are learned
REPEATS = 1000  # copies of a word in one text for the trainer


def ends_word(piece: str) -> bool:
    return not piece.endswith(MARK)


def without_mark(piece: str) -> str:
    """The piece's own characters."""
    return piece.removesuffix(MARK)


class Merges:
    """Splits words into pieces: from single characters on, the neighbours that were learned earliest are merged."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        """`pairs` of pieces in the order in which they were learned; the left piece never ends a word."""
        self.pairs = list(pairs)
        self.merged = [without_mark(left) + right for left, right in self.pairs]
        self._rank = {pair: rank for rank, pair in enumerate(self.pairs)}
        self._memory = Memory(self._split)

    def __call__(self, word: str) -> list[str]:
        return self._memory[word]

    def __reduce__(self) -> tuple[type[Merges], tuple[list[tuple[str, str]]]]:
        return Merges, (self.pairs,)  # a worker process starts with an empty memory

    def _split(self, word: str) -> list[str]:
        if len(word) > LONGEST_SPLIT or is_protected(word):
            return [word]
        pieces, rank, never = _symbols(word), self._rank.get, len(self.pairs)
        ranks = [rank(pair, never) for pair in pairwise(pieces)]
        while ranks and (first := min(ranks)) < never:
            place = ranks.index(first)
            pieces[place : place + 2] = [self.merged[first]]
            del ranks[place]
            if place > 0:  # the new piece has new pairs with its neighbours
                ranks[place - 1] = rank((pieces[place - 1], pieces[place]), never)
            if place < len(ranks):
                ranks[place] = rank((pieces[place], pieces[place + 1]), never)
        return pieces

    def save(self, path: Path) -> None:
        """Writes the name of the format, then a line for each pair, in their order, with a tab between the pieces."""
        write_text(path, "".join(f"{line}\n" for line in (FORMAT, *("\t".join(pair) for pair in self.pairs))))

    @classmethod
    def load(cls, path: Path) -> Merges:
        first, *lines = read_text_file(path, "merges of subwords").removesuffix("\n").split("\n")
        if first != FORMAT:
            raise Misuse(f"not merges of subwords as this version of pointing has them: no {FORMAT} on top", path)
        pairs = []
        for line, text in enumerate(lines, 2):
            left, tab, right = text.partition("\t")
            if not tab or not without_mark(right) or not without_mark(left) or ends_word(left):
                raise Misuse(f"not two pieces with a tab between, the first with its {MARK!r}", path, line)
            pairs.append((left, right))
        return cls(pairs)


def require_tokenizers() -> None:
    """Learning merges needs the library `tokenizers`; splitting words does not."""
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        raise missing_extra("tokenizers", "subwords") from None


def learn_merges(counts: Mapping[str, int], size: int, min_count: int) -> tuple[Merges, dict[str, int]]:
    """Merges that make `size` different pieces, and these pieces with their counts in the counted words.

    Pairs and characters that occur less often than `min_count` are left out. Characters take at most half of `size`,
    the most frequent first; what merges do not use of the other half goes to the remaining characters. A piece's count
    may be 0: then it was always merged into larger ones.
    """
    symbols: Counter[str] = Counter()
    for word, count in counts.items():
        for symbol in _symbols(word) if len(word) <= LONGEST_SPLIT else ():
            symbols[symbol] += count
    frequent = [symbol for symbol, count in symbols.items() if count >= min_count]
    ranked = sorted(frequent, key=lambda symbol: (-symbols[symbol], symbol))
    alphabet, remaining = ranked[: max(1, size // 2)], ranked[max(1, size // 2) :]
    merges = Merges(list(_train(counts, alphabet, size, min_count)))
    pieces = dict.fromkeys(islice(dict.fromkeys([*alphabet, *merges.merged, *remaining]), size), 0)
    for word, count in counts.items():
        for piece in merges(word):
            if piece in pieces:
                pieces[piece] += count
    return merges, pieces


def _train(counts: Mapping[str, int], alphabet: Sequence[str], size: int, min_count: int) -> Iterator[tuple[str, str]]:
    """The pairs that Hugging Face's `tokenizers` merges, in order, in words that are written in the alphabet.

    Each symbol (a character inside a word, or at its end) is shown to the trainer as one letter, whose code point gives
    the symbol's rank in the alphabet. Of pairs with the same count the trainer takes the one whose pieces are older, so
    the result is always the same.
    """
    require_tokenizers()
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    letters = {symbol: chr(FIRST_LETTER + rank) for rank, symbol in enumerate(alphabet)}
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, initial_alphabet=list(letters.values()), show_progress=False
    )
    tokenizer.train_from_iterator(_texts(counts, letters), trainer)
    for pair in json.loads(tokenizer.to_str())["model"]["merges"]:
        left, right = pair.split(" ") if isinstance(pair, str) else pair  # a string before version 0.20
        yield _piece(left, alphabet), _piece(right, alphabet)


def _texts(counts: Mapping[str, int], letters: Mapping[str, str]) -> Iterator[str]:
    """Each word in letters, as many times as its count says: the trainer takes texts, not counts."""
    for word, count in counts.items():
        symbols = _symbols(word) if len(word) <= LONGEST_SPLIT else [word]
        if all(symbol in letters for symbol in symbols):
            text = "".join(map(letters.__getitem__, symbols))
            for done in range(0, count, REPEATS):
                yield "\n".join([text] * min(REPEATS, count - done))


def _symbols(word: str) -> list[str]:
    """A word's characters as pieces, which merging starts from."""
    return [*(character + MARK for character in word[:-1]), word[-1]]


def _piece(letters: str, alphabet: Sequence[str]) -> str:
    """The piece that the trainer's letters stand for."""
    *inner, last = (alphabet[ord(letter) - FIRST_LETTER] for letter in letters)
    return "".join(map(without_mark, inner)) + last


def split_into_pieces(tokens: TokenArrays, merges: Merges) -> tuple[TokenArrays, Longs]:
    """The same lines as pieces, and for each piece the number of the token that it is a part of.

    A piece's span is its own characters. If normalising has changed the word's length, it is the span of the word.
    """
    used = np.unique(tokens.ids)
    split = [merges(tokens.words[word]) for word in used.tolist()]
    count, length = np.zeros((2, len(tokens.words)), np.int64)  # of each different word: pieces, characters
    count[used] = [len(pieces_of_word) for pieces_of_word in split]
    length[used] = [len(tokens.words[word]) for word in used.tolist()]
    pieces, piece = unique_numbers(list(chain.from_iterable(split)))  # of all different words, one after the other
    characters = np.array([len(without_mark(text)) for text in pieces], np.int64)[piece]
    offset = sums_within_groups(characters, count[used])  # characters from the word's start

    # For each piece of each token: its place in that list of pieces.
    place = ranges(running_sums(count)[tokens.ids], count[tokens.ids])
    token = np.repeat(np.arange(len(tokens.ids)), count[tokens.ids])
    own_span = (tokens.ends - tokens.starts == length[tokens.ids])[token]
    start = tokens.starts[token] + np.where(own_span, offset[place], 0)
    end = np.where(own_span, start + characters[place], tokens.ends[token])
    counts = np.diff(running_sums(count[tokens.ids])[running_sums(tokens.counts.astype(np.int64))])
    writing = tokens.writing
    if writing is not None:
        goes_on = np.append(False, token[1:] == token[:-1])[: len(token)]  # another piece of the same word
        writing = Writing(writing.surfaces, writing.ids[token], np.where(goes_on, JOINED, writing.spaces[token]))
    starts, ends, counts = (array.astype(np.int32) for array in (start, end, counts))
    return TokenArrays(pieces, piece[place], starts, ends, counts, writing), token
