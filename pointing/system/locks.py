"""One writer for a folder, by a lock that ends with the process that holds it, however that ends.

It is `flock` on a small file, which says who holds it. On NFS it holds between machines as far as the server has locks.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pointing.errors import Failure, Misuse
from pointing.system.progress import say

LOCK = ".lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}  # of some file systems
LONGEST = 200  # characters of what the file says that are repeated


class Lock:
    """The lock that this process holds."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    def holds(self) -> bool:
        """False if its file is gone: somebody has removed or moved the folder."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False


@contextmanager
def sole_writer(folder: Path, path: Path | None = None) -> Iterator[Lock]:
    """Holds the lock of a folder, which is made if it is not there; a second process is told who holds it.

    `path` is the lock's file, if it is not in the folder. A folder that was made here and stays empty is removed.
    """
    path = path or folder / LOCK
    is_new = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _taken(path, folder)
    except (FileExistsError, NotADirectoryError):
        raise Misuse("this is a file, or lies below one: give a folder", folder) from None
    except OSError as error:
        raise Failure(f"{folder}: cannot be written to: {error.strerror or error}") from None
    lock = Lock(path, descriptor)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _holder().encode(), 0)
        yield lock
    finally:
        if lock.holds():
            path.unlink()
        os.close(descriptor)
        if is_new:
            with suppress(OSError):  # there is something in it
                path.parent.rmdir()


def _holder() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"


def _taken(path: Path, folder: Path) -> int:
    """The open file, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            if not _lock(descriptor, folder):
                holder = os.pread(descriptor, LONGEST, 0).decode("utf-8", "replace") or "another process"
                what = f"somebody writes into this folder ({holder})"
                raise Misuse(f"{what}: wait until that has ended, or choose another folder", folder)
            if Lock(path, descriptor).holds():  # else its last holder has just removed it
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> bool:
    """False if another process holds it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        say(f"warning: {folder}: there are no locks on this file system: take care that nobody else writes there")
    return True
