"""Made-up inputs: the suite's own tests by hypothesis and schemathesis, of text and HTTP, with ever new seeds."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import tiny

from pointing.system.progress import progress
from torture import ROOT
from torture.trials import Part

RUNS_OUT = 3600  # seconds that one round of the tests may take


def test_files() -> list[str]:
    """The files of tests that make up inputs."""
    tests = ROOT / "tests"
    made_up = (path for path in sorted(tests.rglob("test_*.py")) if "from hypothesis import" in path.read_text("utf-8"))
    return [str(path.relative_to(ROOT)) for path in made_up]


def made_up_inputs(part: Part, seed: int, seconds: float, files: list[str] | None = None) -> Part:
    """Rounds of the tests, one at least, until the time is over. Each has another seed, which finds it again."""
    start, number = time.monotonic(), 0
    with progress(part.name, None, "rounds") as bar:
        while number == 0 or time.monotonic() - start < seconds:
            _round(part, seed + number, files or test_files())
            number += 1
            bar.advance()
    part.count("rounds", number)
    part.seconds += time.monotonic() - start
    return part


def _round(part: Part, seed: int, files: list[str]) -> None:
    options = ["-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", "--hypothesis-show-statistics"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        **{"cwd": ROOT, "env": tiny.environment(), "capture_output": True, "text": True, "timeout": RUNS_OUT},
    )
    part.trials += sum(map(int, re.findall(r"(\d+) passing examples", result.stdout)))
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
    if result.returncode and not failed:
        failed = [(result.stdout + result.stderr).strip().splitlines()[-1]]
    part.found += [f"{name} with --hypothesis-seed={seed}" for name in failed]
