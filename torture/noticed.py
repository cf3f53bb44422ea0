"""Broken code as a part of the campaign: in each module at the core, tests have to notice nine mistakes of ten."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from torture import ROOT
from torture.broken_code import is_too_little
from torture.trials import Part


def broken_code(part: Part, seed: int, number: int) -> Part:
    """`number` mistakes in each module, tried by a process that has loaded nothing of ours yet."""
    start = time.monotonic()
    with TemporaryDirectory(prefix="pointing-code-") as name:
        out = Path(name) / "out.json"
        options = ["--mutants", str(number), "--seed", str(seed), "--json", str(out)]
        command = [sys.executable, "-m", "torture.broken_code", *options]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        results = json.loads(out.read_text()) if out.exists() else {}
    part.seconds += time.monotonic() - start
    if not results:
        part.found.append(f"no mistake was tried: exit code {ended.returncode}")
    for module, result in results.items():
        survivors, tried = result["survivors"], result["tried"]
        part.trials += tried
        part.count(f"of {tried} noticed in {module}", tried - len(survivors))
        if survivors:
            told = "; ".join(f"line {each['line']}: {each['before']} → {each['after']}" for each in survivors)
            told = f"{module}: {len(survivors)} of {tried} are not noticed: {told}"
            (part.found if is_too_little(result) else part.notes).append(told)
    return part
