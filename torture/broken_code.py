"""Mutation testing: small mistakes in the modules at the core, of which some test should notice every one.

    python -m torture.broken_code [MODULE …] [--mutants 50] [--seed 0] [--json FILE]

A seeded sample of the mutants of each module (`code_mutants`) is written, one at a time, into a copy of the package and
its tests. The module's own tests that run the changed line are run, in a process forked from one that has loaded torch;
if they notice nothing, those of the modules that use it. A mutant that no test notices survives: it calls for a test,
or is the same program written otherwise, which `equivalent` lists. Exit code 1 if more than 10 % survive.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest

from pointing.system.progress import track
from torture.code_mutants import Mutant, mutants
from torture.equivalent import EQUIVALENT

ROOT = Path(__file__).parent.parent
GOAL = 0.9  # of the mutants of each module that tests notice
SECONDS = 100  # of processor time, for the tests of several modules
TESTS = {  # the module's own stand first
    "pointer_softmax": [
        *("test_pointer_softmax.py", "test_layer_checks.py"),
        *("model/test_loss.py", "model/test_seq2seq.py"),
    ],
    "model/loss": ["model/test_loss.py", "model/test_kinds.py", "training/test_validation.py"],
    "generation/beam": [
        *("generation/test_beam.py", "generation/test_spans.py", "generation/test_choices.py"),
        "generation/test_generator.py",
    ],
    "corpus/pointers": ["corpus/test_pointers.py", "corpus/test_whole_words.py"],
    "training/state": ["training/test_state.py", "test_damaged_files.py"],
    "training/optimizers": ["training/test_optimizers.py"],
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
    no_clock = {"deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}
    hypothesis.settings.register_profile("short", phases=phases, database=None, derandomize=True, **no_clock)
    hypothesis.settings.load_profile("short")


def load_what_is_imported_by(module: str, folder: Path) -> None:
    """From the copy: these do not import the module, so they are the same for all its mutants."""
    ours = str(ROOT), str(ROOT / "tests"), ""
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ours)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pointing", "tiny", "forked")]:
        del sys.modules[name]
    for node in ast.walk(ast.parse((folder / "pointing" / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pointing."):
            importlib.import_module(str(node.module))


def in_a_fork(work: Callable[[], int], log: Path, seconds: float = SECONDS) -> bool:
    """True if the work, whose output goes into the log, returns 0 in a process of its own, in so much of its time."""
    process = os.fork()
    if process == 0:
        _work(work, log, int(seconds))
    deadline = time.monotonic() + 20 * seconds
    status = 1
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # what the tests have started, or the tests themselves
    return status == 0


def _work(work: Callable[[], int], log: Path, seconds: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with log.open("wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    code = 1
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Covered:
    """A plugin of pytest: which lines of a file each test runs, and how long the test takes."""

    def __init__(self, path: Path, out: Path) -> None:
        self.path, self.out = str(path), out
        self.tests: dict[str, tuple[float, list[int]]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        lines: set[int] = set()

        def note(frame: Any, event: str, argument: object) -> Any:
            if frame.f_code.co_filename != self.path:
                return None
            lines.add(frame.f_lineno)
            return note

        start = time.process_time()
        sys.settrace(note)
        yield
        sys.settrace(None)
        self.tests[item.nodeid] = (time.process_time() - start, sorted(lines))

    def pytest_sessionfinish(self) -> None:
        self.out.write_text(json.dumps(self.tests))


def run_pytest(folder: Path, tests: Sequence[str], plugins: Sequence[object] = ()) -> int:
    os.chdir(folder)
    os.environ.update(PYTHONPATH=str(folder), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # plugins take longer than the tests
    sys.modules["__main__"].__spec__ = None  # processes that tests start must not look for this program
    del sys.modules["__main__"].__file__
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--rootdir", str(folder), "-k", LONG]
    ignored = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *ignored, *tests], plugins=list(plugins)))


def tests_of(mutant: Mutant, covered: dict[str, tuple[float, list[int]]]) -> list[str]:
    """The tests that run the mutant's line, the quickest first; all for what is run when the module is loaded."""
    quickest = sorted(covered, key=lambda name: covered[name][0])
    if not mutant.in_function:
        return quickest
    return [name for name in quickest if not set(covered[name][1]).isdisjoint(mutant.lines)]


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
    """How many mutants were tried, and those that no test noticed; equivalent ones are neither."""
    with TemporaryDirectory(prefix="pointing-code-") as name:
        folder = Path(name)
        copy_of_the_project(folder)
        load_what_is_imported_by(module, folder)
        broken, log, out = Broken(folder, module), folder / "log", folder / "covered.json"
        own, *others = (f"tests/{test}" for test in TESTS[module])
        if not in_a_fork(lambda: run_pytest(folder, [own], [Covered(broken.path, out)]), log):
            raise SystemExit(f"{module}: its tests fail on the code as it is\n{log.read_text()[-2000:]}")
        covered = json.loads(out.read_text())
        enough = 5 + 3 * sum(seconds for seconds, _ in covered.values())  # a mutant that takes longer hangs
        survivors = []
        same = EQUIVALENT.get(module, {})
        chosen = sample(module, broken.whole, number, seed)
        chosen = [mutant for mutant in chosen if (mutant.before, mutant.after) not in same]
        for mutant in track(chosen, module, len(chosen), "mutants"):
            broken.write(mutant.source)
            names = tests_of(mutant, covered)
            if names and not in_a_fork(partial(run_pytest, folder, names), log, enough):
                continue
            if not others or in_a_fork(partial(run_pytest, folder, others), log):
                survivors.append(mutant)
                print(f"  {module}.py:{mutant.lines.start}: {mutant.before} → {mutant.after}", flush=True)
    return len(chosen), survivors


def is_too_little(result: dict[str, Any]) -> bool:
    return len(result["survivors"]) > (1 - GOAL) * result["tried"]


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
        shown = [{"line": m.lines.start, "before": m.before, "after": m.after} for m in survivors]
        results[module] = {"tried": tried, "survivors": shown}
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    sys.exit(any(is_too_little(result) for result in results.values()))


if __name__ == "__main__":
    main()
