"""A run as one file, to be given to others: a zip archive, not compressed, that commands take where they take a run.

What is inside is a run's folder: unpacked by hand, it is one as well.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from pointing.errors import Misuse
from pointing.system.border import entering
from pointing.system.files import resolved, whole_file

BEGINS = b"PK\x03\x04"  # a zip archive
MOST_FILES, LONGEST_NAME = 50, 100
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same files always give the same archive


def is_exported(path: Path) -> bool:
    """True for a file that begins as an exported run does."""
    if not path.is_file():
        return False
    with entering(path, "a file that can be read"), path.open("rb") as file:
        return file.read(len(BEGINS)) == BEGINS


def folder_of(run: str | Path) -> Path:
    """The folder of a run: an exported one is unpacked, once, until this process ends."""
    path = Path(run)
    if not is_exported(path):
        return path
    about = path.stat()
    return _unpacked(resolved(path), about.st_mtime_ns, about.st_size)


@cache
def _unpacked(path: Path, changed: int, size: int) -> Path:
    """A run's folder inside of a temporary one, which is removed when Python ends."""
    temporary = Path(mkdtemp(prefix="pointing-"))
    folder = temporary / path.stem
    try:
        folder.mkdir()
        with entering(path, "a whole exported run; it was cut off, or is another program's"):
            _unpack(path, folder, size)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return folder


def _unpack(path: Path, folder: Path, size: int) -> None:
    with ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if len(set(names)) < len(names) or len(names) > MOST_FILES:
            raise ValueError("it has too many files, or two of the same name")
        if odd := [name[:LONGEST_NAME] for name in names if not _is_plain(name)]:
            raise ValueError(f"it holds {odd[0]!r}, which `pointing export` does not write")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("its files are larger than it is")
        for entry in entries:
            with archive.open(entry) as packed, (folder / entry.filename).open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)


def _is_plain(name: str) -> bool:
    """True for the name of a file that lies in no other folder."""
    return 0 < len(name) <= LONGEST_NAME and name.isascii() and name[0] != "." and not set(name) & set("/\\:\0")


def pack(folder: Path, names: Sequence[str], path: Path) -> None:
    """Writes files of a folder as an archive."""
    if odd := [name for name in names if not _is_plain(name)]:
        raise Misuse(f"a file of this name cannot be packed: {odd[0]}", folder)
    with whole_file(path) as part, ZipFile(part, "w", ZIP_STORED) as archive:
        for name in sorted(names):
            entry = ZipInfo(name, LONG_AGO)
            entry.external_attr = 0o644 << 16
            with (folder / name).open("rb") as file, archive.open(entry, "w", force_zip64=True) as packed:
                shutil.copyfileobj(file, packed, 1 << 20)
