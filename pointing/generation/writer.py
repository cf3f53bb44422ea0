"""A hypothesis → words, each with its origin, and the text that they make up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from pointing.generation.beam import Hypothesis
from pointing.generation.confidence import Confidence, features
from pointing.generation.output import UNKNOWN, Choice, Floats, Output, Token, placed
from pointing.generation.reader import Line, Pieces
from pointing.text.entities import position_of_entity
from pointing.text.forms import case_of, join, write_word
from pointing.text.protected import Protector
from pointing.text.subwords import ends_word, without_mark
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary


class Writer:
    """Turns choices back into words. With `unk_replace` an UNK becomes the source word where l_t is highest.

    With `forms` words are written and joined as the hypothesis says, else as the tokenizer does it. With `confidence`
    outputs say how good they are to be expected.
    """

    def __init__(
        self,
        target: Vocabulary,
        tokenizer: Tokenizer,
        unk_replace: bool = False,
        forms: bool = False,
        confidence: Confidence | None = None,
    ) -> None:
        self.target, self.tokenizer, self.unk_replace, self.forms = target, tokenizer, unk_replace, forms
        self.confidence = confidence

    def write(self, hypotheses: Sequence[Hypothesis], line: Line, number: int) -> Output:
        """The best hypothesis, and the others of the list as far as their text differs."""
        different: dict[str, Output] = {}
        for hypothesis in hypotheses:
            tokens = self.tokens(hypothesis, line)
            text = self._text(tokens, line)
            if text not in different:
                different[text] = self._output(hypothesis, line, number, text, tokens)
        if not different:  # an empty line has no hypothesis, and an empty output
            return Output(number, "", 0.0, [], line.in_words)
        best, *alternatives = different.values()
        best.alternatives.extend(alternatives)
        return best

    def _output(self, hypothesis: Hypothesis, line: Line, number: int, text: str, tokens: Sequence[Token]) -> Output:
        copied: set[int | None] = {choice - len(self.target) for choice in hypothesis.choices.tolist()}
        if line.pieces is None:  # words that were put in an UNK's or an entity's place, or are a term
            copied |= {token.source for token in tokens}
        numbers = features(hypothesis, line, copied)
        output = Output(number, text, hypothesis.score, placed(text, tokens), line.in_words, features=numbers)
        if self.confidence is None:
            return output
        confidence = float(self.confidence.of(numbers))
        review = confidence < self.confidence.review_below or line.warning is not None
        return replace(output, confidence=confidence, review=review)

    def _text(self, tokens: Sequence[Token], line: Line) -> str:
        """The tokens as a line: as their forms say, or as a detokenizer joins them."""
        if not self.forms:
            return self.tokenizer.detokenize([token.text for token in tokens])
        if self.tokenizer.protector is None:
            return join((token.text, token.form) for token in tokens)
        protected = [token.source is not None and line.in_words.is_span(token.source) for token in tokens]
        return join_apart([(token.text, token.form) for token in tokens], protected, self.tokenizer.protector)

    def tokens(self, hypothesis: Hypothesis, line: Line) -> list[Token]:
        words = len(hypothesis.choices) - 1  # without the end of sentence
        probability = np.exp(hypothesis.log_p)
        tokens = [
            self._token(
                int(hypothesis.choices[t]),
                line,
                float(probability[t]),
                float(hypothesis.d[t]),
                None if hypothesis.location is None else hypothesis.location[t, : len(line.ids)],
                0 if hypothesis.forms is None else int(hypothesis.forms[t]),
            )
            for t in range(words)
        ]
        in_pieces = self.target.merges is not None
        if hypothesis.others is not None and not in_pieces:  # a piece of a word would say little
            tokens = [
                replace(token, choices=tuple(self._others(hypothesis, t, line))) for t, token in enumerate(tokens)
            ]
        if line.aliases:
            tokens = _with_terms(tokens, hypothesis.choices.tolist(), line)
        is_unk = (hypothesis.choices[:words] == UNK).tolist()
        if line.pieces is not None:
            tokens = _words_of_pieces(tokens, is_unk, line, line.pieces)
        elif in_pieces:  # what is copied is a whole word
            alone = [unk or token.source is not None for token, unk in zip(tokens, is_unk, strict=True)]
            tokens = [self._word(word) for word in _words(tokens, [token.text for token in tokens], alone)]
        return [self._in_case(token, line) for token in tokens] if self.forms else tokens

    def _word(self, word: Sequence[tuple[Token, str]]) -> Token:
        """A word that was written in pieces, or one that was copied whole."""
        pieces, text = [token for token, _ in word], "".join(without_mark(piece) for _, piece in word)
        first = pieces[0]
        if first.source is not None:
            return first
        locations = [token.location for token in pieces if token.location is not None]
        return replace(
            first,
            text=self.target.writing(text) if self.forms and len(pieces) == 1 else text,
            probability=math.prod(token.probability for token in pieces),
            d=fmean(token.d for token in pieces),
            location=np.mean(locations, 0) if locations else None,
        )

    def _others(self, hypothesis: Hypothesis, t: int, line: Line) -> Iterator[Choice]:
        """The best choices of a step, as words in the case that search gave to the one it took."""
        if hypothesis.others is None or hypothesis.log_p_others is None:
            return
        form = 0 if hypothesis.forms is None else int(hypothesis.forms[t])
        for choice, log_p in zip(hypothesis.others[t].tolist(), hypothesis.log_p_others[t].tolist(), strict=True):
            is_end = choice == EOS or choice == len(self.target) + len(line.starts)  # from the shortlist or pointed at
            if log_p > -math.inf and not is_end:
                token = self._token(choice, line, math.exp(log_p), 0.0, None, form)
                text = self._in_case(token, line).text if self.forms else token.text
                yield Choice(text, token.origin, token.source, token.probability)

    def _in_case(self, token: Token, line: Line) -> Token:
        """A token in the case of its form.

        Protected spans and kept terms stay as they are, and so does a glossary's term that has capitals. A term in
        lower case is written like other words.
        """
        if token.source is not None:
            term = line.translations[token.source]
            is_fixed = token.source in line.aliases and (term is None or term != term.lower())
            if is_fixed or line.in_words.is_span(token.source):
                return token
        return replace(token, text=write_word(token.text, token.form))

    def _token(
        self, choice: int, line: Line, probability: float, d: float, location: Floats | None, form: int
    ) -> Token:
        position = self._position(choice, line, location)
        rest = probability, d, location, form
        if position is None:
            word = self.target.word(choice)
            is_whole = self.target.merges is None  # the writing of pieces is known when they are joined
            text = UNKNOWN if word is None else self.target.writing(word) if self.forms and is_whole else word
            return Token(text, "shortlist", None, None, *rest)
        span = int(line.starts[position]), int(line.ends[position])
        translation = line.translations[position]
        if translation is not None and position in line.aliases:
            text = (
                translation
                if translation != translation.lower()
                else write_word(translation, case_of(line.raw(position)))
            )
            return Token(text, "glossary", position, span, *rest)
        if translation is not None:
            return Token(translation, "translated", position, span, *rest)
        return Token(line.raw(position), "copied", position, span, *rest)

    def _position(self, choice: int, line: Line, location: Floats | None) -> int | None:
        """The source position that a choice writes: a pointer's, an entity's, or that of an UNK to be replaced."""
        if choice >= len(self.target):
            return choice - len(self.target)
        if FIRST <= choice < FIRST + self.target.placeholders:
            return position_of_entity(choice - FIRST + 1, line.ids.tolist(), FIRST)
        if choice == UNK and self.unk_replace and location is not None and len(location):
            return int((location if line.protected is None else np.where(line.protected > 0, -1, location)).argmax())
        return None


def _with_terms(tokens: list[Token], choices: list[int], line: Line) -> list[Token]:
    """The tokens, where a shortlist word is that of a term which no pointer wrote as the glossary's."""
    pointed = {token.source for token in tokens}
    open_terms = {position: alias for position, alias in line.aliases.items() if position not in pointed}
    found = list(tokens)
    for place, (token, choice) in enumerate(zip(tokens, choices, strict=False)):
        position = next((position for position, alias in open_terms.items() if alias == choice), None)
        if token.source is None and position is not None:
            del open_terms[position]
            span = int(line.starts[position]), int(line.ends[position])
            term = line.translations[position] or token.text
            text = (
                token.text if term == token.text.lower() else term
            )  # a term in lower case as the word is usually written
            found[place] = replace(token, text=text, origin="glossary", source=position, span=span)
    return found


