"""What reaches a terminal: no controls from texts, one last line for whatever went wrong, and the exit code."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from pointing.errors import Deserted, Failure, Misuse, Stopped
from pointing.system.program import is_first_process

SECONDS_FOR_THE_FIRST = 2.0  # in which the first process says what is wrong, if it finds the same, and all others end
_COMMAND = re.compile("[\\0-\\x08\\x0a-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def visible(text: str) -> str:
    """The text without characters that could command a terminal, or make a page invalid: � takes their place.

    So do controls that turn the direction of writing around: they would show other words than there are.
    """
    return _COMMAND.sub("�", text)


@contextmanager
def ending() -> Iterator[None]:
    """Runs a command and ends as it ends: 0 done, 1 a failure, 2 misuse; one line on stderr, no traceback.

    Of several processes the first one speaks. Another one says what only it has found.
    """
    _open_closed_streams()
    try:
        yield
    except (Deserted, Stopped) as failure:
        _end(failure if is_first_process() else None, 130 if isinstance(failure, Stopped) else 1)
    except Failure as failure:
        if not is_first_process():
            time.sleep(SECONDS_FOR_THE_FIRST)
        _end(failure, 2 if isinstance(failure, Misuse) else 1)
    except BrokenPipeError:
        if sys.stdout is not None:  # nobody reads on: nothing to say at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _end(f"{where}cannot be read or written: {error.strerror or error}", 1)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error):  # torch's, on CPU and GPU
            raise
        what = "there is not enough memory for this: take a smaller model, batch or beam"
        _end(f"{what}{''.join(f' ({line})' for line in str(error).splitlines()[:1])}", 1)
    except SystemExit as stop:
        if stop.code == 130:  # Ctrl-C, which typer has turned into this
            _tell("stopped")
        raise


def _open_closed_streams() -> None:
    """Makes up for streams that the caller has closed, so that no file gets their numbers.

    What is printed may name files whose names are not UTF-8: they are printed with backslashes.
    """
    for number in range(3):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _tell(message: object) -> None:
    """The last line, on standard error if somebody can hear it."""
    with suppress(OSError, ValueError):
        print(f"pointing: {visible(' '.join(str(message).splitlines()))}", file=sys.stderr, flush=True)


def _end(message: object, code: int) -> NoReturn:
    if message is not None:
        _tell(message)
    sys.exit(code)
