"""Mutation testing: small mistakes in the modules at the core, of which some test should notice every one.

    python -m torture.broken_code [MODULE …] [--mutants 50] [--seed 0] [--workers 1]

A seeded sample of the mutants of each module (`code_mutants`) is written, one at a time, into a copy of the package and its
tests; the tests of that module run in a process forked from one that has loaded torch. A mutant that no test notices
survives: it is listed, and calls for a test, or is the same program written otherwise (`SAME` in `torture/same.py`).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from torture.code_mutants import Mutant, mutants

ROOT = Path(__file__).parent.parent
SECONDS = 300  # of processor time; a mutant whose tests take longer hangs, which is noticed too
TESTS = {  # the ones most likely to notice stand first
    "pointer_softmax": ["test_pointer_softmax.py", "test_layer_checks.py", "model/test_loss.py", "model/test_seq2seq.py"],
    "model/loss": ["model/test_loss.py", "model/test_kinds.py", "training/test_validation.py", "training/test_loop.py"],
    "generation/beam": [
        *("generation/test_beam.py", "generation/test_spans.py", "generation/test_choices.py"),
        *("generation/test_generator.py", "server/test_batching.py"),
    ],
    "corpus/pointers": ["corpus/test_pointers.py", "corpus/test_preparation.py"],
    "training/state": ["training/test_state.py", "training/test_loop.py", "test_damaged_files.py", "training/test_start.py"],
    "training/optimizers": ["training/test_optimizers.py", "training/test_loop.py"],
}
LONG = "not (killed or two_threads or a_signal_stops or is_used_or_refused or workers or two_processes)"


def copy_of_the_project(folder: Path) -> None:
    for name in ("pointing", "tests", "recipes"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder)


def load_what_tests_load() -> None:
    import hypothesis
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401
    import sacrebleu  # noqa: F401
    import torch
    import torch._dynamo
    import typer  # noqa: F401
    import yaml  # noqa: F401

    torch.set_num_threads(1)
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # nobody reads the smallest example
    hypothesis.settings.register_profile("short", phases=phases, database=None, derandomize=True)
    hypothesis.settings.load_profile("short")


def load_what_is_imported_by(module: str, folder: Path) -> None:
    """From the copy: these do not import the module, so they are the same for all its mutants."""
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for node in ast.walk(ast.parse((folder / "pointing" / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pointing."):
            importlib.import_module(str(node.module))


def run_tests(folder: Path, tests: list[str], log: Path) -> bool:
    """True if all tests pass on the package as it is in the folder."""
    process = os.fork()
    if process == 0:
        _test(folder, tests, log)
    deadline = time.monotonic() + 10 * SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        time.sleep(0.02)
    else:
        status = 1
    try:
        os.killpg(process, signal.SIGKILL)  # what the tests have started, or the tests themselves
    except ProcessLookupError:
        pass
    return status == 0


def _test(folder: Path, tests: list[str], log: Path) -> None:
    import resource

    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    os.chdir(folder)
    with log.open("wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    os.environ["PYTHONPATH"] = str(folder)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than the tests
    import pytest

    sys.modules["__main__"].__spec__ = None  # processes that tests start must not look for this program
    del sys.modules["__main__"].__file__
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-k", LONG, "--rootdir", str(folder)]
    code = 1
    try:
        code = int(pytest.main([*options, *(f"tests/{name}" for name in tests)]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Broken:
    """A module's file in the copy, which holds one mutant after the other."""

    def __init__(self, folder: Path, module: str) -> None:
        self.path = folder / "pointing" / f"{module}.py"
        self.whole = self.path.read_text()
        self.stamp = time.time_ns() - 10**15  # bytecode is made anew when the whole second changes

    def write(self, source: str) -> None:
        self.stamp += 10**9
        self.path.write_text(source)
        os.utime(self.path, ns=(self.stamp, self.stamp))


def sample(module: str, source: str, number: int, seed: int) -> list[Mutant]:
    found = mutants(source)
    chosen = random.Random(seed + crc32(module.encode())).sample(range(len(found)), min(number, len(found)))
    return [found[place] for place in sorted(chosen)]


def survivors_of(module: str, number: int, seed: int) -> tuple[int, list[Mutant]]:
    """How many mutants were tried, and those that no test noticed."""
    with TemporaryDirectory(prefix="pointing-code-") as name:
        folder = Path(name)
        copy_of_the_project(folder)
        load_what_is_imported_by(module, folder)
        broken, log = Broken(folder, module), folder / "log"
        if not run_tests(folder, TESTS[module], log):
            raise SystemExit(f"{module}: its tests fail on the code as it is\n{log.read_text()[-2000:]}")
        survivors = []
        chosen = sample(module, broken.whole, number, seed)
        for place, mutant in enumerate(chosen, 1):
            broken.write(mutant.source)
            if run_tests(folder, TESTS[module], log):
                survivors.append(mutant)
                print(f"  {module}.py:{mutant.line}: {mutant.before} → {mutant.after}", flush=True)
            print(f"  {module}: {place} of {len(chosen)}, {len(survivors)} survive", end="\r", file=sys.stderr)
            broken.write(broken.whole)
    return len(chosen), survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--mutants", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    load_what_tests_load()
    results = {}
    for module in args.modules or TESTS:
        start = time.monotonic()
        tried, survivors = survivors_of(module, args.mutants, args.seed)
        print(f"{module}: {tried - len(survivors)} of {tried} killed in {time.monotonic() - start:.0f} s", flush=True)
        results[module] = {"tried": tried, "survivors": [mutant._asdict() | {"source": None} for mutant in survivors]}
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
