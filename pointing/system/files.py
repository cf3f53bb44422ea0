"""Lines in, whole files out: reading plain or gzipped text, and writing all of a file or nothing of it."""

from __future__ import annotations

import glob
import gzip
import io
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pointing.errors import Failure, Misuse

BOM = b"\xef\xbb\xbf"
PIECE = 1 << 20  # bytes read at a time


def read_lines(path: str | Path) -> Iterator[bytes]:
    """The lines of a plain or .gz file as bytes, without line ends (\\n or \\r\\n) or a leading byte order mark.

    Bytes, because one line that is not UTF-8 must not cost the lines after it; `decode` says which line it was.
    """
    for block in read_blocks(path, 1000):
        yield from map(without_end, block)


def read_blocks(path: str | Path, lines: int) -> Iterator[list[bytes]]:
    """The same, so many lines at a time and with their ends on, which takes a third of the time."""
    with _opened(Path(path)) as file:
        while block := list(islice(file, lines)):
            yield block


def without_end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(b"\n") else line


def count_lines(path: str | Path) -> int:
    """How many lines `read_lines` gives, in a fraction of its time."""
    count, last = 0, b"\n"
    with _opened(Path(path)) as file:
        while piece := file.read(PIECE):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")


def digest(path: str | Path) -> str:
    """Of what is in a file, byte by byte: a copy of it elsewhere has the same."""
    found = sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(PIECE):
                found.update(piece)
    except OSError as error:
        raise Misuse(f"cannot be read: {error.strerror}", path) from None
    return found.hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """A plain or .gz file of bytes; what cannot be read is misuse."""
    try:
        with path.open("rb") as plain:
            whole = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
            file: io.BufferedReader = io.BufferedReader(cast(Any, whole), PIECE)
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
    """One line as text; number counts from 1."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Misuse(f"not UTF-8 (byte {error.start + 1} of the line)", path, number) from None


def read_text(path: str | Path) -> Iterator[tuple[int, str]]:
    """Numbered lines, counted from 1, of a file in which every line must be UTF-8."""
    for number, line in enumerate(read_lines(path), 1):
        yield number, decode(line, path, number)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; renamed to `path` if the block ends well, else removed."""
    path = Path(path)
    with _say_what_the_disk_says(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            part.chmod(0o666 & ~_umask())
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder beside `path` to fill; takes the place of `path` if the block ends well, else is removed."""
    path = Path(path).resolve()
    with _say_what_the_disk_says(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_away(path)
        mark = f".{path.name}.{socket.gethostname()}.{os.getpid()}."
        part = Path(tempfile.mkdtemp(prefix=mark, suffix=".part", dir=path.parent))
        try:
            part.chmod(0o777 & ~_umask())
            yield part
            if path.exists():
                old = Path(tempfile.mkdtemp(prefix=mark, suffix=".old.part", dir=path.parent))
                path.replace(old / path.name)
                part.replace(path)
                shutil.rmtree(old)
            else:
                part.replace(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """`text` as the whole of the file, or the file untouched."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def _say_what_the_disk_says(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # not the file's, but of what is printed while it is written
        raise
    except OSError as error:
        # An error without a name is a full disk; one with the name of another file is somebody else's to explain.
        if error.filename is None or f".{path.name}." in str(error.filename) or Path(error.filename) == path:
            raise Failure(
                f"{path}: cannot be written: {error.strerror or error}; nothing was left half-written"
            ) from error
        raise


def _clear_away(path: Path) -> None:
    """Removes what a run that was killed on this machine left beside `path`; another run may still be at work."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.{glob.escape(socket.gethostname())}.*.part"):
        process = part.name.removeprefix(f".{path.name}.{socket.gethostname()}.").split(".")[0]
        if process.isdecimal() and not _alive(int(process)):
            shutil.rmtree(part, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        pass
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
