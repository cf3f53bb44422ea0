"""Throughput and latency of `pointing serve` on this machine, beside one text at a time and OpenNMT-py's own server.

    python benchmarks/serving.py data/europarl/train.en data/europarl/train.fr --peer opennmt --json serving.json

Four cases, with 1, 8 and 64 clients that each send a text as soon as they have the answer to their last one:

- `pointing serve`, which decodes together what waits at the same time;
- the same with `--max-batch 1`, which decodes one text at a time;
- OpenNMT-py 2.3.0's server (onmt.bin.server: flask, waitress), if there is a --peer, at equal work;
- `model.generate([line])` in a process, without a server: what one client's latency is to be compared with.

Equal work is as in benchmarks/generation.py: the same text, vocabulary, threads and beam, every output has exactly
--steps words, and the peer has the width at which its model needs as many multiplications as ours. Our weights are
random, the peer's are those after a few updates; the time of a step does not depend on them. The peer gets the tokens
that our model sees, ours gets raw lines and tokenises them itself.

All servers run from the start to the end, on 127.0.0.1 only, and take turns: --rounds rounds, each of them with every
case for at most --seconds. A row has the median of its rounds' throughputs, and percentiles of the latencies of all
rounds. The clients are benchmarks/http_clients.py, a process of its own, the same for all. Before every case the
processor time that other processes take is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import opennmt
import torch
from generation import model_of
from training import SIZES, corpus_of

import pointing
from pointing.config import Config, checked
from pointing.corpus.examples import Corpus
from pointing.model.run import MODEL, start_run, write_tensors
from pointing.system.tables import Table

START = 120.0  # seconds that a server may take until it is ready
BATCHED, ALONE, PEER, IN_PROCESS = "dynamic batching", "one text at a time", "OpenNMT-py's server", "generate([line])"
GOALS = {  # ratios: at least; milliseconds: at most
    "dynamic batching / one text at a time, throughput": 3.0,
    "dynamic batching / OpenNMT-py's server, throughput": 5.0,
    "one client's median latency beyond generate([line]), ms": 5.0,
}


class Server:
    """A running server: where it listens, and what it is asked."""

    def __init__(self, port: int, path: str, bodies: Sequence[object]) -> None:
        self.port, self.path = port, path
        self.bodies = "".join(json.dumps(body, ensure_ascii=False) + "\n" for body in bodies).encode()

    def measure(self, clients: int, args: argparse.Namespace) -> dict[str, Any]:
        program = str(Path(__file__).with_name("http_clients.py"))
        numbers = ["--clients", clients, "--seconds", args.seconds, "--requests", args.requests]
        command = [sys.executable, program, str(self.port), self.path, *map(str, numbers)]
        done = subprocess.run(command, input=self.bodies, capture_output=True, timeout=args.seconds + 300, check=False)
        if done.returncode:
            raise SystemExit(f"{self.path}: {done.stderr.decode()[-2000:]}")
        measured: dict[str, Any] = json.loads(done.stdout)
        return measured


def untrained_run(corpus: Corpus, sizes: dict[str, int], folder: Path) -> Path:
    """A run's folder with random weights."""
    widths = {name: sizes[name] for name in ("embedding", "encoder", "hidden")}
    config = checked(Config, {**corpus.about["settings"], "model": widths})
    shutil.rmtree(folder, ignore_errors=True)
    start_run(folder, config, corpus)
    model = model_of(sizes, len(corpus.lexicon.source), len(corpus.lexicon.target))
    about = {"update": 0, "placeholders": corpus.lexicon.target.placeholders}
    write_tensors(folder / MODEL, dict(model.named_parameters()), about)
    return folder