def _words(tokens: Sequence[Token], pieces: Sequence[str], alone: Sequence[bool]) -> list[list[tuple[Token, str]]]:
    """The tokens of each word with their `pieces`, which say whether it goes on; what is `alone` is a whole word."""
    words: list[list[tuple[Token, str]]] = []
    goes_on = False
    for token, piece, is_alone in zip(tokens, pieces, alone, strict=True):
        if not goes_on or is_alone:
            words.append([])
        words[-1].append((token, piece))
        goes_on = not (is_alone or ends_word(piece))
    return words


def _words_of_pieces(tokens: Sequence[Token], is_unk: Sequence[bool], line: Line, pieces: Pieces) -> list[Token]:
    """Pieces joined into words. An UNK is a word of its own: nothing says whether the word would go on."""
    forms = [token.text if token.source is None else pieces.forms[token.source] for token in tokens]
    alone = [unk and token.source is None for token, unk in zip(tokens, is_unk, strict=True)]
    return [_word_of_pieces(word, line, pieces) for word in _words(tokens, forms, alone)]


def _word_of_pieces(word: Sequence[tuple[Token, str]], line: Line, pieces: Pieces) -> Token:
    """Copied if all its pieces were copied, one after the other as they stand in the source; else the shortlist's."""
    tokens = [token for token, _ in word]
    probability, d = math.prod(token.probability for token in tokens), fmean(token.d for token in tokens)
    locations = [token.location for token in tokens if token.location is not None]
    J = len(pieces.words.ids)
    location = np.bincount(pieces.word, np.mean(locations, 0), J).astype(np.float32) if locations else None
    span = _span([token.source for token in tokens], line, pieces)
    if span is None:
        text = "".join(without_mark(form) for _, form in word)
        return Token(text, "shortlist", None, None, probability, d, location, tokens[0].form)
    source = int(pieces.word[tokens[0].source])
    return Token(line.text[slice(*span)], "copied", source, span, probability, d, location, tokens[0].form)


