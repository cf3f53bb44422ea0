"""Connections: those that are too many, those that take nothing, what is no HTTP, and all of them at the end."""

import asyncio
import gc
import io
import json
import logging
import resource
import subprocess
import sys
from functools import partial

import own_loop
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from pointing.server.connections import LOG, NO_HTTP, Protocol, Server, allow_open_files
from pointing.server.guard import HEADERS
from pointing.server.limits import Limits

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECONDS = 10  # for what should happen at once


class Running:
    """A server of an application, and its clients."""

    def __init__(self, app, log_config=None, **limits):
        protocol = type("Limited", (Protocol,), {"limits": Limits(**limits)})
        options = {"http": protocol, "access_log": False, "lifespan": "off", "log_config": log_config}
        self.config = uvicorn.Config(app, timeout_keep_alive=SECONDS, **options)
        self.config.load()
        self.server = Server(self.config)
        self.server.lifespan = self.config.lifespan_class(self.config)
        self.writers = []

    async def __aenter__(self):
        new = partial(self.config.http, self.config, self.server.server_state, {})
        self.listener = await asyncio.get_running_loop().create_server(new, "127.0.0.1", 0)
        self.port = self.listener.sockets[0].getsockname()[1]
        self.server.servers = [self.listener]
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        for writer in self.writers:
            writer.transport.abort()
        while self.server.server_state.connections:
            await asyncio.sleep(0.01)

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def ask(self):
        """A connection that has sent its request."""
        reader, writer = await self.connect()
        writer.write(ASK)
        return reader, writer


def run(test):
    own_loop.run(asyncio.wait_for(test, 6 * SECONDS))


async def answer(reader):
    """Status, headers and JSON of an answer."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)).decode()
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers["content-length"])) if "content-length" in headers else b"null"
    return int(status.split()[1]), headers, json.loads(body)


async def small(scope, receive, send):
    headers = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"true"})


LARGE = b" " * 30_000_000  # more than the system keeps for a client that does not read


async def large(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": LARGE})


def test_clients_beyond_the_limit_are_told_to_come_later_and_many_more_are_cut_off():
    async def test():
        async with Running(small, connections=4) as running:
            there = [await running.connect() for _ in range(4)]
            told, cut = [await running.connect() for _ in range(2)], await running.ask()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await answer(cut[0])
            for reader, writer in told:
                writer.write(ASK)
                status, headers, body = await answer(reader)
                assert (status, headers["retry-after"], headers["connection"]) == (503, "5", "close")
                assert body == {"error": "4 clients are connected already: try again in 5 s"}
                assert {name: headers[name.lower()] for name in HEADERS} == HEADERS
            for reader, writer in there:
                writer.write(ASK)
                assert (await answer(reader))[0] == 200
            there[0][1].close()
            await asyncio.sleep(0.1)
            assert (await answer((await running.ask())[0]))[0] == 200

    run(test())


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off_and_a_slow_one_is_not():
    async def test():
        async with Running(large, header_seconds=0.5) as running:
            idle, slow = await running.ask(), await running.ask()
            idle[1].transport.pause_reading()
            taken = 0
            while part := await asyncio.wait_for(slow[0].read(1_000_000), SECONDS):
                taken += len(part)
                await asyncio.sleep(0.05)
            assert taken > len(LARGE)
            while running.server.server_state.connections:  # for ever, if nobody cuts the idle one off
                await asyncio.sleep(0.05)

    run(test())


def test_nothing_is_left_of_a_request_when_it_has_its_answer():
    async def test():
        async with Running(small, header_seconds=60) as running:
            kept, loop = await running.connect(), asyncio.get_running_loop()
            for _ in range(20):
                kept[1].write(ASK)
                assert (await answer(kept[0]))[0] == 200
                reader, writer = await running.ask()
                assert (await answer(reader))[0] == 200
                writer.close()
            await asyncio.sleep(0.1)
            gc.collect()
            assert sum(type(each) is RequestResponseCycle for each in gc.get_objects()) <= 1  # isinstance asks proxies
            assert len([timer for timer in loop._scheduled if not timer.cancelled()]) < 5

    run(test())


def test_what_is_no_http_is_answered_like_every_other_mistake():
    async def test():
        async with Running(small) as running:
            for noise in (b"\x16\x03\x01\x02\x00\r\n\r\n", ASK + b"\x00\r\n\r\n"):
                reader, writer = await running.connect()
                writer.write(noise)
                if noise.startswith(ASK):
                    assert (await answer(reader))[0] == 200
                status, headers, _ = await answer(reader)
                assert (status, headers["connection"]) == (400, "close")
                assert {name: headers[name.lower()] for name in HEADERS} == HEADERS
                assert json.dumps({"error": NO_HTTP}).encode() in await reader.read()

    run(test())


def test_at_the_end_a_request_that_is_on_its_way_is_answered_with_the_word_that_it_was_the_last():
    async def test():
        async with Running(small) as running:
            idle, busy = await running.connect(), await running.connect()
            await asyncio.sleep(0.1)
            ending = asyncio.ensure_future(running.server.shutdown([]))
            await asyncio.sleep(0.1)
            with pytest.raises(ConnectionRefusedError):
                await running.connect()
            busy[1].write(ASK)
            status, headers, _ = await answer(busy[0])
            assert (status, headers["connection"]) == (200, "close")
            assert [await reader.read() for reader, _ in (busy, idle)] == [b"", b""]
            await ending

    run(test())


def test_an_error_in_the_log_has_its_places_and_only_the_beginning_of_its_words():
    async def broken(scope, receive, send):
        try:
            raise KeyError("x" * 100)
        except KeyError as error:
            raise ValueError("the text was:\n" + "secret-word " * 50) from error

    async def test(log):
        async with Running(broken, log_config=LOG) as running:
            logger = logging.getLogger("uvicorn")
            logger.handlers[0].setStream(log)
            assert (await answer((await running.ask())[0]))[0] == 500
            logger.handlers.clear()

    log = io.StringIO()
    run(test(log))
    said = log.getvalue()
    assert "ValueError: the text was: secret-word" in said
    assert said.count("secret-word") < 5
    assert "KeyError: 'xxx" in said
    assert __file__ in said


FILES = """
import resource
from pointing.server.connections import OTHER_FILES, allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))
allow_open_files(500)
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (500 + OTHER_FILES, 1000)
allow_open_files(10)
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (500 + OTHER_FILES, 1000)
allow_open_files(5000)
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1000, 1000)
"""


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be():
    done = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_open_files(1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
