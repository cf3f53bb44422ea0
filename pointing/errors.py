"""What can go wrong, told apart by whose turn it is: the user's (exit code 2) or the machine's (exit code 1)."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any


class Failure(Exception):
    """A failure while running: exit code 1, one line on stderr."""


class Misuse(Failure):
    """Bad input or misuse: exit code 2, one line on stderr that says what, where and what to do."""

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)


class Stopped(Failure):
    """Ended by a signal, in good order: exit code 130, one line that says how to go on."""


class Deserted(Failure):
    """Another process of the same run has ended, which has said why if it could; this one cannot go on alone."""


def missing_extra(package: str, extra: str) -> Misuse:
    """The error for a feature whose optional dependency is not installed."""
    return Misuse(f"this needs {package}, which is not installed: pip install 'pointing[{extra}]'")


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlong, _SHORT.maxstring, _SHORT.maxother = 2, 40, 80, 80
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = 4


def shown(value: Any) -> str:
    """A value for a message, short whatever it is: a message must not fill the memory, or the screen."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
