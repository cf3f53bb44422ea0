"""Clients that ask a server on this machine one after another, each on one connection: its answers and their times.

    python benchmarks/http_clients.py PORT PATH --clients 8 --seconds 10 < bodies.jsonl

Sends the bodies, a JSON value a line, to http://127.0.0.1:PORT/PATH, in turn, from the first again after the last.
Each client sends its next request when it has the answer to the last one. Answers count from the moment at which every
client has had one, for --seconds, or until there are --requests of them. Then nothing more is sent, and the answers
that are still missing are waited for, so that nothing is left to do for the server. Prints JSON.

This is a process of its own, without torch and without an HTTP library, because its work is done on the cores that the
server needs. benchmarks/serving.py runs it, the same for all servers.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator

HOST = "127.0.0.1"
LONGEST_ANSWER = 120.0  # seconds


class Clients:
    """What all clients share: the bodies, and when to count and to stop."""

    def __init__(self, path: str, bodies: list[bytes], clients: int, seconds: float, requests: int) -> None:
        self.requests_to_send: Iterator[bytes] = itertools.cycle([request(path, body) for body in bodies])
        self.clients, self.seconds, self.requests = clients, seconds, requests
        self.warm = 0  # clients that have had an answer
        self.start, self.end = 0.0, float("inf")  # of the time that counts
        self.answered: list[tuple[float, float]] = []  # when, and how many seconds after its request
        self.first = b""  # an answer, to be looked at

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.end or len(self.answered) >= self.requests

    def client_is_warm(self) -> None:
        self.warm += 1
        if self.warm == self.clients:
            self.start = time.perf_counter()
            self.end = self.start + self.seconds

    async def client(self, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            for number in itertools.count():
                if self.is_over:
                    break
                sent = time.perf_counter()
                writer.write(next(self.requests_to_send))
                body = await asyncio.wait_for(answer(reader), LONGEST_ANSWER)
                now = time.perf_counter()
                self.first = self.first or body
                if self.start and not self.is_over:
                    self.answered.append((now, now - sent))
                if number == 0:
                    self.client_is_warm()
        finally:
            writer.close()

    async def run(self, port: int) -> dict[str, object]:
        await asyncio.gather(*(self.client(port) for _ in range(self.clients)))
        seconds = [seconds for _, seconds in self.answered]
        last = max((when for when, _ in self.answered), default=self.start)
        return {"answers": len(seconds), "window": last - self.start, "seconds": seconds, "first": self.first.decode()}


def request(path: str, body: bytes) -> bytes:
    fields = f"Host: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The body of the next answer. Anything but 200, with its length, ends the measurement."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *fields = head.split("\r\n")
    lengths = [field.split(":")[1] for field in fields if field.lower().startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0])) if lengths else b""
    if status.split()[1] != "200" or not lengths:
        raise SystemExit(f"{status}: {body[:500].decode()}")
    return body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="at most, after the first answers")
    parser.add_argument("--requests", type=int, default=100_000, help="answers that count, at most")
    args = parser.parse_args()
    bodies = sys.stdin.buffer.read().splitlines()
    clients = Clients(args.path, bodies, args.clients, args.seconds, args.requests)
    measured = asyncio.run(clients.run(args.port))
    print(json.dumps(measured | {"own_seconds": sum(os.times()[:2])}))


if __name__ == "__main__":
    main()
