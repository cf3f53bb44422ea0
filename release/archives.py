"""What has to be in the sdist and in the wheel, and what may not be: data, runs, anything that git does not know."""

from __future__ import annotations

import ast
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

from release.steps import Steps

MADE = {"PKG-INFO"}  # by the build
MOST_BYTES = 20_000_000  # of an sdist; more means that somebody's data are in it


def known_files(root: Path) -> set[str]:
    """The files that git knows, below the folders and files that the sdist is to have."""
    settings = (root / "pyproject.toml").read_text(encoding="utf-8")
    wanted = ast.literal_eval(re.findall(r"only-include = (\[.*?\])", settings, re.DOTALL)[0])  # no tomllib in 3.10
    listed = subprocess.run(["git", "ls-files", "-z", *wanted], cwd=root, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split("\0") if name} | {".gitignore"}


def sdist_files(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def wheel_files(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def check_archives(steps: Steps, root: Path, sdist: Path, wheel: Path) -> None:
    known, source, built = known_files(root), sdist_files(sdist) - MADE, wheel_files(wheel)
    steps.expect(source <= known, "the sdist has nothing that git does not know", sorted(source - known))
    steps.expect(known <= source, "the sdist has all that is to be in it", sorted(known - source))
    size = sdist.stat().st_size
    steps.expect(size < MOST_BYTES, f"the sdist has {size:,} bytes, the wheel {wheel.stat().st_size:,}")
    package = {name for name in known if name.startswith("pointing/")}
    code = {name for name in built if ".dist-info/" not in name}
    steps.expect(code == package, "the wheel has the package's files, and no others", sorted(code ^ package))
    needed = {"pointing/py.typed", *(f"pointing/server/page/{name}" for name in ("index.html", "page.css", "main.js"))}
    steps.expect(needed <= code, "the page is in the wheel", sorted(needed - code))
    licence = [name for name in built if name.endswith(".dist-info/licenses/LICENSE")]
    steps.expect(len(licence) == 1, "the licence is in the wheel")
