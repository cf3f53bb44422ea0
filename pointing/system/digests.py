"""Hashes of files, each computed once: a file that has not been touched since is not read again.

As git and ccache do, a file is known again by its size, its inode, and the times at which it and its inode were last
changed (mtime and ctime, in nanoseconds). All four change or one does, whatever is done to a file: it is written to, in
place or with the time set back, or another one takes its name. Then it is hashed again; the hash decides.
"""

from __future__ import annotations

import io
import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pointing.errors import Failure, Misuse
from pointing.system.border import check_regular, digest, read_bytes, read_object
from pointing.system.files import write_text

SETTLED = 2_000_000_000  # ns: a file changed later than that may change again without another time, as clocks tick


class Identity(NamedTuple):
    """What says that a file is still the same."""

    bytes: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, about: os.stat_result) -> Identity:
        return cls(about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns)

    def is_settled(self) -> bool:
        return max(self.mtime_ns, self.ctime_ns) + SETTLED < time.time_ns()


class Digests:
    """The SHA-256 of files: of what was read through `watching` or `read_bytes`, of what is known, or computed now."""

    def __init__(self, known: dict[Identity, str] | None = None) -> None:
        self.known = known or {}
        self.used: dict[Identity, str] = {}  # of all files that were asked for
        self.as_read: dict[Path, str] = {}  # of the bytes that were read, whatever became of the file

    @classmethod
    def load(cls, path: Path) -> Digests:
        """What `save` wrote. A file that is missing, or damaged, costs nothing but time."""
        known = {}
        with suppress(Misuse, KeyError, TypeError, ValueError):
            for file in read_object(path, "hashes of files")["files"] if path.exists() else ():
                known[Identity(*(int(file[name]) for name in Identity._fields))] = str(file["sha256"])
        return cls(known)

    def save(self, path: Path) -> None:
        """Keeps the hashes of the files that were asked for, if there are new ones, and if it can be written."""
        if self.used.items() <= self.known.items():
            return
        files = [{**identity._asdict(), "sha256": sha} for identity, sha in self.used.items()]
        with suppress(Failure):
            write_text(path, json.dumps({"files": files}, indent=1) + "\n")

    def __call__(self, path: str | Path) -> str:
        path = Path(path)
        if path in self.as_read:
            return self.as_read[path]
        check_regular(path)
        before = Identity.of(path.stat())
        sha = self.known.get(before)
        if sha is None:
            sha = digest(path)
            self.keep(before, Identity.of(path.stat()), sha)
        else:
            self.used[before] = sha
        return sha

    def keep(self, before: Identity, after: Identity, sha: str) -> None:
        """Keeps a hash, unless the file changed while it was read, or may change without a new time."""
        if before == after and before.is_settled():
            self.used[before] = sha

    def watching(self, path: Path, file: io.BufferedReader) -> Any:
        """The open file, which is hashed while it is read to its end; as it is, if that was done before."""
        return file if path in self.as_read else _Hashed(self, path, file)

    def read_bytes(self, path: Path) -> bytes:
        """The content of a regular file, which is hashed, unless that was done before."""
        check_regular(path)
        before, data = Identity.of(path.stat()), read_bytes(path)
        if path not in self.as_read:
            self.note_read(path, before, Identity.of(path.stat()), sha256(data).hexdigest())
        return data

    def note_read(self, path: Path, before: Identity, after: Identity, sha: str) -> None:
        """Keeps the hash of a file that was read to its end."""
        self.as_read[path] = sha
        self.keep(before, after, sha)


class _Hashed(io.RawIOBase):
    def __init__(self, digests: Digests, path: Path, file: io.BufferedReader) -> None:
        self.digests, self.path, self.file = digests, path, file
        self.before, self.hash = Identity.of(os.fstat(file.fileno())), sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)
        self.hash.update(memoryview(buffer)[:count])
        if not count and self.path not in self.digests.as_read:
            after = Identity.of(os.fstat(self.file.fileno()))
            self.digests.note_read(self.path, self.before, after, self.hash.hexdigest())
        return count
