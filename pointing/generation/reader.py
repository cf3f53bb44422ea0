"""A raw line at test → what the model reads, encoded by the same functions as a corpus (`corpus.encoding`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointing.corpus.encoding import as_read, decode_line, encode_lines
from pointing.corpus.examples import Batch, Split, make_batch, padded
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.generation.glossary import ENCOURAGED, GUARANTEED, Glossary
from pointing.model.fast_output import NO_WORD
from pointing.text.entities import Tagged, anonymize
from pointing.text.protected import is_protected, keeps_order, kind_of, protected_text
from pointing.text.token_arrays import Longs, TokenArrays, from_tokens, running_sums, tokenize_lines
from pointing.text.tokenizer import Tokens
from pointing.text.vocabulary import UNK

Ints = npt.NDArray[np.int32]
# How a protected position is copied: exactly once, anywhere; or in the order of the source's other format arguments, so
# that each gets its value; or in the order of its other tags, so that these stay nested. Terms of the user's glossary:
# exactly once, or at most once.
ANYWHERE, ARGUMENT, TAG, TERM, HINT = 1, 2, 3, 4, 5
MARKED_KINDS = {"tag": TAG, GUARANTEED: TERM, ENCOURAGED: HINT}
UNDRAWN = -2  # in an alias's place: the model points at this term by itself, and is not drawn to it
SHORTEST_LIMIT = 200  # tokens of a line that are read at least, however short the lines of the training were
PIECES_OF_A_TOKEN = 4  # with subwords, a line is cut after so many pieces for each token of that limit


class Line(NamedTuple):
    """A source line of J positions: its tokens, or with subwords and `pointers.places: tokens` their pieces."""

    text: str  # raw
    starts: Ints  # (J,) the character where each token begins
    ends: Ints
    ids: Ints  # (J,) in the source vocabulary; UNK for a token that is read in several pieces
    source_words: Ints  # (J,) what copying each one writes: target id, or V + first position of the same word
    translations: Sequence[str | None]  # (J,) what copying writes instead, where a dictionary or glossary has it
    warning: str | None = None
    pieces: Pieces | None = None
    forms: Ints | None = None  # how each token, or each piece that is read, is written (text/forms.py)
    protected: Ints | None = None  # (J,) how each protected position is copied, ANYWHERE …; else 0
    aliases: Mapping[int, int] = {}
    """Of each glossary term's position: the target id of what it writes, NO_WORD, or UNDRAWN."""
    reading: Reading | None = None

    @property
    def in_words(self) -> Line:
        """The line as its words, if it is cut into pieces."""
        return self if self.pieces is None else self.pieces.words

    @property
    def has_spans(self) -> bool:
        return self.protected is not None and bool(self.protected.any())

    def is_span(self, position: int) -> bool:
        """True for a protected span of the text; False for a glossary's term and all else."""
        return self.protected is not None and bool(0 < self.protected[position] < TERM)

    def raw(self, position: int) -> str:
        """A token as it was written."""
        return self.text[self.starts[position] : self.ends[position]]


class Reading(NamedTuple):
    """The pieces that the encoder reads, where a position is a word of several pieces (`pointers.places: words`)."""

    ids: Ints  # (P,) in the source vocabulary
    counts: Ints  # (J,) how many pieces each position has


class Pieces(NamedTuple):
    """Where the pieces of a line come from."""

    forms: list[str]  # (J,) the pieces as the model sees them
    word: Ints  # (J,) the position of the word that each piece is part of
    words: Line  # the line in words


