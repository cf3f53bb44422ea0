"""What can go wrong, told apart by whose turn it is: the user's (exit code 2) or the machine's (exit code 1)."""

from __future__ import annotations

from pathlib import Path


class Failure(Exception):
    """A failure while running: exit code 1, one line on stderr."""


class Misuse(Failure):
    """Bad input or misuse: exit code 2, one line on stderr that says what, where and what to do."""

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)


class Stopped(Failure):
    """Ended by a signal, in good order: exit code 130, one line that says how to go on."""


def missing_extra(package: str, extra: str) -> Misuse:
    """The error for a feature whose optional dependency is not installed."""
    return Misuse(f"this needs {package}, which is not installed: pip install 'pointing[{extra}]'")
