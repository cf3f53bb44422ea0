"""Runs → a server that listens, until it is told to stop; then it answers what it has accepted, and ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import torch
import uvicorn

from pointing.config import Search
from pointing.errors import Failure, Misuse
from pointing.server.app import LOCAL, make_app
from pointing.server.connections import LOG, Protocol, Server, allow_open_files
from pointing.server.keys import Keys
from pointing.server.limits import Limits
from pointing.server.models import Models
from pointing.server.service import Service
from pointing.system.files import read_text
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
        http=type("Protocol", (Protocol,), {"limits": limits}),
        access_log=False,  # addresses have texts in them
        log_config=LOG,
        log_level="warning",
        server_header=False,
        ws="none",
        timeout_keep_alive=int(limits.header_seconds),
        timeout_graceful_shutdown=STOPPING_SECONDS,
    )
    allow_open_files(limits.open_connections)
    server = Server(config)
    name, port = listener.getsockname()[:2]
    shown = f"[{name}]" if ":" in name else name
    said = ", ".join(model.name for model in models.by_name.values())
    server.ready = f"serving {said} on http://{shown}:{port}"
    await server.serve([listener])


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
