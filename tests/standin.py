"""A translator without a model, for tests of files: it writes words in capitals, and keeps what is protected."""

import numpy as np

from pointing.config import Search
from pointing.generation.output import Output, Token
from pointing.generation.reader import Line
from pointing.text.protected import PRESETS, Protector

PROTECT = Protector(PRESETS["software"])
NOTHING = np.zeros(0, np.int32)


def capitals(text):
    """The text in capitals, protected spans as they are."""
    parts, done = [], 0
    for span in PROTECT(text):
        parts += [text[done : span.start].upper(), text[span.start : span.end]]
        done = span.end
    return "".join([*parts, text[done:].upper()])


class StandIn:
    """Answers as `generation.generator.Generator` does; `hypotheses(line)` are the texts of its n-best list.

    `confidence(line)` is how sure it is; below 0.5 it asks for a review.
    """

    def __init__(self, hypotheses=lambda line: [capitals(line)], warning=None, confidence=lambda line: None):
        self.hypotheses, self.warning, self.confidence = hypotheses, warning, confidence
        self.asked = []

    def stream(self, lines, settings=None, *, window=None, **more):
        self.settings, self.more = settings, more
        for number, line in enumerate(lines, 1):
            self.asked.append(line)
            best, *others = [self.output(number, line, text) for text in self.hypotheses(line)]
            best.alternatives.extend(others)
            yield best

    def output(self, number, line, text):
        source = Line(line, NOTHING, NOTHING, NOTHING, NOTHING, [], self.warning(line) if self.warning else None)
        tokens, sure = [self.token(line, word) for word in text.split()], self.confidence(line)
        return Output(number, text, -0.5, tokens, source, [], sure, sure is not None and sure < 0.5)

    def token(self, line, word):
        at = line.find(word)
        if at < 0:
            return Token(word, "shortlist", None, None, 0.9, 0.9)
        return Token(word, "copied", 0, (at, at + len(word)), 0.9, 0.1)


SEARCH = Search(beam=3)
