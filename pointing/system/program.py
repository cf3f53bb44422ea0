"""How this program was called: by which name, and as one of how many processes."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from shlex import quote


def program() -> str:
    """`pointing` if the shell finds this very program by that name; else the path that it was called by, quoted."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_relative(Path(sys.executable))} -m pointing"
    on_path = shutil.which("pointing")
    if not called.is_file() or (on_path is not None and Path(on_path).samefile(called)):
        return "pointing"
    return _relative(called)


def _relative(path: Path) -> str:
    """The path from the working folder, if it lies below that, as a shell reads it."""
    here = path.absolute()
    return quote(str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else path))


def is_first_process() -> bool:
    """True in the one process that writes files and messages: the first of those that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def process_count() -> int:
    """How many processes torchrun has started, with this one; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", 1))