class LineReader:
    """Reads lines as a lexicon says. Lines that are too long are cut, bytes that are not UTF-8 become �: each with a
    warning."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.longest = max(SHORTEST_LIMIT, lexicon.config.text.max_tokens)
        pointers = lexicon.config.pointers
        self.takes_tags, self.needs_tags = pointers.uses_entities, pointers.needs_tags
        # Where names stay as they are, tags only say where tokens end: without tags the tokenizer does.
        self.tags_itself = pointers.anonymous and pointers.tagger is not None
        if self.tags_itself:
            _ = lexicon.tokenization.tagger  # what is wrong with it is said now

    @property
    def takes_terms(self) -> bool:
        """True if a glossary's terms can be pointed at: each is then one position."""
        in_pieces = self.lexicon.source.merges is not None and not self.lexicon.config.points_at_words
        return not self.takes_tags and not in_pieces

    def __call__(
        self, lines: Sequence[str | bytes], tags: Sequence[Tagged] | None = None, glossary: Glossary | None = None
    ) -> list[Line]:
        """`tags`, for runs with entity pointers, say which tokens are names, and where tokens end."""
        if glossary is not None and not self.takes_terms:
            units = "entities" if self.takes_tags else "pieces of words"
            raise Misuse(f"a glossary is for runs that point at words, and this one points at {units}")
        texts, warnings = [], []
        for raw in lines:
            text, problem = decode_line(raw)
            texts.append(text)
            warnings.append([] if problem is None else [problem])
        if self.takes_tags and (tags is not None or self.tags_itself):
            all_tags = [None] * len(texts) if tags is None else tags
            tokens = from_tokens([self._tagged(*line) for line in zip(texts, all_tags, warnings, strict=True)])
        elif glossary is not None:
            split = self.lexicon.tokenization.source
            tokens = from_tokens([glossary.mark(text, split(text)) for text in texts], texts)
        else:
            tokens = tokenize_lines(self.lexicon.tokenization.source, texts, self.lexicon.config.text.forms)
        tokens = _cut(tokens, self.longest, "tokens", warnings)
        if self.lexicon.config.points_at_words:
            return self._lines(texts, tokens, warnings, glossary)
        pieces, token_of_piece = as_read(tokens, self.lexicon.source)
        if token_of_piece is None:
            return self._lines(texts, tokens, warnings, glossary)
        longest = PIECES_OF_A_TOKEN * self.longest
        token_of_piece = token_of_piece[pieces.positions() < longest]
        pieces = _cut(pieces, longest, "pieces", warnings)
        in_words, in_pieces = self._lines(texts, tokens, warnings), self._lines(texts, pieces, warnings)
        first_token, first_piece = _first(tokens), _first(pieces)
        read = []
        for row, line in enumerate(in_pieces):
            here = slice(first_piece[row], first_piece[row + 1])
            forms = [pieces.words[piece] for piece in pieces.ids[here].tolist()]
            word = (token_of_piece[here] - first_token[row]).astype(np.int32)
            read.append(line._replace(pieces=Pieces(forms, word, in_words[row])))
        return read

    def prepared(self, split: Split, rows: Iterable[int]) -> list[Line]:
        """Examples of a prepared corpus, their entities as they were tagged there."""
        examples = [split[int(row)] for row in rows]
        text = self.lexicon.config.text
        if self.lexicon.senses is not None or self.lexicon.source.merges is not None or text.forms or text.protects:
            return self([example["source_text"] for example in examples])
        lines = []
        for example in examples:
            starts, ends, ids, source_words = (
                np.array(example[name], np.int32) for name in ("starts", "ends", "source", "source_words")
            )
            lines.append(Line(example["source_text"], starts, ends, ids, source_words, [None] * len(ids)))
        return lines

    def _lines(
        self, texts: Sequence[str], tokens: TokenArrays, warnings: Sequence[list[str]], glossary: Glossary | None = None
    ) -> list[Line]:
        terms = {} if glossary is None else glossary.found
        encoded = encode_lines(self.lexicon, tokens, read_as={word: term.read_as for word, term in terms.items()})
        targets = {word: term.target for word, term in terms.items()}
        written = [targets.get(word, other) for word, other in zip(tokens.words, encoded.translations, strict=True)]
        kinds = np.fromiter(map(_protection, tokens.words), np.int32, len(tokens.words))[tokens.ids]
        # A span is a word of its own, also if the shortlist has a word that is written so.
        own = len(self.lexicon.target) + tokens.positions().astype(np.int32)
        source_words = np.where(kinds > 0, own, encoded.source_words)
        ids, read = encoded.ids, encoded.pieces
        if read is not None:  # of the words, as far as these are read whole
            ids = np.where(read == 1, encoded.ids[running_sums(read)[:-1]] if len(read) else read, UNK).astype(np.int32)
        elif terms:  # a term that stays as it is is read as an unknown word, which the model points at by itself
            found = {number: terms[word] for number, word in enumerate(tokens.words) if word in terms}
            source = self.lexicon.source
            term_ids = {number: source[term.read_as] if term.target else UNK for number, term in found.items()}
            ids = np.array([term_ids.get(word, x) for word, x in zip(tokens.ids.tolist(), ids.tolist(), strict=True)])
        first, first_read = _first(tokens), running_sums(encoded.counts)
        lines = []
        for row, text in enumerate(texts):
            here = slice(first[row], first[row + 1])
            words = tokens.ids[here].tolist()
            columns = (tokens.starts[here], tokens.ends[here], ids[here], source_words[here])
            warning = "; ".join(warnings[row]) or None
            here_read = slice(first_read[row], first_read[row + 1])
            forms = encoded.forms[here_read]
            line = Line(text, *columns, [written[w] for w in words], warning, None, forms, kinds[here])
            if read is not None:
                line = line._replace(reading=Reading(encoded.ids[here_read], read[here]))
            if terms:
                names = ((place, tokens.words[word]) for place, word in enumerate(words))
                aliases = {
                    place: UNDRAWN if line.ids[place] == UNK else self._alias(targets[name])
                    for place, name in names
                    if name in terms
                }
                line = line._replace(aliases=aliases)
            lines.append(line)
        return lines

    def _alias(self, target: str | None) -> int:
        """The shortlist's id of a term's target, if that is one of its words."""
        words = [] if target is None else self.lexicon.tokenization.target.words(target)
        number = self.lexicon.target[words[0]] if len(words) == 1 else UNK
        return NO_WORD if number == UNK else number

    def _tagged(self, text: str, tags: Tagged | None, warnings: list[str]) -> Tokens:
        """A line's tokens as its tags cut it, with its names as placeholders if they were so in training."""
        tokenization, pointers = self.lexicon.tokenization, self.lexicon.config.pointers
        tagged = tokenization.tagged(text, tags, tokenization.source)
        if tagged is None and self.tags_itself:
            tagged = tokenization.tagged(text, None, tokenization.source)
        if tagged is None:
            warnings.append("its tags are those of another text")
            return tokenization.source(text)
        tokens, token_tags = tagged
        if not pointers.anonymous:
            return tokens
        words, _ = anonymize(tokens.words, token_tags, [], [], self.lexicon.source.placeholders)
        return tokens._replace(words=words)