def _span(positions: list[int | None], line: Line, pieces: Pieces) -> tuple[int, int] | None:
    """The characters of pieces that stand one after the other in the source; None if they do not.

    None also for a part of a word whose pieces have no characters of their own (`subwords.split_into_pieces`).
    """
    first = positions[0]
    if first is None or positions != list(range(first, first + len(positions))):
        return None
    whole = np.flatnonzero(pieces.word == pieces.word[first])
    if len(positions) < len(whole) and line.starts[whole[0]] == line.starts[whole[-1]]:
        return None
    return int(line.starts[first]), int(line.ends[first + len(positions) - 1])


def join_apart(words: Sequence[tuple[str, int]], protected: Sequence[bool], protector: Protector) -> str:
    """Words with their forms as a line in which the `protected` ones, and nothing else, are protected spans.

    Where neighbours would make up a span together, or one would swallow another, a space keeps them apart.
    """
    words = list(words)
    for _ in range(len(words)):
        text, ends = join(words), [len(join(words[:place])) for place in range(1, len(words) + 1)]
        spans = [(end - len(word), end) for (word, _), end in zip(words, ends, strict=True)]
        found = {(start, end) for start, end, _ in protector(text)}
        wanted = {span for span, is_protected in zip(spans, protected, strict=True) if is_protected}
        wrong = found ^ wanted
        touching = [
            place
            for place in range(1, len(words))
            if spans[place][0] == spans[place - 1][1] and any(start <= spans[place][0] <= end for start, end in wrong)
        ]
        if not touching:
            return text
        word, number = words[touching[0]]
        words[touching[0]] = word, number % 4  # the same case after a space
    return join(words)
