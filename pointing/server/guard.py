"""Around the whole application: what a request must be like before anything is done with it, and what every answer has.

Host names (DNS rebinding), origins (pages of other sites), the size of bodies and the time they take to arrive; and the
end of the work if the client has gone. Every answer has headers that keep a browser from doing anything else with it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointing.server.limits import Limits, Refused
from pointing.server.metrics import Metrics

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, hosts: Collection[str], origins: Collection[str]
    ) -> None:
        """`hosts` are the names that a Host header may have beside IP addresses; `origins` other sites allowed."""
        self.app, self.limits, self.metrics = app, limits, metrics
        self.hosts, self.origins = {host.lower() for host in hosts}, set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # an answer to GET, of which uvicorn sends the head alone
            scope = {**scope, "method": "GET"}
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                new = ((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
                message["headers"] = [*message["headers"], *(pair for pair in new if pair[0] not in there)]
            await send(message)

        try:
            self._check(scope)
            body = await self._body(scope, receive)
        except Refused as refused:
            await _refuse(refused, answer)
        except asyncio.IncompleteReadError:
            return  # the client has gone
        else:
            if not await self._work(scope, body, receive, answer):
                status = 499  # nobody is there to be answered
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.answered(method, path, status, time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not self._is_ours(host):
            raise Refused(421, "the Host header names another host: give it with --allow-host to serve it")
        origin = headers.get(b"origin")
        if origin is not None and origin not in self.origins and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "this page is of another site: allow it with --cors to answer it")

    def _is_ours(self, host: str) -> bool:
        """True for IP addresses, which no other site's name can lead to, and for names that are served."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.hosts or _is_address(name)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is small enough and arrives in time."""
        headers = dict(scope["headers"])
        too_large = Refused(413, f"the body is larger than {self.limits.body:,} bytes", {"Connection": "close"})
        length = headers.get(b"content-length", b"0")
        is_too_large = length.isdigit() and int(length) > self.limits.body
        if is_too_large and b"expect" in headers:  # the client waits for a word before it sends anything
            raise too_large

        async def read() -> bytes:
            """Of a body that is too large nothing is kept. Most clients take an answer only when they have sent all."""
            nonlocal is_too_large
            parts, size, more = [], 0, True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise asyncio.IncompleteReadError(b"", None)
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                is_too_large = is_too_large or size > self.limits.body
                if is_too_large:
                    parts.clear()
                more = message.get("more_body", False)
            return b"".join(parts)

        try:
            body = await asyncio.wait_for(read(), self.limits.header_seconds)
        except asyncio.TimeoutError:
            late = Refused(408, "the request took too long to arrive", {"Connection": "close"})
            raise (too_large if is_too_large else late) from None
        if is_too_large:
            raise too_large
        return body

    async def _work(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> bool:
        """Lets the application answer; False if the client went away before, which ends its work."""
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        ended = asyncio.Event()

        async def receive_body() -> Message:
            if messages:
                return messages.pop()
            await ended.wait()
            return {"type": "http.disconnect"}

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        work = asyncio.ensure_future(self.app(scope, receive_body, send))
        watch = asyncio.ensure_future(gone())
        try:
            await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
                return False
            work.result()  # raises what it raised
            return True
        finally:
            ended.set()
            watch.cancel()
            work.cancel()


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def refusal(refused: Refused) -> ASGIApp:
    """An application that answers everything with this, and closes the connection."""

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await _refuse(refused, send, {**HEADERS, "Connection": "close"})

    return app


async def _refuse(refused: Refused, send: Send, more: Mapping[str, str] | None = None) -> None:
    body = json.dumps({"error": refused.message}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **refused.headers, **(more or {})}
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