def _cut(tokens: TokenArrays, longest: int, unit: str, warnings: Sequence[list[str]]) -> TokenArrays:
    """The lines without what is beyond their first `longest` tokens."""
    for row in np.flatnonzero(tokens.counts > longest).tolist():
        warnings[row].append(f"{tokens.counts[row]:,} {unit}, cut after {longest}")
    return tokens.truncate(longest)


def _protection(word: str) -> int:
    """Whether outputs copy a source token exactly once, and in the order of which others."""
    if not is_protected(word):
        return 0
    kind = kind_of(word)
    if kind in MARKED_KINDS:
        return MARKED_KINDS[kind]
    return ARGUMENT if keeps_order(protected_text(word), kind) else ANYWHERE


def _first(tokens: TokenArrays) -> Longs:
    """(lines + 1,) the number of each line's first token."""
    return running_sums(tokens.counts.astype(np.int64))


def as_batch(lines: Sequence[Line]) -> Batch:
    """Lines as tensors, without a target."""
    lengths = np.array([len(line.ids) for line in lines])
    readings = [line.reading for line in lines if line.reading is not None]
    x = [reading.ids for reading in readings] or [line.ids for line in lines]
    read = np.array(list(map(len, x)))
    x_form = [line.forms for line in lines if line.forms is not None]
    nothing, none = np.zeros((len(lines), 0), np.int64), np.zeros(len(lines), np.int32)
    return make_batch(
        np.arange(len(lines)),
        _rows(x, read, end=1),
        _rows([line.source_words for line in lines], lengths, end=1),
        lengths,
        nothing,
        nothing,
        none,
        (_rows(x_form, read, end=1), nothing) if x_form else None,
        _rows([reading.counts for reading in readings], lengths, end=0) if readings else None,
    )


def _rows(values: Sequence[Ints], lengths: Longs, end: int) -> Longs:
    """Values of some lengths as rows of one array, `end` places longer than the longest: each source ends with EOS."""
    return padded(np.concatenate(values), running_sums(lengths)[:-1], lengths, int(lengths.max()) + end)


def positions_of_spans(lines: Sequence[Line]) -> tuple[Longs, Longs]:
    """(B, J) how each position is protected, and its alias or NO_WORD, of lines as `as_batch` pads them."""
    width = max(len(line.ids) for line in lines) + 1
    protected, aliases = np.zeros((len(lines), width), np.int64), np.full((len(lines), width), NO_WORD, np.int64)
    for row, line in enumerate(lines):
        if line.protected is not None:
            protected[row, : len(line.ids)] = line.protected
        for position, alias in line.aliases.items():
            aliases[row, position] = alias
    return protected, aliases
