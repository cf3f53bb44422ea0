"""Runs → a server that listens, until it is told to stop; then it answers what it has accepted, and ends."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pointing.config import Search
from pointing.errors import Failure, Misuse
from pointing.server.app import LOCAL, make_app
from pointing.server.keys import Keys
from pointing.server.limits import Limits
from pointing.server.models import Models
from pointing.server.service import Service
from pointing.system.files import read_text
from pointing.system.progress import say
from pointing.system.world import processes

QUICK = Search(beam=1, max_length=1)
STOPPING_SECONDS = 60  # that requests have to be answered after the signal to stop


def serve(
    runs: Sequence[Path],
    *,
    against: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 5000,
    keys: Collection[str] = (),
    no_auth: bool = False,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    limits: Limits | None = None,
    device: str = "auto",
) -> None:
    """Serves the runs until SIGINT or SIGTERM."""
    limits = limits or Limits()
    if not is_loopback(host) and not keys and not no_auth:
        what = f"--host {host} is open to other machines: give API keys (--api-key-file or POINTING_API_KEY)"
        raise Misuse(f"{what}, or say --no-auth if everybody may use it")
    listener = listen(host, port)  # before the models: a port that is taken is said at once
    with processes(device) as here, _on_one_thread():
        models = Models.load(runs, against, str(here.device))
    names = [*LOCAL, socket.gethostname(), *hosts] if not is_loopback(host) else [*LOCAL, *hosts]
    asyncio.run(_run(models, limits, Keys(keys, limits.requests_a_minute), [*names, host], origins, listener))


@contextmanager
def _on_one_thread() -> Iterator[None]:
    """While it lasts, torch computes on this thread alone.

    OpenMP gives every thread that computes in parallel a team of its own, which stays. With a second team there are
    more threads than cores, OpenMP then stops spinning between the small steps of a search, and one text takes twice as
    long. So the only team is that of the thread that decodes.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


async def _run(
    models: Models, limits: Limits, keys: Keys, hosts: Sequence[str], origins: Collection[str], listener: socket.socket
) -> None:
    service = Service(models, limits, keys)
    for model in models.by_name.values():  # the first request finds everything laid out
        await service.outputs(model, ["."], QUICK)
    config = uvicorn.Config(
        make_app(service, hosts, origins),
        http=type("Protocol", (Protocol,), {"seconds": limits.header_seconds}),
        access_log=False,  # addresses have texts in them
        log_level="warning",
        server_header=False,
        ws="none",
        limit_concurrency=limits.connections,
        timeout_keep_alive=int(limits.header_seconds),
        timeout_graceful_shutdown=STOPPING_SECONDS,
    )
    server = Server(config)
    name, port = listener.getsockname()[:2]
    shown = f"[{name}]" if ":" in name else name
    said = ", ".join(model.name for model in models.by_name.values())
    server.ready = f"serving {said} on http://{shown}:{port}"
    await server.serve([listener])


class Server(uvicorn.Server):
    """uvicorn's server, which says when it is ready, and ends in good order with exit code 0."""

    ready = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            say(f"{self.ready}  (Ctrl-C ends it)")

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
    """A connection whose next request has to begin within some seconds: its headers must be there by then."""

    seconds = 10.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_request()

    def shutdown(self) -> None:
        """An answer that is still under way says that it is the connection's last, so that no request follows it."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]
        super().shutdown()

    def _expect_request(self) -> None:
        cycle = self.cycle
        self.loop.call_later(self.seconds, lambda: self._close_if_still(cycle))

    def _close_if_still(self, cycle: Any) -> None:
        if self.cycle is cycle and not self.transport.is_closing():
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, or a sentence that says why not."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError):
        raise Misuse(f"--host {host}: there is no such address") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        advice = "is another server running there? Give another --port, or 0 for any that is free"
        raise Failure(f"cannot listen on {host}, port {port} ({error.strerror}): {advice}") from None
    return listener


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_keys(path: Path) -> list[str]:
    """API keys, one a line; empty lines and lines that begin with # are left out."""
    keys = [line.strip() for _, line in read_text(path) if line.strip() and not line.startswith("#")]
    if not keys:
        raise Misuse("there is no API key in this file: write one a line", path)
    return keys
