"""A folder's manifest: the size and the SHA-256 of its files, so that a changed bit is noticed (`system/border.py`).

A file that is about to take another one's place is announced first: until its rename is over, the manifest lists both.
So neither a kill nor a power cut leaves a file that its own manifest refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pointing.errors import Misuse
from pointing.system.border import MANIFEST, MANIFEST_KIND, check_file, digest, read_manifest
from pointing.system.files import write_text


def describe(folder: Path, names: Iterable[str]) -> None:
    """Writes the manifest of a folder: those of the files that are there, as they are now."""
    there = sorted(name for name in names if (folder / name).is_file())
    _write(folder, {name: [_version(folder / name)] for name in there})


def announce(path: Path, part: Path) -> None:
    """Lists what `path` is to become, a file that is complete under the name `part`, beside what it is now."""
    versions = [_version(part), *([_version(path)] if path.is_file() else [])]
    _write(path.parent, {**read_manifest(path.parent), path.name: list(dict.fromkeys(versions))})


def problems(folder: Path) -> list[str]:
    """What is wrong with the files that a folder's manifest lists; all of them are read wholly."""
    return [problem for name in read_manifest(folder) if (problem := _problem(folder / name)) is not None]


def _problem(path: Path) -> str | None:
    try:
        check_file(path, wholly=True)
    except Misuse as problem:
        return str(problem)
    return None


def _version(path: Path) -> tuple[int, str]:
    return path.stat().st_size, digest(path)


def _write(folder: Path, files: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    listed = {name: [{"bytes": size, "sha256": sha} for size, sha in files[name]] for name in sorted(files)}
    write_text(folder / MANIFEST, json.dumps({"kind": MANIFEST_KIND, "files": listed}, indent=1) + "\n")
