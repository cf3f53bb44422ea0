"""Kills: a command is killed with SIGKILL at a random moment, then run again; it makes what the undisturbed one made.

`train` is killed up to three times, and goes on with --resume once there is a checkpoint. Every second kill leaves the
processes alone that the command has started. A server is killed while clients ask it.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from torture.jobs import JOBS, TRAIN, Job, Undisturbed, check_old_or_new, check_result, content, resume
from torture.place import contents, copy_into
from torture.trials import SECONDS, Command, Found, Make, Part, Torchrun, Trial, Wait, check_said

SERVING = re.compile(r"on (http://\S+)")
TEXTS = ["open the file name17", "close the file %s, please", "save {count} files"]


def kills(done: Undisturbed, seed: int, number: int, of_two: int) -> list[Make]:
    """`number` trials of all jobs, of `train` and of `serve` in turn; besides, `of_two` of `train` by torchrun."""
    trials: list[Make] = []
    for turn in range(number):
        rng = random.Random(f"{seed} {turn}")
        job = partial(_killed_job, JOBS[turn // 3 % len(JOBS)], done, rng)
        trials.append(
            [job, partial(_killed_training, Command, 3, done, rng), partial(_killed_server, done, rng)][turn % 3]
        )
    by_torchrun = (random.Random(f"{seed} torchrun {turn}") for turn in range(of_two))
    return trials + [partial(_killed_training, Torchrun, 1, done, rng) for rng in by_torchrun]


def _killed(command: Command, seconds: float, rng: random.Random) -> Generator[Wait, Any, bool]:
    """Kills a command within some seconds; False if it has ended before."""
    code = yield command.ended(rng.uniform(0, seconds))
    if code is None:
        (command.kill if rng.random() < 0.5 else command.kill_all)()
        yield command.ended()
    else:
        check_said(command, code, 0)
    return code is None


def _killed_job(job: Job, done: Undisturbed, rng: random.Random, part: Part, folder: Path) -> Trial:
    copy_into(folder, done.place, job.needs)
    old = {name: content(folder / name) for name in job.writes}
    command = job.command(folder)
    if (yield from _killed(command, 1.1 * done.seconds[job.name], rng)):
        part.count(f"kills of {job.name}")
    check_old_or_new(job, command, folder, old, done)
    if job.prints and not done.printed(job).startswith(command.out()):
        raise Found(f"{command}: killed, it had printed something else")
    again = job.command(folder)
    check_said(again, (yield again.ended()), 0)
    if job.prints and again.out() != done.printed(job):
        raise Found(f"{again}: after a kill it prints something else")
    check_result(job, again, folder, done)


def _killed_training(
    kind: type[Command], most: int, done: Undisturbed, rng: random.Random, part: Part, folder: Path
) -> Trial:
    copy_into(folder, done.place, TRAIN.needs)
    whole = "torchrun" if kind is Torchrun else TRAIN.name
    for _ in range(most):
        command = kind(folder, *TRAIN.arguments.split(), *resume(folder))
        if not (yield from _killed(command, done.seconds[whole], rng)):
            break
        part.count("kills of train" + (" by torchrun" if kind is Torchrun else ""))
    else:
        command = kind(folder, *TRAIN.arguments.split(), *resume(folder))
        check_said(command, (yield command.ended(5 * SECONDS)), 0)
    check_result(TRAIN, command, folder, done, whole)


def _killed_server(done: Undisturbed, rng: random.Random, part: Part, folder: Path) -> Trial:
    """Answers that arrive whole are the undisturbed ones, before the kill and after a new start at the same address."""
    copy_into(folder, done.place, ("pieces",))
    before = contents(folder)
    server = Command(folder, "serve", "pieces", "--port", "0")
    address = yield from _address_of(server)
    wanted = _ask(address)
    answers: list[object] = []
    clients = [threading.Thread(target=_ask_on, args=(address, answers)) for _ in range(3)]
    for client in clients:
        client.start()
    killed = yield from _killed(server, 1.0, rng)
    for client in clients:
        client.join(5 * SECONDS)
    part.count("kills of serve", int(killed))
    server = Command(folder, "serve", "pieces", "--port", address.rpartition(":")[2])
    again = yield from _address_of(server)
    answers.append(_ask(again))
    server.process.terminate()
    check_said(server, (yield server.ended()), 0)
    if any(answer != wanted for answer in answers):
        raise Found(f"{server}: another answer than the undisturbed one")
    if contents(folder) != before:
        raise Found(f"{server}: it has changed its run")


def _address_of(server: Command) -> Generator[Wait, Any, str]:
    for _ in range(600):
        if found := SERVING.search(server.error()):
            return found[1]
        if (code := (yield server.ended(0.1))) is not None:
            raise Found(f"{server}: ended with {code}: {server.last_line()}")
    raise Found(f"{server}: does not begin to serve")


def _ask(address: str) -> object:
    """The answer; its last digits depend on what else is in the batch."""
    body = json.dumps({"text": TEXTS, "beam": 2, "max_length": 12}).encode()
    request = Request(f"{address}/generate", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=5 * SECONDS) as answer:
        return json.loads(answer.read(), parse_float=lambda number: round(float(number), 3))


def _ask_on(address: str, answers: list[object]) -> None:
    """Asks until nobody answers any more."""
    with suppress(OSError, HTTPException):
        while True:
            answers.append(_ask(address))
