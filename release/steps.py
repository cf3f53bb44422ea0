"""What a check does, one line each: said when it begins, counted when it is wrong, and gone on with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

OURS = ("PYTHONPATH", "VIRTUAL_ENV")  # variables that would bring packages of another environment in
SECONDS = 3600  # for one command; installing may take long


class Steps:
    """Runs commands in one folder and an environment of its own, and keeps what was wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.passed = 0
        self.environment = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }

    def expect(self, good: bool, what: str, found: object = "") -> bool:
        """Counts and prints a result."""
        if good:
            self.passed += 1
            print(f"  ok     {what}", flush=True)
        else:
            self.wrong.append(what)
            print(f"  WRONG  {what}\n{found}".rstrip(), flush=True)
        return good

    def run(self, command: Sequence[str | Path], lines: str = "") -> subprocess.CompletedProcess[str]:
        """A command to its end."""
        return subprocess.run(
            [str(part) for part in command],
            **{"cwd": self.folder, "env": self.environment, "input": lines, "timeout": SECONDS},
            **{"capture_output": True, "text": True, "check": False},
        )

    def must(self, what: str, command: Sequence[str | Path], lines: str = "") -> str:
        """A command that has to end well; its standard output. A check cannot go on without some of them."""
        began = time.monotonic()
        done = self.run(command, lines)
        took = f"{what} ({time.monotonic() - began:.0f} s)"
        if not self.expect(done.returncode == 0, took, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"):
            raise SystemExit(self.summary())
        return done.stdout

    def summary(self) -> str:
        """One line; the list of what was wrong before it."""
        wrong = "".join(f"wrong: {what}\n" for what in self.wrong)
        return f"\n{wrong}{self.passed} checks passed, {len(self.wrong)} did not (Python {sys.version.split()[0]})"
