"""Connections as uvicorn has them, with an end: for those that are too many, too slow, or no HTTP; and for the server.

Whatever a client does or leaves undone, its connection ends after some seconds, and what it is told is JSON.
"""

from __future__ import annotations

import asyncio
import json
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.logging import DefaultFormatter
from uvicorn.protocols.http.h11_impl import H11Protocol

from pointing.server.guard import HEADERS, refusal
from pointing.server.limits import Limits, busy
from pointing.system.progress import say

OTHER_FILES = 256  # that the process may have open beside connections
LAST_REQUESTS_SECONDS = 0.5  # after the signal to stop, in which clients are told that this answer is the last
NO_HTTP = "this is no request of HTTP/1.1 (there is no TLS here: ask by http://)"
CLOSE = b"connection", b"close"
LONGEST_MESSAGE = 60  # characters of an error's message in the log
LOG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"short": {"()": "pointing.server.connections.ShortErrors", "fmt": "%(levelprefix)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "short"}},
    "loggers": {name: {"handlers": ["stderr"], "propagate": False} for name in ("uvicorn", "asyncio")},
}


class ShortErrors(DefaultFormatter):
    """Errors with the places that they went through, but only the beginning of what they say: it may be a text."""

    def formatException(self, ei: Any) -> str:  # noqa: N802
        error, parts = ei[1], list[str]()
        while error is not None:
            message = str(error)[:LONGEST_MESSAGE].replace("\n", " ")
            parts.append("".join(traceback.format_tb(error.__traceback__)) + f"{type(error).__name__}: {message}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nwhich came from:\n".join(parts)


class Server(uvicorn.Server):
    """uvicorn's server, which says when it is ready, and ends in good order with exit code 0."""

    ready = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            say(f"{self.ready}  (Ctrl-C ends it)")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Takes no new connections, and lets those that are there end with an answer that says it is their last.

        uvicorn closes at once those that wait for their next request, which may be on its way: it would be lost.
        """
        state = self.server_state
        state.default_headers = [*state.default_headers, CLOSE]
        for connection in state.connections:
            if (cycle := getattr(connection, "cycle", None)) is not None:
                cycle.default_headers = state.default_headers
        await self._let_in(sockets or ())
        for server in self.servers:
            server.close()
        await asyncio.sleep(LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    async def _let_in(self, listeners: Sequence[socket.socket]) -> None:
        """Waits until all who have connected are let in, which takes asyncio two rounds of its loop."""
        for listener in listeners:
            listener.listen(0)  # from now on nobody stands in line
        rounds, until = 0, time.monotonic() + LAST_REQUESTS_SECONDS
        while rounds < 3 and time.monotonic() < until:
            await asyncio.sleep(0)
            rounds = 0 if select.select(listeners, (), (), 0)[0] else rounds + 1

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own raises the signal again at the end; here it was obeyed, and that is all."""
        old = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


class Protocol(H11Protocol):
    """A connection. Its next request has to begin within some seconds, and its answer to be taken."""

    limits: ClassVar = Limits()
    timer: asyncio.TimerHandle | None = None  # the only one: what a finished request holds is free at once

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.open_connections:
            transport.abort()
            return
        if len(self.connections) > self.limits.connections:
            self.app = refusal(busy(f"{self.limits.connections} clients are connected already", 5))
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timer is not None:
            self.timer.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_request()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like every other mistake."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [*HEADERS.items(), ("Content-Type", "application/json"), ("Connection", "close")]
            answer = h11.Response(status_code=400, headers=headers, reason="Bad Request")
            body = h11.Data(data=json.dumps({"error": NO_HTTP}).encode())
            for event in (answer, body, h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_request(self) -> None:
        cycle = self.cycle
        self._later(lambda: self._close_if_still(cycle))

    def _close_if_still(self, cycle: Any) -> None:
        if self.cycle is cycle:
            self.transport.close()
            self._abort_if_stuck(None)

    def _abort_if_stuck(self, before: int | None) -> None:
        """Ends a closed connection whose client takes nothing of what is still to be sent."""
        left = self.transport.get_write_buffer_size()
        if left and left == before:
            self.transport.abort()
        elif left:
            self._later(lambda: self._abort_if_stuck(left))

    def _later(self, call: Callable[[], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.loop.call_later(self.limits.header_seconds, call)


def allow_open_files(connections: int) -> None:
    """Raises this process's own limit of open files, if it is too low for so many connections."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, which has no such limit
        return
    wanted, (soft, hard) = connections + OTHER_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    elif soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
