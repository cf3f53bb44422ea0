"""Lines as the pieces of a Hugging Face tokenizer, with the characters of each piece, and pieces as text again.

A line is cut by the tokenizer as a whole, so a pre-trained model reads the pieces that it knows. Words are those of our
own tokenizer, with their characters. So each word knows its pieces, and a piece that two words share belongs to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pointing.text.tokenizer import Memory, Tokenizer

Span = tuple[int, int]
ANCHORS = "a", "e", "1", "the", "."  # texts that a piece may follow
SPACES = "▁", "Ġ"  # a space, as SentencePiece and as byte-level tokenizers write it
NOTHING: Span = (0, 0)
SPECIAL: Span = (-1, -1)  # of no characters, and beside none


class Cut(NamedTuple):
    """A line as pieces."""

    text: str
    ids: list[int]
    spans: list[Span]  # each piece's characters in the text; empty for a space alone, SPECIAL for special tokens


class Source(NamedTuple):
    """A source line: its pieces, and the J words that may be copied."""

    text: str
    ids: list[int]
    starts: list[int]  # (J,) the character where each word begins
    ends: list[int]
    pieces: list[Span]  # (J,) each word's first piece, and the one after its last

    @property
    def words(self) -> list[str]:
        """Each word as it is written, which is what copying it writes."""
        return [self.text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]


class PieceTokenizer:
    """A tokenizer of `transformers`, fast or slow, that says which characters its pieces stand for.

    `prefix` is what the model reads before every source line, such as T5's "translate English to French: ". It is not
    part of the line, and none of its words may be copied.
    """

    def __init__(self, tokenizer: Any, prefix: str = "", longest: int | None = None) -> None:
        self.tokenizer, self.prefix, self.longest = tokenizer, prefix, longest
        self.words = Tokenizer("regex", unicode="keep")
        self._chunks = {side: Memory(partial(self._pieces_of_chunk, side)) for side in ("text", "text_target")}
        self.anchor = self._find_anchor()
        self.anchor_length = len(self._decode(self.anchor))
        self.space = self._find_space()

    def source(self, line: str) -> Source:
        """A line as the encoder reads it. Words whose pieces are cut off by `longest` are no places to copy from."""
        cut = self._cut(self.prefix + line, "text")
        begin = len(self.prefix)
        words = self.words(line)
        places = zip(words.starts, words.ends, strict=True)
        pieces = {(start, end): pieces_of(cut, begin + start, begin + end) for start, end in places}
        seen = [span for span, of_word in pieces.items() if of_word != NOTHING]
        starts, ends = [start for start, _ in seen], [end for _, end in seen]
        return Source(line, cut.ids, starts, ends, [pieces[span] for span in seen])

    def target(self, line: str) -> Cut:
        """A line as the decoder is to write it."""
        return self._cut(line, "text_target")

    def text(self, ids: Sequence[int]) -> str:
        """Pieces as text, without special tokens. A space before the first piece stays, if it has one."""
        return self._decode([*self.anchor, *ids])[self.anchor_length :]

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _cut(self, line: str, side: str) -> Cut:
        options: dict[str, Any] = {"truncation": True, "max_length": self.longest} if self.longest else {}
        given = {side: line}
        if self.tokenizer.is_fast:
            options |= {"return_offsets_mapping": True, "return_special_tokens_mask": True}
            encoded = self.tokenizer(**given, **options)
            marked = zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
            spans = [SPECIAL if is_special else _trimmed(line, *span) for span, is_special in marked]
            return Cut(line, encoded["input_ids"], spans)
        ids = self.tokenizer(**given, **options)["input_ids"]
        return Cut(line, ids, self._spans(line, ids, side))

    def _spans(self, line: str, ids: list[int], side: str) -> list[Span]:
        """The spans of a slow tokenizer's pieces, which does not say them.

        It cuts every chunk between white space alone. The pieces of a chunk that together spell it have their
        characters; those of another chunk, such as one with unknown letters, stand for all of it.
        """
        special = self.tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        spans: list[Span] = []
        start = 0
        for chunk in line.split():
            start = line.index(chunk, start)
            spans += self._spans_in_chunk(self._chunks[side][chunk], chunk, start)
            start += len(chunk)
        given = iter(spans)
        found = [SPECIAL if is_special else next(given, NOTHING) for is_special in special]
        cut_whole = next(given, None) is None and len(spans) == special.count(0)
        if not cut_whole and not self.longest:  # the tokenizer does not cut chunk by chunk
            whole = (0, len(line))
            found = [SPECIAL if is_special else whole for is_special in special]
        return found

    def _pieces_of_chunk(self, side: str, chunk: str) -> list[str]:
        ids = self.tokenizer(**{side: chunk}, add_special_tokens=False)["input_ids"]
        return list(self.tokenizer.convert_ids_to_tokens(ids))

    def _spans_in_chunk(self, pieces: Sequence[str], chunk: str, start: int) -> list[Span]:
        surfaces = [piece.replace("▁", "") for piece in pieces]
        if "".join(surfaces) != chunk:
            return [(start, start + len(chunk))] * len(pieces)
        spans, at = [], start
        for surface in surfaces:
            spans.append(
                (at, at + max(1, len(surface)))
            )  # a space alone has the letter after it, as T5's fast one says
            at += len(surface)
        return spans

    def _find_anchor(self) -> list[int]:
        """Pieces of a text that can be written, so that a piece behind them shows whether it begins with a space."""
        for text in ANCHORS:
            ids: list[int] = self.tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
            if self._decode(ids).strip() == text:
                return ids
        return []

    def _find_space(self) -> int | None:
        """The piece that is a space alone, if there is one."""
        known = self.tokenizer.get_vocab()
        ids = [known[piece] for piece in SPACES if piece in known]
        return next((space for space in ids if self.text([space]) == " "), None)


def pieces_of(cut: Cut, start: int, end: int) -> Span:
    """The pieces that have characters of line[start:end]: the first, and the one after the last."""
    inside = [k for k, (first, last) in enumerate(cut.spans) if first < end and last > start]
    return (inside[0], inside[-1] + 1) if inside else NOTHING


def _trimmed(line: str, start: int, end: int) -> Span:
    """A span without the white space at its ends."""
    while start < end and line[start].isspace():
        start += 1
    while end > start and line[end - 1].isspace():
        end -= 1
    return start, end
