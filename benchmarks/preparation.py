"""How fast, and in how much memory, a corpus is prepared.

    python benchmarks/preparation.py train.en.gz train.fr.gz

Prints the pairs per second of the whole `pointing prepare` on all cores (reading, tokenising, vocabularies, pointers,
writing), and of one process of sacremoses that only tokenises the same lines; each is the best of three. Then prints
the peak memory of `pointing prepare`, of all its processes together, on these files and on five times as many pairs
(the same lines, each time with their words in a rotated order).

    python benchmarks/preparation.py train.en train.fr --forms-and-spans

Prints instead how much longer it takes with `text: {forms: true, protect: software}` than with plain settings: the CPU
seconds of both, in turns, of the whole command with all its processes. Other work on the machine changes them little.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from pointing.system.files import read_lines

PLAIN: Mapping[str, Any] = {}
FORMS_AND_SPANS = {"forms": True, "protect": "software"}
PR_SET_CHILD_SUBREAPER = 36  # of Linux


def start(source: Path, target: Path, folder: Path, dev: tuple[Path, Path], text: Mapping[str, Any] = PLAIN) -> Any:
    """The command, which has just been started."""
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    splits = {"train": (source, target), "dev": dev}
    data = {name: {"source": str(files[0]), "target": str(files[1])} for name, files in splits.items()}
    (folder / "x.yaml").write_text(json.dumps({"data": data, "text": dict(text)}))
    command = [sys.executable, "-m", "pointing", "prepare", str(folder / "x.yaml"), "--out", str(folder / "corpus")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(process: Any) -> None:
    if process.wait() != 0:
        raise SystemExit("pointing prepare failed")


def wall_seconds(*files: Any) -> float:
    begin = time.perf_counter()
    finish(start(*files))
    return time.perf_counter() - begin


def peak_megabytes(*files: Any) -> float:
    process = start(*files)
    peak = Peak(process.pid)
    finish(process)
    return peak.stop()


def cpu_seconds(*files: Any) -> float:
    """The time that all processes of the command have worked."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # workers outlive the command by a moment: we wait

    def used() -> float:
        of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of_children.ru_utime + of_children.ru_stime

    before = used()
    finish(start(*files))
    with suppress(ChildProcessError):
        while True:
            os.wait()
    return used() - before


def compare(source: Path, target: Path, folder: Path, dev: tuple[Path, Path], rounds: int) -> None:
    """Prints the CPU seconds of plain settings and of forms and protected spans, and their ratio."""
    ways = {"plain": PLAIN, "forms and protected spans": FORMS_AND_SPANS}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, text in ways.items():
            seconds[name].append(cpu_seconds(source, target, folder, dev, text))
    for name, times in seconds.items():
        print(f"{name}: {median(times):.2f} s of CPU time ({min(times):.2f} to {max(times):.2f}, {rounds} rounds)")
    plain, spans = seconds.values()
    ratios = sorted(one / other for one, other in zip(spans, plain, strict=True))
    print(f"ratio: {median(spans) / median(plain):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


class Peak(threading.Thread):
    """The peak memory of a process and its descendants, measured twenty times a second."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.peak, self.running = root, 0.0, True
        self.start()

    def run(self) -> None:
        while self.running:
            self.peak = max(self.peak, held(self.root))
            time.sleep(0.05)

    def stop(self) -> float:
        self.running = False
        self.join()
        return self.peak


def held(root: int) -> float:
    """The megabytes of a process and its descendants; shared pages count once, mapped files do not count."""
    total = 0.0
    waiting = [root]
    while waiting:
        process = waiting.pop()
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(rollup.split("\nPss_Anon:")[1].split()[0]) / 1024
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):  # the process has just ended
            continue
    return total


def sacremoses_rate(source: Path, target: Path, pairs: int) -> float:
    from sacremoses import MosesTokenizer

    tokenizers = MosesTokenizer("en"), MosesTokenizer("fr")
    sides = [[line.decode() for line in islice(read_lines(path), pairs)] for path in (source, target)]
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for tokenizer, lines in zip(tokenizers, sides, strict=True):
            for line in lines:
                tokenizer.tokenize(line, escape=False)
        seconds.append(time.perf_counter() - start)
    return len(sides[0]) / min(seconds)


def repeat(path: Path, out: Path, times: int) -> None:
    """Writes the lines `times` times, each time with their words in another rotation: new lines of the same words."""
    with out.open("wb") as file:
        for turn in range(times):
            for line in read_lines(path):
                words = line.split(b" ")
                file.write(b" ".join(words[turn % len(words) :] + words[: turn % len(words)]) + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument(
        "--times", type=int, default=5, help="how many times as many pairs for the second memory figure"
    )
    parser.add_argument("--sacremoses-pairs", type=int, default=20_000, help="pairs that sacremoses is timed on")
    parser.add_argument("--forms-and-spans", action="store_true", help="what forms and protected spans cost")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of this comparison")
    args = parser.parse_args()
    pairs = sum(1 for _ in read_lines(args.source))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dev = folder / "dev.source", folder / "dev.target"
        for path, original in zip(dev, (args.source, args.target), strict=True):
            path.write_bytes(b"\n".join(islice(read_lines(original), 1000)) + b"\n")
        if args.forms_and_spans:
            compare(args.source, args.target, folder, dev, args.rounds)
            return
        sacremoses = sacremoses_rate(args.source, args.target, args.sacremoses_pairs)
        seconds = min(wall_seconds(args.source, args.target, folder, dev) for _ in range(3))
        print(f"{pairs:,} pairs prepared in {seconds:.1f} s: {pairs / seconds:,.0f} pairs/s", flush=True)
        print(f"sacremoses, one process, tokenising alone: {sacremoses:,.0f} pairs/s")
        print(f"ratio: {pairs / seconds / sacremoses:.1f}×")
        many = folder / "many.source", folder / "many.target"
        for path, original in zip(many, (args.source, args.target), strict=True):
            repeat(original, path, args.times)
        memory = peak_megabytes(args.source, args.target, folder, dev)
        more = peak_megabytes(*many, folder, dev)
        print(
            f"peak memory: {memory:.0f} MB at {pairs:,} pairs, "
            f"{more:.0f} MB at {args.times * pairs:,}: {more / memory:.2f}×"
        )


if __name__ == "__main__":
    main()
