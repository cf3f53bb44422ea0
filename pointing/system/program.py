"""How this program is called, for commands that are printed for the user to type."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def program() -> str:
    """`pointing` if the shell finds this very program by that name; else the path that it was called by."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_relative(Path(sys.executable))} -m pointing"
    on_path = shutil.which("pointing")
    if on_path is not None and called.exists() and Path(on_path).samefile(called):
        return "pointing"
    return str(_relative(called)) if called.exists() else "pointing"


def _relative(path: Path) -> Path:
    """From the working folder, if it lies below that."""
    here = path.absolute()
    return here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else path
