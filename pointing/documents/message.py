"""A message as the lines that a model translates, each without white space at its ends and without its accelerator.

Of each line it is known where its characters stood, so that what was copied can be shown in the message itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointing.text.accelerators import Accelerator, with_accelerator, without_accelerator
from pointing.text.protected import Protector


@dataclass(frozen=True)
class Piece:
    """A line of a message: `before` + the line + `after` is what stands there."""

    start: int  # the character of the message at which `core` begins
    before: str  # white space
    core: str  # what is translated: the line without its accelerator's mark
    after: str  # white space, with the line's end
    accelerator: Accelerator | None = None
    mark_at: int = 0  # the character of the line at which the accelerator's mark stands
    mark_width: int = 0  # characters that were taken out with it
    is_asked: bool = True  # False: there are no words in it, and it is copied as it is

    def restored(self, translation: str) -> str:
        """A translation of `core`, with the accelerator and the white space back."""
        if self.accelerator is not None:
            translation = with_accelerator(translation, *self.accelerator)
        return f"{self.before}{translation}{self.after}"

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Characters of `core` as characters of the message."""
        start += self.mark_width * (start >= self.mark_at)
        end += self.mark_width * (end > self.mark_at)
        return self.start + start, self.start + end


def pieces(message: str, protect: Protector, accelerators: bool) -> list[Piece]:
    """The lines of a message, in order; put together again, they are the message."""
    found, offset = [], 0
    for line in message.split("\n"):
        core = line.strip()
        begin = len(line) - len(line.lstrip()) if core else len(line)
        before, after = line[:begin], line[begin + len(core) :]
        is_last = offset + len(line) == len(message)
        found.append(_piece(offset + begin, before, core, after + "\n" * (not is_last), protect, accelerators))
        offset += len(line) + 1
    return found


def _piece(start: int, before: str, core: str, after: str, protect: Protector, accelerators: bool) -> Piece:
    if not has_words(core, protect):
        return Piece(start, before, core, after, is_asked=False)
    plain, accelerator = without_accelerator(core) if accelerators else (core, None)
    if accelerator is None:
        return Piece(start, before, core, after)
    at = next((i for i, (one, other) in enumerate(zip(core, plain, strict=False)) if one != other), len(plain))
    return Piece(start, before, plain, after, accelerator, at, len(core) - len(plain))


def has_words(text: str, protect: Protector) -> bool:
    """True if there is a letter outside of the protected spans."""
    done, rest = 0, []
    for span in protect(text):
        rest.append(text[done : span.start])
        done = span.end
    return any(character.isalpha() for part in [*rest, text[done:]] for character in part)
