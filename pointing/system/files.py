"""Reads lines of plain or gzipped text; writes files and folders as a whole or not at all."""

from __future__ import annotations

import glob
import gzip
import io
import os
import shutil
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from pointing.errors import Failure, Misuse

BOM = b"\xef\xbb\xbf"
BYTES_AT_A_TIME = 1 << 20


def read_lines(path: str | Path) -> Iterator[bytes]:
    """The lines of a plain or .gz file as bytes, without line ends (\\n or \\r\\n) or a leading byte order mark.

    They are bytes so that a line that is not UTF-8 does not stop the lines after it; `decode` reports such a line.
    """
    for block in read_blocks(path, 1000):
        yield from map(without_end, block)


def read_blocks(path: str | Path, lines: int) -> Iterator[list[bytes]]:
    """The same lines in lists of `lines` lines, with their line ends, which takes a third of the time."""
    with _open_bytes(Path(path)) as file:
        while block := list(islice(file, lines)):
            yield block


def without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\r\n").removesuffix(b"\n")


def count_lines(path: str | Path) -> int:
    """The number of lines that `read_lines` gives, in a fraction of its time."""
    count, last = 0, b"\n"
    with _open_bytes(Path(path)) as file:
        while piece := file.read(BYTES_AT_A_TIME):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")


def digest(path: str | Path) -> str:
    """SHA-256 of a file's content: a copy of the file has the same."""
    checksum = sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(BYTES_AT_A_TIME):
                checksum.update(piece)
    except OSError as error:
        raise Misuse(f"cannot be read: {error.strerror}", path) from None
    return checksum.hexdigest()


@contextmanager
def _open_bytes(path: Path) -> Iterator[io.BufferedReader]:
    """A plain or .gz file, open for reading, after its byte order mark; a file that cannot be read is misuse."""
    try:
        with path.open("rb") as raw:
            unzipped = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            file: io.BufferedReader = io.BufferedReader(cast(Any, unzipped), BYTES_AT_A_TIME)
            if file.peek(len(BOM)).startswith(BOM):
                file.read(len(BOM))
            yield file
    except FileNotFoundError:
        raise Misuse("there is no such file", path) from None
    except IsADirectoryError:
        raise Misuse("this is a folder, not a file of lines", path) from None
    except PermissionError:
        raise Misuse("this file may not be read: check its permissions", path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Misuse(f"this is not a whole gzip file ({error})", path) from None
    except (OSError, ValueError) as error:  # a name that is too long, a loop of links, a NUL in the name, …
        raise Misuse(f"this file cannot be read ({getattr(error, 'strerror', None) or error})", path) from None


def decode(line: bytes, path: str | Path, number: int) -> str:
    """One line as text; `number` is the line's number in the file, from 1."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Misuse(f"not UTF-8 (byte {error.start + 1} of the line)", path, number) from None


def read_text(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a file in which every line must be UTF-8, with their numbers, from 1."""
    for number, line in enumerate(read_lines(path), 1):
        yield number, decode(line, path, number)


def check_folder(path: str | Path, folder: Path | None = None) -> None:
    """Refuses a file that cannot be written because its folder is not there; a mistyped path makes no new folders.

    `folder` is the one that has to be there, if not the file's own.
    """
    folder = folder or Path(path).absolute().parent
    if not folder.exists():
        raise Misuse(f"there is no folder {folder}: make it first, or give another name", path)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise Misuse(f"cannot be written: {folder} is no folder that may be written to", path)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, to write to. It is renamed to `path` if the block ends well, else removed."""
    path = Path(path)
    with _explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{token_hex(4)}.part")
        part.touch(exist_ok=False)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder beside `path`, to fill. It replaces `path` if the block ends well, else it is removed."""
    path = Path(path).resolve()
    with _explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(path)
        part = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{token_hex(4)}.part")
        part.mkdir()
        try:
            yield part
            old = part.with_suffix(".old.part")
            old.mkdir()
            if path.exists():
                path.replace(old / path.name)
            part.replace(path)
            shutil.rmtree(old)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes `text` as the whole file. If that fails, the old file stays as it was."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def _explain_disk_errors(path: Path) -> Iterator[None]:
    """Turns errors of writing `path` into a failure that names the path and the reason."""
    try:
        yield
    except BrokenPipeError:  # comes from printing while the file is written, not from the file
        raise
    except OSError as error:
        # An error without a file's name is a full disk. An error with the name of another file is not explained here.
        if error.filename is None or f".{path.name}." in str(error.filename) or Path(error.filename) == path:
            raise Failure(
                f"{path}: cannot be written: {error.strerror or error}; nothing was left half-written"
            ) from error
        raise


def _remove_left_behind(path: Path) -> None:
    """Removes temporary folders beside `path` of processes of this machine that no longer exist: they were killed."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.{glob.escape(socket.gethostname())}.*.part"):
        process = part.name.removeprefix(f".{path.name}.{socket.gethostname()}.").split(".")[0]
        if process.isdecimal() and not _alive(int(process)):
            shutil.rmtree(part, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process exists, and belongs to another user
        pass
    return True
