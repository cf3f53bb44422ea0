"""Is what would be released whole? Builds it, installs it in an empty environment, runs it there.

    python -m release [--torch torch==2.13.0] [--python PYTHON] [--updates 150] [--dist FOLDER] [--sdist-too]

Needs pip's index (or what stands in for it in pip's own settings). Without --torch, pip chooses: on Linux the CUDA
build, some gigabytes. Everything happens in a temporary folder; --dist keeps the two archives. Exit code 1 if anything
is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from email.parser import HeaderParser
from pathlib import Path
from tempfile import TemporaryDirectory

from release.archives import check_archives
from release.commands import check_commands, check_extras, check_helps
from release.extras import ELSEWHERE, NEEDS
from release.steps import Steps

ROOT = Path(__file__).resolve().parent.parent


def build(steps: Steps, python: str) -> tuple[Path, Path]:
    """The sdist, and the wheel built from it, as `python -m build` does."""
    steps.must("an environment to build in", [python, "-m", "venv", "build-venv"])
    bin = steps.folder / "build-venv" / "bin"
    steps.must("install build", [bin / "python", "-m", "pip", "install", "--quiet", "build", "twine"])
    steps.must("build", [bin / "python", "-m", "build", "--outdir", "dist", ROOT])
    (sdist,), (wheel,) = (list((steps.folder / "dist").glob(kind)) for kind in ("*.tar.gz", "*.whl"))
    steps.must("twine check", [bin / "python", "-m", "twine", "check", "--strict", sdist, wheel])
    return sdist, wheel


def install(steps: Steps, python: str, archive: Path, torch: str | None, name: str) -> Path:
    """An empty environment with the archive in it, without extras; its folder of programs."""
    steps.must("an empty environment", [python, "-m", "venv", name])
    bin = steps.folder / name / "bin"
    pip = [bin / "python", "-m", "pip"]
    if torch is not None:
        steps.must(f"install {torch}", [*pip, "install", "--quiet", torch])
    steps.must(f"install {archive.name}", [*pip, "install", "--quiet", archive])
    steps.must("pip check", [*pip, "check"])
    return bin


def check_metadata(steps: Steps, bin: Path) -> None:
    """What an index would say of it."""
    program = "from importlib.metadata import distribution; print(distribution('pointing').read_text('METADATA'))"
    about = HeaderParser().parsestr(steps.must("metadata", [bin / "python", "-c", program]))
    version = steps.must("the version", [bin / "pointing", "--version"]).split()[-1]
    steps.expect(about["Version"] == version, f"version {version} in the metadata", about["Version"])
    extras = set(about.get_all("Provides-Extra", []))
    known = set(NEEDS) | set(ELSEWHERE)
    steps.expect(extras == known, "every extra has its check", extras ^ known)
    print(f"  torch  {steps.must('torch', [bin / 'python', '-c', 'import torch; print(torch.__version__)']).strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", help="install this before the wheel, such as torch==2.13.0")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the empty environments")
    parser.add_argument("--updates", type=int, default=150, help="of the demo's models")
    parser.add_argument("--dist", type=Path, help="keep the archives in this folder")
    parser.add_argument("--sdist-too", action="store_true", help="install the sdist as well, and ask its version")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="pointing-release-") as name:
        steps = Steps(Path(name))
        sdist, wheel = build(steps, options.python)
        check_archives(steps, ROOT, sdist, wheel)
        bin = install(steps, options.python, wheel, options.torch, "venv")
        check_metadata(steps, bin)
        check_helps(steps, bin)
        check_commands(steps, bin, options.updates)
        check_extras(steps, bin)
        if options.sdist_too:
            check_metadata(steps, install(steps, options.python, sdist, options.torch, "sdist-venv"))
        if options.dist is not None:
            options.dist.mkdir(parents=True, exist_ok=True)
            for archive in (sdist, wheel):
                shutil.copy(archive, options.dist / archive.name)
    print(steps.summary())
    sys.exit(bool(steps.wrong))


if __name__ == "__main__":
    main()
