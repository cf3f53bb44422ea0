"""A message as the parts that a model translates: lines, and columns of a line, without their accelerators.

The white space between parts is kept as it is: line ends, indents, and runs of spaces or tabs, by which the help text
of a program has columns. Of each part it is known where its characters stood, so that what was copied can be shown in
the message itself.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pointing.text.accelerators import Accelerator, with_accelerator, without_accelerator
from pointing.text.protected import Protector

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Piece:
    """A part of a message, and the white space after it."""

    start: int  # the character of the message at which the part begins
    core: str  # what is translated: the part without its accelerator's mark
    after: str  # white space
    accelerator: Accelerator | None = None
    mark_at: int = 0  # the character of the part at which the accelerator's mark stands
    mark_width: int = 0  # characters that were taken out with it
    is_asked: bool = True  # False: there are no words in it, and it is copied as it is

    def restored(self, translation: str) -> str:
        """A translation of `core`, with the accelerator and the white space back."""
        if self.accelerator is not None:
            translation = with_accelerator(translation, *self.accelerator)
        return translation + self.after

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Characters of `core` as characters of the message."""
        start += self.mark_width * (start >= self.mark_at)
        end += self.mark_width * (end > self.mark_at)
        return self.start + start, self.start + end


def pieces(message: str, protect: Protector, accelerators: bool) -> list[Piece]:
    """The parts of a message, in order; put together again, they are the message."""
    found, done = [], 0
    for start, end in _gaps(message, protect):
        found.append(_piece(done, message[done:start], message[start:end], protect, accelerators))
        done = end
    return [*found, _piece(done, message[done:], "", protect, accelerators)]


def _gaps(message: str, protect: Protector) -> Iterator[tuple[int, int]]:
    """White space that is kept: at the ends, with a line end or a tab in it, or of more than one character."""
    spans = deque(protect(message))
    for match in _SPACE.finditer(message):
        while spans and spans[0].end <= match.start():
            spans.popleft()
        is_inside = bool(spans) and spans[0].start < match.start()  # as in <a  href="">
        is_end = match.start() == 0 or match.end() == len(message)
        if not is_inside and (is_end or len(match[0]) > 1 or match[0] in "\n\t\r"):
            yield match.span()


def _piece(start: int, core: str, after: str, protect: Protector, accelerators: bool) -> Piece:
    if not has_words(core, protect):
        return Piece(start, core, after, is_asked=False)
    plain, accelerator = without_accelerator(core) if accelerators else (core, None)
    if accelerator is None:
        return Piece(start, core, after)
    at = next((i for i, (one, other) in enumerate(zip(core, plain, strict=False)) if one != other), len(plain))
    return Piece(start, plain, after, accelerator, at, len(core) - len(plain))


def has_words(text: str, protect: Protector) -> bool:
    """True if there is a letter outside of the protected spans."""
    done, rest = 0, []
    for span in protect(text):
        rest.append(text[done : span.start])
        done = span.end
    return any(character.isalpha() for part in [*rest, text[done:]] for character in part)
