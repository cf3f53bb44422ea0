"""GNU msgfmt's verdict on a PO file, with its entries for review counted like all others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NOT_FOUND = "msgfmt not found"
SECONDS = 120
_PLACE = re.compile(r":(\d+): (?!warning:)(.*)")


def verdict(path: Path) -> str:
    """`accepted`, `rejected: …` with what it says first, or that there is no msgfmt on this machine."""
    lines = _said(path)
    if isinstance(lines, str):
        return lines
    if not lines:
        return "accepted"
    more = f" (and {len(lines) - 1} lines more)" if len(lines) > 1 else ""
    return f"rejected: {lines[0]}{more}"


def complaints(path: Path) -> list[tuple[int, str]] | None:
    """What msgfmt finds wrong, with the lines, counted from 1; None if it could not be asked."""
    lines = _said(path)
    if isinstance(lines, str):
        return None
    found = [_PLACE.match(line.removeprefix(str(path))) for line in lines]
    return [(int(match[1]), match[2]) for match in found if match]


def version() -> str:
    """The version of gettext that msgfmt is part of."""
    program = shutil.which("msgfmt")
    if program is None:
        return NOT_FOUND
    result = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    return result.stdout.partition("\n")[0].rpartition(" ")[2]


def _said(path: Path) -> list[str] | str:
    """What msgfmt writes if it refuses a file, no lines if it accepts it, or in words why it could not be asked."""
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
        return []
    lines = [line.replace(f"{path.absolute()}:", f"{path}:") for line in result.stderr.splitlines() if line.strip()]
    return lines or ["no reason given"]
