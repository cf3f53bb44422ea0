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
        survivors = result["survivors"]
        part.trials += result["tried"]
        part.count("noticed", result["tried"] - len(survivors))
        part.count("not", len(survivors))
        if is_too_little(result):
            told = "; ".join(f"line {each['line']}: {each['before']} → {each['after']}" for each in survivors)
            part.found.append(f"{module}: {len(survivors)} of {result['tried']} are not noticed: {told}")
    return part
