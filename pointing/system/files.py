"""Reads lines of plain or gzipped text; writes files and folders as a whole or not at all."""

from __future__ import annotations

import errno
import glob
import gzip
import io
import os
import shutil
import socket
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, cast

from pointing.errors import Failure, Misuse
from pointing.system.border import BYTES_AT_A_TIME, check_file, check_readable, check_regular
from pointing.system.locks import sole_writer

BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 1 << 24  # bytes; a file without line ends must not fill the memory
Watching = Callable[[Path, io.BufferedReader], Any]  # an open file → the same, seen by somebody
LONGEST_NAME = 150  # bytes of a name that names of temporary files begin with


def read_lines(path: str | Path) -> Iterator[bytes]:
    """The lines of a plain or .gz file as bytes, without line ends (\\n or \\r\\n) or a leading byte order mark.

    They are bytes so that a line that is not UTF-8 does not stop the lines after it; `decode` reports such a line.
    """
    for block in read_blocks(path, 1000):
        yield from map(without_end, block)


def read_blocks(path: str | Path, lines: int, watching: Watching | None = None) -> Iterator[list[bytes]]:
    """The same lines in lists of `lines` lines, with their line ends, which takes a third of the time.

    The bytes come through `watching`, if it is given: `Digests.watching` hashes them.
    """
    with _open_bytes(Path(path), watching) as file:
        read, done = _lines_of(file), 0
        while block := list(islice(read, lines)):
            if max(map(len, block)) == LONGEST_LINE:
                done += next(number for number, line in enumerate(block) if len(line) == LONGEST_LINE)
                raise _too_long(path, done + 1)
            done += len(block)
            yield block


def read_as_they_come(file: BinaryIO, name: str | Path) -> Iterator[bytes]:
    """The same lines, one by one, of what somebody else may still be writing: standard input, or a pipe."""
    for number, line in enumerate(_lines_of(file), 1):
        if len(line) == LONGEST_LINE:
            raise _too_long(name, number)
        yield line if number > 1 else line.removeprefix(BOM)


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, cut where they would fill the memory."""
    return iter(partial(file.readline, LONGEST_LINE), b"")


def _too_long(name: str | Path, number: int) -> Misuse:
    return Misuse(f"this line has {LONGEST_LINE:,} bytes or more: is this text?", name, number)


def without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\r\n").removesuffix(b"\n")


def count_lines(path: str | Path) -> int:
    """The number of lines that `read_lines` gives, in a fraction of its time. What is counted is read again later."""
    count, last = 0, b"\n"
    check_regular(Path(path))
    with _open_bytes(Path(path)) as file:
        while piece := file.read(BYTES_AT_A_TIME):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")


def about_lines(path: Path) -> int:
    """About how many lines a file has, from its first megabyte; 0 only if it is empty."""
    check_regular(path)
    with _open_bytes(path) as file:
        start = file.read(BYTES_AT_A_TIME)
        lines = start.count(b"\n") + (start[-1:] not in (b"\n", b""))
        raw: Any = file.raw
        compressed = raw.fileobj.tell() if path.suffix == ".gz" else len(start)
        return lines if not file.peek(1) else max(lines, round(lines * path.stat().st_size / compressed))


@contextmanager
def _open_bytes(path: Path, watching: Watching | None = None) -> Iterator[io.BufferedReader]:
    """A plain or .gz file, open for reading, after its byte order mark; a file that cannot be read is misuse."""
    check_readable(path)
    if path.is_file():
        check_file(path)
    try:
        with path.open("rb") as opened:
            raw: Any = opened if watching is None else watching(path, opened)
            unzipped = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            file: io.BufferedReader = io.BufferedReader(cast(Any, unzipped), BYTES_AT_A_TIME)
            if file.peek(len(BOM)).startswith(BOM):
                file.read(len(BOM))
            yield file
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


def resolved(path: str | Path) -> Path:
    """The path without links and `..`; `Path.resolve` fails at a loop of links before Python 3.13."""
    return Path(os.path.realpath(path))


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, to write to. It is renamed to `path` if the block ends well, else removed.

    Then it is on the disk, its name included: a power cut leaves the old file or the new one.
    """
    path = Path(path)
    with _explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(path)
        part = _part(path)
        part.touch(exist_ok=False)
        try:
            yield part
            to_disk(part)
            part.replace(path)
            to_disk(path.parent)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder beside `path`, to fill. It replaces `path` if the block ends well, else it is removed.

    Its files are on the disk before. One process at a time may do this. See also `finish_replacing`.
    """
    path = resolved(path)
    with _explain_disk_errors(path), sole_writer(path, path.with_name(f".{path.name}.lock")):
        _remove_left_behind(path)
        part = _part(path)
        part.mkdir()
        try:
            yield part
            for each in [*part.rglob("*"), part]:
                to_disk(each)
            old = part.with_suffix(OLD)
            old.mkdir()  # from here on the new folder is known to be whole
            if path.exists():
                path.replace(old / path.name)
            part.replace(path)
            to_disk(path.parent)
            shutil.rmtree(old)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def finish_replacing(path: Path) -> None:
    """Ends what `whole_folder` was killed in, between its two renames, when there was no folder of that name."""
    if not path.exists():
        for old in _left_behind(path, OLD):
            part = old.with_name(f"{old.name.removesuffix(OLD)}.part")
            if part.exists() and not path.exists():
                part.replace(path)


def to_disk(path: Path) -> None:
    """Waits until what was written to a file, or the names in a folder, would survive a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # nothing of ours: a link to nowhere
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # devices, and folders of some file systems
            raise
    finally:
        os.close(descriptor)


def keep_apart(
    reads: Iterable[str | Path | None], writes: Iterable[str | Path | None], advice: str = "give another name"
) -> None:
    """Refuses to write a file, or to replace a folder, that is read, whatever the names by which both are called.

    Every command asks here before it begins.
    """
    inputs = {resolved(path): path for path in reads if path is not None}
    for path in writes:
        if path is None:
            continue
        target = resolved(path)
        for real, name in inputs.items():
            is_inside = target.is_dir() and real.is_relative_to(target)
            if real == target or is_inside or (real.is_file() and target.is_file() and real.samefile(target)):
                read = "which is read" if str(name) == str(path) else f"for {name} is read"
                raise Misuse(f"this would be written over, {read}: {advice}", path)


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


OLD = ".old.part"  # ends the name of the folder that keeps the old one while it is replaced


def _part(path: Path) -> Path:
    """A free name beside `path`, which says whose it is."""
    return path.with_name(f"{_begin_of_parts(path)}{os.getpid()}.{token_hex(4)}.part")


def _begin_of_parts(path: Path) -> str:
    name = path.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = sha256(os.fsencode(name)).hexdigest()[:16]
    return f".{name}.{socket.gethostname()[:50]}."


def _left_behind(path: Path, suffix: str = ".part") -> list[Path]:
    """Temporary files and folders beside `path` of processes of this machine that no longer exist: they were killed."""
    begin = _begin_of_parts(path)
    found = []
    for part in path.parent.glob(f"{glob.escape(begin)}*{suffix}"):
        process = part.name.removeprefix(begin).split(".")[0]
        if process.isdecimal() and not _alive(int(process)):
            found.append(part)
    return found


def _remove_left_behind(path: Path) -> None:
    finish_replacing(path)
    for part in _left_behind(path):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process exists, and belongs to another user
        pass
    return True