@contextmanager
def ours(run: Path, lines: list[str], args: argparse.Namespace, *flags: str) -> Iterator[Server]:
    log = args.folder / f"server{''.join(flags)}.log"
    command = [sys.executable, "-m", "pointing", "serve", str(run), "--host", "127.0.0.1", "--port", "0", *flags]
    threads = {name: str(args.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | threads, stdout=file, stderr=file)

    def port() -> int | None:
        match = re.search(r"serving .* on http://127\.0\.0\.1:(\d+)", log.read_text("utf-8"))
        return None if match is None else int(match[1])

    search = {"beam": args.beam, "min_length": args.steps, "max_length": args.steps, "max_ratio": None}
    with stopped_at_the_end(process):
        yield Server(ready(process, port, log), "/generate", [{"text": line, **search} for line in lines])


@contextmanager
def peers(
    corpus: Corpus, sizes: dict[str, int], rows: list[int], args: argparse.Namespace
) -> Iterator[tuple[Server, int]]:
    """OpenNMT-py's server, and the width of its model."""
    python, folder = opennmt.environment(args.peer), args.folder / "peer"
    source, target = opennmt.write_text(corpus.folder, args.folder / "text", seed=None)
    work = opennmt.our_multiplications(**sizes, **shape(corpus, rows, args))
    wide = {"embedding": sizes["embedding"], "vocabulary": sizes["vocabulary"]}
    hidden = opennmt.equal_hidden(sum(work.values()), **wide, **shape(corpus, rows, args))
    trained = opennmt.train(
        python, folder, source, target, **wide, hidden=hidden, batch=64, updates=30, threads=args.threads
    )
    length = {"max_length": args.steps, "min_length": args.steps}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        chosen = free.getsockname()[1]
    process = opennmt.serve(
        python, folder, trained.model, port=chosen, beam=args.beam, threads=args.peer_threads, **length
    )

    def port() -> int | None:
        try:
            with urlopen(f"http://127.0.0.1:{chosen}/translator/health", timeout=5):
                return int(chosen)
        except URLError:
            return None

    tokenised = source.read_text("utf-8").splitlines()
    bodies = [[{"src": tokenised[row], "id": opennmt.SERVED}] for row in rows]
    with stopped_at_the_end(process):
        yield Server(ready(process, port, folder / "server.log"), "/translator/translate", bodies), hidden


def shape(corpus: Corpus, rows: list[int], args: argparse.Namespace) -> dict[str, Any]:
    """J and T of the counts of multiplications."""
    return {"J": float(corpus.split("train").source_lengths[rows].mean()) + 1, "T": args.beam * args.steps}


def ready(process: subprocess.Popen[bytes], port: Any, log: Path) -> int:
    """The port of a server, as soon as it is ready."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        if (found := port()) is not None:
            return int(found)
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text('utf-8')[-2000:]}")


@contextmanager
def stopped_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class InProcess:
    """`model.generate([line])`, one line after another."""

    def __init__(self, run: Path, lines: list[str], args: argparse.Namespace) -> None:
        torch.set_num_threads(args.threads)
        self.model, self.lines = pointing.load(run, "cpu"), lines
        self.search = {"beam": args.beam, "min_length": args.steps, "max_length": args.steps, "max_ratio": None}

    def measure(self, _: int, args: argparse.Namespace) -> dict[str, Any]:
        seconds: list[float] = []
        self.model.generate([self.lines[-1]], **self.search)  # warm-up
        start = time.perf_counter()
        while time.perf_counter() - start < args.seconds and len(seconds) < args.requests:
            sent = time.perf_counter()
            (output,) = self.model.generate([self.lines[len(seconds) % len(self.lines)]], **self.search)
            seconds.append(time.perf_counter() - sent)
            assert len(output.tokens) == args.steps
        return {"answers": len(seconds), "window": time.perf_counter() - start, "seconds": seconds, "own_seconds": 0.0}


def cores_of_others() -> float:
    """Cores that were busy during half a second in which no case runs."""

    def busy() -> int:
        user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
        return user + nice + system

    before = busy()
    time.sleep(0.5)
    return (busy() - before) / os.sysconf("SC_CLK_TCK") / 0.5


def check_lengths(first: str, steps: int) -> None:
    """Refuses a server whose outputs have another length than the other cases'."""
    answer = json.loads(first)
    if isinstance(answer, list):
        length: int | None = len(answer[0][0]["tgt"].split())
    else:
        tokens = answer["outputs"][0].get("tokens")
        length = None if tokens is None else len(tokens)
    if length not in (steps, None):
        raise SystemExit(f"an output has {length} words, not {steps}: {first[:500]}")


def measured(
    servers: dict[str, Server | InProcess], args: argparse.Namespace
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """All rounds of all cases, which take turns."""
    cases: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for number in range(1, args.rounds + 1):
        for clients in args.clients:
            for name, server in servers.items():
                if name == IN_PROCESS and clients != 1:
                    continue
                others = cores_of_others()
                result = server.measure(clients, args) | {"others": others}
                if "first" in result:
                    check_lengths(result.pop("first"), args.steps)
                cases.setdefault((name, clients), []).append(result)
                rate = result["answers"] / result["window"]
                told = f"round {number}: {name}, {clients} clients: {rate:.1f} texts/s; others {others:.2f} cores"
                print(told, file=sys.stderr, flush=True)
    return cases


def summary(rounds: list[dict[str, Any]]) -> dict[str, float]:
    seconds = np.concatenate([result["seconds"] for result in rounds])
    p50, p95, p99 = np.percentile(seconds, [50, 95, 99])
    rate = median(result["answers"] / result["window"] for result in rounds)
    others = max(result["others"] for result in rounds)
    return {"rate": rate, "p50": p50, "p95": p95, "p99": p99, "answers": len(seconds), "others": others}


def compared(rows: dict[tuple[str, int], dict[str, float]]) -> dict[str, float]:
    """What the goals are about; a case that was left out has no comparison."""
    most = max(clients for _, clients in rows)
    ratio, peer, extra = GOALS
    found = {ratio: rows[BATCHED, most]["rate"] / rows[ALONE, most]["rate"]}
    if (PEER, most) in rows:
        found[peer] = rows[BATCHED, most]["rate"] / rows[PEER, most]["rate"]
    if (IN_PROCESS, 1) in rows:
        found[extra] = 1000 * (rows[BATCHED, 1]["p50"] - rows[IN_PROCESS, 1]["p50"])
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="raw text, a sentence a line")
    parser.add_argument("target", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("benchmark-serving"), help="for prepared text and models")
    parser.add_argument("--peer", type=Path, help="folder for OpenNMT-py's venv; without it the peer is left out")
    parser.add_argument("--size", choices=list(SIZES), default="small", help="of the models")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer-threads", type=int, help="threads of the peer's server; by default as many as ours")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--lines", type=int, default=512, help="different texts")
    parser.add_argument("--steps", type=int, default=20, help="words of every output")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8, help="of a case in a round, at most")
    parser.add_argument("--requests", type=int, default=5_000, help="of a case in a round, at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    args = parser.parse_args()
    args.peer_threads = args.peer_threads or args.threads
    return args


def table(rows: dict[tuple[str, int], dict[str, float]]) -> Table:
    def milliseconds(seconds: float) -> str:
        return f"{1000 * seconds:,.0f}" if seconds >= 0.1 else f"{1000 * seconds:.1f}"

    header = ["", "clients", "texts/s", "50 %, ms", "95 %, ms", "99 %, ms", "answers", "cores of others, at most"]
    cells = []
    for (name, clients), row in rows.items():
        latencies = [milliseconds(row[p]) for p in ("p50", "p95", "p99")]
        cells.append(
            [name, str(clients), f"{row['rate']:,.1f}", *latencies, f"{row['answers']:,}", f"{row['others']:.2f}"]
        )
    return Table("", header, cells)


def main() -> None:
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    sizes = SIZES[args.size]
    files = {"source": str(args.source.resolve()), "target": str(args.target.resolve())}
    corpus = corpus_of(sizes["vocabulary"], files, args.folder)
    train = corpus.split("train")
    rows = list(range(min(args.lines, len(train))))
    lines = [train[row]["source_text"] for row in rows]
    run = untrained_run(corpus, sizes, args.folder / "run")
    with ExitStack() as stack:
        servers: dict[str, Server | InProcess] = {IN_PROCESS: InProcess(run, lines, args)}
        hidden = None
        if args.peer is not None:
            servers[PEER], hidden = stack.enter_context(peers(corpus, sizes, rows, args))
        servers[BATCHED] = stack.enter_context(ours(run, lines, args))
        servers[ALONE] = stack.enter_context(ours(run, lines, args, "--max-batch", "1"))
        cases = measured(servers, args)
    results = {case: summary(rounds) for case, rounds in sorted(cases.items(), key=lambda case: case[0][1])}
    J = float(train.source_lengths[rows].mean())
    words = f"beam {args.beam}, {args.steps} words an output, {J:.1f} words a text"
    width = "" if hidden is None else f"; OpenNMT-py with rnn_size {hidden}, {args.peer_threads} threads"
    print(f"Serving ({args.size} model), {args.threads} threads, {words}{width}\n\n{table(results).markdown()}")
    goals = compared(results)
    texts = [
        [what, f"{value:.2f}", f"{'≤' if what.endswith('ms') else '≥'} {GOALS[what]:g}"]
        for what, value in goals.items()
    ]
    print(Table("", [f"at {max(args.clients)} clients, or one", "measured", "goal"], texts).markdown())
    if args.json is not None:
        figures = [{"case": name, "clients": clients, **row} for (name, clients), row in results.items()]
        settings = {key: str(value) for key, value in vars(args).items()}
        args.json.write_text(json.dumps({"settings": settings, "cases": figures, "goals": goals}, indent=1) + "\n")


if __name__ == "__main__":
    main()
