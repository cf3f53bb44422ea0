"""How the tokens of a corpus are written, as the model reads and predicts it: a form for each (text/forms.py).

N tokens of the source, M of the target; V shortlist words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pointing.corpus.lexicon import Lexicon
from pointing.corpus.pointers import Ints
from pointing.text.forms import AS_IT_IS, case_between, case_of, cases_between, form
from pointing.text.token_arrays import Longs, TokenArrays, running_sums
from pointing.text.vocabulary import UNK


def forms_read(tokens: TokenArrays) -> Ints:
    """How each source token, or piece of one, is written; 0 if that is not known."""
    if tokens.writing is None:
        return np.zeros(len(tokens.ids), np.int32)
    surfaces, ids, spaces = tokens.writing
    return form(spaces, np.fromiter(map(case_of, surfaces), np.int32, len(surfaces))[ids])


def forms_to_write(
    lexicon: Lexicon, source: TokenArrays, target: TokenArrays, choices: Ints, translations: Sequence[str | None]
) -> Ints:
    """How each target word is written (M,), from the choices to be learned; both sides are words, not pieces.

    A pointer's base is what it copies, a shortlist word's its usual writing. Of other words only the space counts.
    """
    V = len(lexicon.target)
    assert source.writing is not None
    assert target.writing is not None
    surfaces, ids, spaces = target.writing

    # Shortlist words: each writing is compared once.
    is_used = np.zeros(len(surfaces), bool)
    is_used[ids[(choices != UNK) & (choices < V)]] = True
    case_of_writing, word_of_writing = np.full(len(surfaces), AS_IT_IS, np.int32), target.word_of_writing()
    for place in np.flatnonzero(is_used).tolist():
        usual = lexicon.target.writing(source.words[word_of_writing[place]])
        case_of_writing[place] = case_between(usual, surfaces[place])
    cases = np.where(choices == UNK, AS_IT_IS, case_of_writing[ids])

    # Pointers: what they copy, or its translation.
    pointers = np.flatnonzero(choices >= V)
    copied = (np.repeat(running_sums(source.counts)[:-1], target.counts) + choices - V)[pointers]  # token's number
    bases = [*source.writing.surfaces, *(word or "" for word in translations)]
    is_translated = np.array([word is not None for word in translations], bool)[source.ids[copied]]
    translation = len(source.writing.surfaces) + source.ids[copied].astype(np.int64)
    base = np.where(is_translated, translation, source.writing.ids[copied])
    cases[pointers] = cases_between(bases, base, surfaces, ids[pointers])
    return form(spaces, cases)


def forms_of_pieces(target: TokenArrays, pieces: TokenArrays, word_of_piece: Longs) -> Ints:
    """How each target piece is written: the first one of a word has the word's form, whose base is the word itself."""
    assert target.writing is not None
    assert pieces.writing is not None
    surfaces, ids, _ = target.writing
    cases = cases_between(target.words, target.ids.astype(np.int64), surfaces, ids)[word_of_piece]
    goes_on = np.append(False, word_of_piece[1:] == word_of_piece[:-1])[: len(word_of_piece)]
    return form(pieces.writing.spaces, np.where(goes_on, AS_IT_IS, cases))
