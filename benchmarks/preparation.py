"""How fast, and in how much memory, a corpus is prepared.

    python benchmarks/preparation.py train.en.gz train.fr.gz

Prints the pairs per second of the whole `pointing prepare` on all cores (reading, tokenising, vocabularies, pointers,
writing), and of one process of sacremoses that only tokenises the same lines; each is the best of three. Then prints
the peak memory of `pointing prepare`, of all its processes together, on these files and on five times as many pairs
(the same lines, each time with their words in a rotated order).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

from pointing.system.files import read_lines


def settings(source: Path, target: Path) -> str:
    files = {"source": str(source), "target": str(target)}
    return json.dumps({"data": {"train": files, "dev": files}})


def prepare(source: Path, target: Path, folder: Path, dev: tuple[Path, Path], watch: bool = False) -> float:
    """The seconds that the command takes; with `watch`, which slows it down, its peak memory in megabytes."""
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    config = json.loads(settings(source, target))
    config["data"]["dev"] = {"source": str(dev[0]), "target": str(dev[1])}
    (folder / "x.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pointing", "prepare", str(folder / "x.yaml"), "--out", str(folder / "corpus")]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = Peak(process.pid) if watch else None
    if process.wait() != 0:
        raise SystemExit("pointing prepare failed")
    return time.perf_counter() - start if peak is None else peak.stop()


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
    args = parser.parse_args()
    pairs = sum(1 for _ in read_lines(args.source))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dev = folder / "dev.source", folder / "dev.target"
        for path, original in zip(dev, (args.source, args.target), strict=True):
            path.write_bytes(b"\n".join(islice(read_lines(original), 1000)) + b"\n")
        sacremoses = sacremoses_rate(args.source, args.target, args.sacremoses_pairs)
        seconds = min(prepare(args.source, args.target, folder, dev) for _ in range(3))
        print(f"{pairs:,} pairs prepared in {seconds:.1f} s: {pairs / seconds:,.0f} pairs/s", flush=True)
        print(f"sacremoses, one process, tokenising alone: {sacremoses:,.0f} pairs/s")
        print(f"ratio: {pairs / seconds / sacremoses:.1f}×")
        many = folder / "many.source", folder / "many.target"
        for path, original in zip(many, (args.source, args.target), strict=True):
            repeat(original, path, args.times)
        memory = prepare(args.source, args.target, folder, dev, watch=True)
        more = prepare(*many, folder, dev, watch=True)
        print(
            f"peak memory: {memory:.0f} MB at {pairs:,} pairs, "
            f"{more:.0f} MB at {args.times * pairs:,}: {more / memory:.2f}×"
        )


if __name__ == "__main__":
    main()
