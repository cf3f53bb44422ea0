"""GNU msgfmt's verdict on a PO file, with its entries for review counted like all others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

NOT_FOUND = "msgfmt not found"
SECONDS = 120


def verdict(path: Path) -> str:
    """`accepted`, `rejected: …` with what it says first, or that there is no msgfmt on this machine."""
    program = shutil.which("msgfmt")
    if program is None:
        return NOT_FOUND
    command = [program, "--check-format", "--use-fuzzy", "--output-file", os.devnull, str(path.absolute())]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"msgfmt failed: {error}"
    if result.returncode == 0:
        return "accepted"
    lines = [line.replace(f"{path.absolute()}:", f"{path}:") for line in result.stderr.splitlines() if line.strip()]
    more = f" (and {len(lines) - 1} lines more)" if len(lines) > 1 else ""
    return f"rejected: {lines[0].strip() if lines else 'no reason given'}{more}"
