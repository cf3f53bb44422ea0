"""Text → examples, the one way for `prepare`, generation and scoring: lines → tokens → ids, names and choices.

Every function works on many lines at a time, their tokens laid end to end, and depends on its arguments alone.
N tokens of the source, M of the target; V shortlist words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointing.corpus.examples import Texts, int_column, list_column, schema, text_column
from pointing.corpus.lexicon import Lexicon, Tokenization
from pointing.corpus.pointers import NOWHERE, Ints, Side, choose, number_source_words, same_entity, same_word
from pointing.corpus.statistics import Statistics
from pointing.corpus.steps import first_pieces, one_step_a_token, steps_of_pieces
from pointing.corpus.writing import forms_of_pieces, forms_read, forms_to_write
from pointing.system.files import without_end
from pointing.text.compounds import cut_compounds
from pointing.text.entities import OUTSIDE, Tagged, anonymize
from pointing.text.forms import FORMS, WITHIN_WORD
from pointing.text.subwords import split_into_pieces
from pointing.text.token_arrays import Longs, TokenArrays, from_tokens, tokenize_lines, unique_numbers
from pointing.text.tokenizer import Tokens
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

Bools = npt.NDArray[np.bool_]
NOT_UTF8, NUL = "not UTF-8", "a NUL character"


def decode_line(line: str | bytes) -> tuple[str, str | None]:
    """A line without its end as text, � for what is not UTF-8; and what is wrong with it, if anything."""
    if isinstance(line, str):
        return line, None
    line = without_end(line)
    try:
        return line.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return line.decode("utf-8", "replace"), f"{NOT_UTF8} (byte {error.start + 1} of the line)"


class Pairs(NamedTuple):
    """Tokenised pairs that can be learned from."""

    rows: list[int]  # which of the given lines these are
    texts: tuple[Texts, Texts]  # raw lines of both sides
    source: TokenArrays
    target: TokenArrays  # with the same list of different words as the source
    entity: Ints | None  # (M,) with entity pointers: the source position of the same name, or NOWHERE
    whole_target: TokenArrays | None = None  # the target before its compounds were cut, if they were


def tokenize_pairs(
    tokenization: Tokenization,
    sources: Sequence[bytes],
    targets: Sequence[bytes],
    tags: Sequence[tuple[Tagged, Tagged]] | None,
    numbers: Sequence[int],
) -> tuple[Pairs, Statistics]:
    """The pairs that are text, neither empty nor too long; the statistics say what was left out, and why.

    `numbers` are those of the lines in their file.
    """
    statistics = Statistics()
    rows, texts = _decode_pairs(sources, targets, numbers, statistics)
    is_name: tuple[Bools, Bools] | None = None
    if tokenization.config.pointers.uses_entities:
        rows, texts, source, target, is_name = _tag_pairs(tokenization, rows, texts, tags, numbers, statistics)
    else:
        writing = tokenization.config.text.forms
        source, target = (tokenize_lines(t, lines, writing) for t, lines in zip(tokenization.both, texts, strict=True))
    longest = tokenization.config.text.max_tokens
    empty = (source.counts == 0) | (target.counts == 0)
    long = np.maximum(source.counts, target.counts) > longest
    for left_out, reason in ((empty, "an empty side"), (long & ~empty, f"more than {longest} tokens")):
        for place in np.flatnonzero(left_out):
            statistics.skip(reason, numbers[rows[place]])
    keep = ~(empty | long)
    if is_name is not None:
        is_name = is_name[0][np.repeat(keep, source.counts)], is_name[1][np.repeat(keep, target.counts)]
    source, target = _with_one_word_list(source.select(keep), target.select(keep))
    whole_target = target if tokenization.config.cuts_compounds else None
    if tokenization.config.cuts_compounds:
        target = cut_compounds(target, whole=same_word(_side(source), _side(target)) != NOWHERE)
        source, target = _with_one_word_list(source, target)
    entity = None if is_name is None else same_entity(_side(source), _side(target), *is_name)
    kept_texts = list(compress(texts[0], keep)), list(compress(texts[1], keep))
    statistics.pairs = int(keep.sum())
    statistics.source_tokens, statistics.target_tokens = len(source.ids), len(target.ids)
    return Pairs(list(compress(rows, keep)), kept_texts, source, target, entity, whole_target), statistics


def copied_tokens(pairs: Pairs) -> Bools:
    """(M,) True for target words that stand in their source, too."""
    copied: Bools = same_word(_side(pairs.source), _side(pairs.target)) != NOWHERE
    return copied


def _decode_pairs(
    sources: Sequence[bytes], targets: Sequence[bytes], numbers: Sequence[int], statistics: Statistics
) -> tuple[list[int], tuple[list[str], list[str]]]:
    """The rows of the pairs that are text on both sides, and their lines."""
    whole = _decode_all(sources), _decode_all(targets)
    if whole[0] is not None and whole[1] is not None:
        return list(range(len(whole[0]))), (whole[0], whole[1])
    rows: list[int] = []
    texts: tuple[list[str], list[str]] = ([], [])
    for row, lines in enumerate(zip(sources, targets, strict=True)):
        (source, problem), (target, other_problem) = map(decode_line, lines)
        if problem or other_problem or "\0" in source or "\0" in target:
            statistics.skip(NOT_UTF8 if problem or other_problem else NUL, numbers[row])
            continue
        rows.append(row)
        texts[0].append(source)
        texts[1].append(target)
    return rows, texts


def _decode_all(lines: Sequence[bytes]) -> list[str] | None:
    """All lines in one step, which is nearly always possible; None if they must be decoded one by one."""
    joined = b"".join(lines)
    if b"\0" in joined or b"\r" in joined:
        return None
    try:
        return joined.removesuffix(b"\n").decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None


def _tag_pairs(
    tokenization: Tokenization,
    rows: list[int],
    texts: tuple[list[str], list[str]],
    tags: Sequence[tuple[Tagged, Tagged]] | None,
    numbers: Sequence[int],
    statistics: Statistics,
) -> tuple[list[int], tuple[list[str], list[str]], TokenArrays, TokenArrays, tuple[Bools, Bools]]:
    """The pairs whose tags are their own: tokens, with names as placeholders if asked for; which tokens are names."""
    tokens: tuple[list[Tokens], list[Tokens]] = ([], [])
    is_name: tuple[list[bool], list[bool]] = ([], [])
    places: list[int] = []
    longest = tokenization.config.text.max_tokens
    for place, (row, source_text, target_text) in enumerate(zip(rows, *texts, strict=True)):
        source_tags, target_tags = (None, None) if tags is None else tags[row]
        source = tokenization.tagged(source_text, source_tags, tokenization.source)
        target = tokenization.tagged(target_text, target_tags, tokenization.target)
        if source is None or target is None:
            statistics.skip("tags of another text", numbers[row])
            continue
        pair = source[0], target[0]
        if tokenization.config.pointers.anonymous:
            words = anonymize(source[0].words, source[1], target[0].words, target[1], longest)
            pair = pair[0]._replace(words=words[0]), pair[1]._replace(words=words[1])
        for side, side_tags in enumerate((source[1], target[1])):
            tokens[side].append(pair[side])
            is_name[side].extend(tag != OUTSIDE for tag in side_tags)
        places.append(place)
    texts = [texts[0][place] for place in places], [texts[1][place] for place in places]
    arrays = from_tokens(tokens[0]), from_tokens(tokens[1])
    return [rows[place] for place in places], texts, *arrays, (np.array(is_name[0], bool), np.array(is_name[1], bool))


class EncodedSource(NamedTuple):
    """Source lines as the model reads them: N positions, at each of which it reads one thing, or some pieces of a word.

    M things are read in all: M is N, or the number of pieces.
    """

    ids: Ints  # (M,) in the source vocabulary
    counts: Ints  # (lines,) how many of them each line has
    source_words: Ints  # (N,) what copying each position writes: target id, or V + first position of the same word
    translations: list[str | None]  # of each different word: what copying it writes instead, if anything
    forms: Ints  # (M,) how each one is written, if forms are learned, and how familiar its word is; else 0
    pieces: Ints | None  # (N,) with pointers.places words: how many pieces each position has


def encode_lines(
    lexicon: Lexicon,
    tokens: TokenArrays,
    own_target: TokenArrays | None = None,
    read_as: Mapping[str, str] | None = None,
) -> EncodedSource:
    """Source lines alone, from what can be pointed at in them: tokens, or pieces (`as_read`).

    `own_target` are the other sides of lines of the training text, which make their words no more familiar. `read_as`
    are words that are read in the pieces of other words, where words are pointed at and pieces are read.
    """
    translations = lexicon.translations(tokens.words)
    forms, form = _written_forms(tokens.words, translations)
    written = Side(form[tokens.ids], _offsets(tokens.counts))
    source_words = number_source_words(written, lexicon.target.ids(forms)[written.words], len(lexicon.target))
    read, pieces, token = tokens, None, np.arange(len(tokens.ids))
    if lexicon.config.points_at_words:
        assert lexicon.source.merges is not None
        if read_as:
            read = tokens._replace(words=[read_as.get(word, word) for word in tokens.words])
        read, token = split_into_pieces(read, lexicon.source.merges)
        pieces = np.bincount(token, minlength=len(tokens.ids)).astype(np.int32)
    ids, written_as = lexicon.source.ids(read.words)[read.ids], forms_read(read)
    if lexicon.familiar is not None:
        written_as += FORMS * lexicon.familiar.numbers(tokens, own_target)[token]
    return EncodedSource(ids, read.counts, source_words, translations, written_as, pieces)


def encode_pairs(
    lexicon: Lexicon, pairs: Pairs, lines: Any, linked: Ints | None = None, of_training: bool = False
) -> tuple[pa.RecordBatch, Statistics]:
    """Pairs as the corpus holds them: for each target word the choice to be learned. `lines` are their numbers.

    `linked` (M,) has the position of the source token that a word aligner links to each target token, or NOWHERE.
    `of_training`: these are pairs of the text that the lexicon was learned from.
    """
    V = len(lexicon.target)
    source, target = pairs.source, pairs.target
    points_at_words = lexicon.config.points_at_words
    token_of_position = token_of_step = None  # of pieces, where these are what is pointed at
    if not points_at_words and lexicon.source.merges is not None:
        pieces, token_of_step = as_read(target, lexicon.target)
        source, token_of_position = as_read(source, lexicon.source)
        source, target = _with_one_word_list(source, pieces)
    words = source.words
    encoded = encode_lines(lexicon, source, target if of_training else None)
    ids = lexicon.target.ids(words)[target.ids]
    written = None
    if lexicon.senses is not None:
        # Both sides in the words that are written: what is copied is translated on its way.
        _, form = _written_forms([*words, *words], [*encoded.translations, *[None] * len(words)])
        copied, own = form[: len(words)], form[len(words) :]
        written = _side(source._replace(ids=copied[source.ids])), _side(target._replace(ids=own[target.ids]))
    choices = choose(
        lexicon.config.pointers.policy, _side(source), _side(target), ids, V, entity=pairs.entity, written=written
    )
    steps = steps_of_pieces(lexicon, choices, target) if points_at_words else one_step_a_token(choices, target.counts)
    last, lengths = np.cumsum(steps.lengths), steps.lengths + 1  # EOS comes after each sentence's last word
    columns = {
        "source": list_column(encoded.counts, encoded.ids),
        "source_words": list_column(source.counts, encoded.source_words),
        "starts": list_column(source.counts, source.starts),
        "ends": list_column(source.counts, source.ends),
        "target": list_column(lengths, np.insert(steps.target, last, EOS)),
        "target_words": list_column(lengths, np.insert(steps.words, last, EOS)),
        "source_text": text_column(pairs.texts[0]),
        "target_text": text_column(pairs.texts[1]),
        "line": int_column(lines),
    }
    if lexicon.config.text.forms:
        if token_of_step is not None:
            forms = forms_of_pieces(pairs.target, target, token_of_step)
        elif points_at_words:  # a word that is written in pieces has a base as a shortlist word has
            written_choices = np.where(choices.target == UNK, FIRST, choices.target)
            forms = forms_to_write(lexicon, pairs.source, pairs.target, written_choices, encoded.translations)
            forms = steps.of_tokens(forms, of_pieces=WITHIN_WORD)
        else:
            forms = forms_to_write(lexicon, pairs.source, pairs.target, choices.target, encoded.translations)
        columns["source_forms"] = list_column(encoded.counts, encoded.forms)
        columns["target_forms"] = list_column(lengths, np.insert(forms, last, 0))
    if encoded.pieces is not None:
        columns["pieces"] = list_column(source.counts, encoded.pieces)
    if lexicon.config.pointers.guidance:
        links = np.full(len(steps.target), NOWHERE, np.int32)
        if linked is not None:
            if token_of_position is not None:
                linked = first_pieces(linked, pairs.source, pairs.target, source, token_of_position)
            links = linked[steps.token if token_of_step is None else token_of_step]
            links[steps.target >= V] = NOWHERE  # the pointer itself is taught there
        columns["links"] = list_column(lengths, np.insert(links, last, NOWHERE))
    unknown = choices.unknown
    statistics = Statistics(
        pointers=int((choices.target >= V).sum()),
        unknown=int(unknown.sum()),
        same_word=int((unknown & (choices.same != NOWHERE)).sum()),
        dictionary=int((unknown & (choices.copied != NOWHERE)).sum() - (unknown & (choices.same != NOWHERE)).sum()),
        source_pieces=len(encoded.ids),
        target_pieces=len(steps.target),
    )
    return pa.record_batch(columns, schema=schema(lexicon.config)), statistics


def as_read(tokens: TokenArrays, vocabulary: Vocabulary) -> tuple[TokenArrays, Longs | None]:
    """The lines in the vocabulary's units: tokens, or pieces with the token that each one is of."""
    return (tokens, None) if vocabulary.merges is None else split_into_pieces(tokens, vocabulary.merges)


def _written_forms(words: Sequence[str], translations: Iterable[str | None]) -> tuple[list[str], Ints]:
    """The different words that copying writes, and for each of `words` which of these it is."""
    return unique_numbers([other or word for word, other in zip(words, translations, strict=True)])


def _with_one_word_list(source: TokenArrays, target: TokenArrays) -> tuple[TokenArrays, TokenArrays]:
    """Both sides with the same list of different words."""
    words, number = unique_numbers(source.words + target.words)
    return (
        source._replace(words=words, ids=number[source.ids]),
        target._replace(words=words, ids=number[len(source.words) :][target.ids]),
    )


def _side(tokens: TokenArrays) -> Side:
    return Side(tokens.ids, _offsets(tokens.counts))


def _offsets(counts: Any) -> Ints:
    return np.append(0, np.cumsum(counts)).astype(np.int32)
