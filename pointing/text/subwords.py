"""Words → pieces by byte-pair merges (Sennrich et al. 2016), and back: the other way to write words that are rare.

A piece that does not end its word ends with a mark, as subword-nmt writes it: `nois@@ y`. The space is part of the
mark, and no word holds one, so a text may have `@@` in it like any other characters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from pointing.errors import Misuse, missing_extra
from pointing.system.files import write_text
from pointing.text.token_arrays import Longs, TokenArrays, ranges, running_sums, sums_within_groups, unique_numbers
from pointing.text.tokenizer import Memory

MARK = "@@ "
WHOLE = 100  # characters; longer words (they are addresses, and worse) stay in one piece, which no vocabulary has
FORMAT = "pointing-merges-1"
FIRST_LETTER = 0x20000  # of those that stand for symbols while merges are learned
REPEATS = 1000  # of a word that are shown to the trainer at a time


def ends_word(piece: str) -> bool:
    return not piece.endswith(MARK)


def without_mark(piece: str) -> str:
    """Its characters."""
    return piece.removesuffix(MARK)


def join_pieces(pieces: Iterable[str]) -> list[str]:
    """The words again; what is left open at the end is a word too."""
    words, begun = [], ""
    for piece in pieces:
        begun += without_mark(piece)
        if ends_word(piece):
            words.append(begun)
            begun = ""
    return [*words, begun] if begun else words


class Merges:
    """Cuts words into pieces: of the pairs side by side, single characters first, the earliest learned is merged."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        """`pairs` of pieces, those first that were learned first; the left one never ends a word."""
        self.pairs = list(pairs)
        self.merged = [without_mark(left) + right for left, right in self.pairs]
        self._rank = {pair: rank for rank, pair in enumerate(self.pairs)}
        self._remembered = Memory(self._cut)

    def __call__(self, word: str) -> list[str]:
        return self._remembered[word]

    def __reduce__(self) -> tuple[type[Merges], tuple[list[tuple[str, str]]]]:
        return Merges, (self.pairs,)  # a worker process starts with an empty memory

    def _cut(self, word: str) -> list[str]:
        if len(word) > WHOLE:
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
        """What the file is, then a pair a line with a tab between, in their order."""
        write_text(path, "".join(f"{line}\n" for line in (FORMAT, *("\t".join(pair) for pair in self.pairs))))

    @classmethod
    def load(cls, path: Path) -> Merges:
        try:
            first, *lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Misuse(f"these merges of subwords cannot be read ({error})", path) from None
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
    """Learning takes the library; cutting and joining do not."""
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        raise missing_extra("tokenizers", "subwords") from None


def learn_merges(counts: Mapping[str, int], size: int, min_count: int) -> tuple[Merges, dict[str, int]]:
    """Merges until there are `size` different pieces; returned with these, and how often the counted words hold each.

    Nothing is merged that stands together less often than `min_count`, and no character is known that is seen less
    often. Characters take half of `size` at most, the rarest are left out: else there would be no room for merges.
    What these leave over is theirs again. Some pieces have a count of 0: they were always merged into larger ones.
    """
    single: Counter[str] = Counter()
    for word, count in counts.items():
        for symbol in _symbols(word) if len(word) <= WHOLE else ():
            single[symbol] += count
    ranked = sorted((one for one in single if single[one] >= min_count), key=lambda one: (-single[one], one))
    known, others = ranked[: max(1, size // 2)], ranked[max(1, size // 2) :]
    merges = Merges(list(_train(counts, known, size, min_count)))
    found = dict.fromkeys(islice(dict.fromkeys([*known, *merges.merged, *others]), size), 0)
    for word, count in counts.items():
        for piece in merges(word):
            if piece in found:
                found[piece] += count
    return merges, found


def _train(counts: Mapping[str, int], known: Sequence[str], size: int, min_count: int) -> Iterator[tuple[str, str]]:
    """The pairs that Hugging Face's `tokenizers` merges, in order, in words whose characters are all known.

    To it every symbol, a character that ends a word or does not, is a letter of its own, by its rank among the known.
    Of pairs as frequent as each other it takes the one whose pieces it has known longer: no choice is left to chance.
    """
    require_tokenizers()
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    letters = {symbol: chr(FIRST_LETTER + rank) for rank, symbol in enumerate(known)}
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, initial_alphabet=list(letters.values()), show_progress=False
    )
    tokenizer.train_from_iterator(_texts(counts, letters), trainer)
    for pair in json.loads(tokenizer.to_str())["model"]["merges"]:
        left, right = pair.split(" ") if isinstance(pair, str) else pair  # a string before version 0.20
        yield _piece(left, known), _piece(right, known)


def _texts(counts: Mapping[str, int], letters: Mapping[str, str]) -> Iterator[str]:
    """Each word in letters, as often as it was counted: the trainer takes texts, not counts."""
    for word, count in counts.items():
        symbols = _symbols(word) if len(word) <= WHOLE else [word]
        if all(symbol in letters for symbol in symbols):
            text = "".join(map(letters.__getitem__, symbols))
            for done in range(0, count, REPEATS):
                yield "\n".join([text] * min(REPEATS, count - done))


def _symbols(word: str) -> list[str]:
    """A word's smallest pieces: its characters."""
    return [*(character + MARK for character in word[:-1]), word[-1]]


def _piece(letters: str, known: Sequence[str]) -> str:
    """The piece that the letters stand for."""
    *inner, last = (known[ord(letter) - FIRST_LETTER] for letter in letters)
    return "".join(map(without_mark, inner)) + last


def split_into_pieces(tokens: TokenArrays, merges: Merges) -> tuple[TokenArrays, Longs]:
    """The same lines as pieces, and for each piece which of the tokens it is of.

    A piece's span is its own characters, or its whole word's where normalising has changed the word's length.
    """
    used = np.unique(tokens.ids)
    cut = [merges(tokens.words[word]) for word in used.tolist()]
    count, length = np.zeros((2, len(tokens.words)), np.int64)  # of the different words: pieces, characters
    count[used] = [len(pieces) for pieces in cut]
    length[used] = [len(tokens.words[word]) for word in used.tolist()]
    pieces, piece = unique_numbers(list(chain.from_iterable(cut)))
    characters = np.array([len(without_mark(one)) for one in pieces], np.int64)[piece]
    begin = sums_within_groups(characters, count[used])  # characters from the word's start

    # Of each token's pieces: their places among those.
    place = ranges(running_sums(count)[tokens.ids], count[tokens.ids])
    token = np.repeat(np.arange(len(tokens.ids)), count[tokens.ids])
    own = (tokens.ends - tokens.starts == length[tokens.ids])[token]
    start = tokens.starts[token] + np.where(own, begin[place], 0)
    end = np.where(own, start + characters[place], tokens.ends[token])
    counts = np.diff(running_sums(count[tokens.ids])[running_sums(tokens.counts.astype(np.int64))])
    return TokenArrays(pieces, piece[place], *(one.astype(np.int32) for one in (start, end, counts))), token
