"""What stands around the application: hosts, origins, bodies, clients that go away, keys and rates."""

import asyncio
import json

import own_loop
import pytest
from here import client_of
from hypothesis import given
from hypothesis import strategies as st

from pointing.server.guard import Guard
from pointing.server.keys import Keys
from pointing.server.limits import Limits, Refused
from pointing.server.metrics import Metrics

BODY = {"type": "http.request", "body": b"abc", "more_body": False}
NEVER = 60.0


def ask(app, messages, *, limits=None, hosts=("localhost",), origins=(), headers=()):
    """Status, headers and body that a guarded application answers; `messages` are what the network brings."""
    sent, waiting = [], list(messages)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost"), *headers]}

    async def receive():
        if not waiting:
            await asyncio.sleep(NEVER)
        message = waiting.pop(0)
        return await message() if callable(message) else message

    async def send(message):
        sent.append(message)

    guard = Guard(app, limits or Limits(), Metrics(), hosts, origins)
    own_loop.run(asyncio.wait_for(guard(scope, receive, send), 10))
    if not sent:
        return None, {}, guard
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


async def echo(scope, receive, send):
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(message["body"].decode()).encode()})


def part(body, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_arrives_whole_however_it_was_cut():
    assert ask(echo, [part(b"ab"), part(b""), part(b"c", more=False)])[2] == "abc"


TWELVE = [part(b"x" * 6), part(b"x" * 6, more=False)]


@pytest.mark.parametrize(
    ("messages", "headers"),
    [
        ([part(b"x" * 11, more=False)], ()),
        (TWELVE, ()),
        (TWELVE, [(b"content-length", b"12")]),
        ([], [(b"content-length", b"11"), (b"expect", b"100-continue")]),  # nothing of it is read
        ([], [(b"content-length", b"9" * 30), (b"expect", b"100-continue")]),
    ],
)
def test_a_body_that_is_too_large_is_refused(messages, headers):
    status, answered, body = ask(echo, messages, limits=Limits(body=10), headers=headers)
    assert (status, answered[b"connection"]) == (413, b"close")
    assert "10 bytes" in body["error"]


@pytest.mark.parametrize(("sent", "headers"), [(b"x" * 11, ()), (b"x", [(b"content-length", b"11")])])
def test_a_body_that_is_too_large_and_never_ends_is_refused_after_a_while(sent, headers):
    limits = Limits(body=10, header_seconds=0.1)
    assert ask(echo, [part(sent)], limits=limits, headers=headers)[0] == 413


def test_a_body_just_small_enough_is_taken():
    assert ask(echo, [part(b"x" * 10, more=False)], limits=Limits(body=10))[0] == 200


def test_a_body_that_comes_drop_by_drop_is_refused():
    async def drop():
        await asyncio.sleep(0.02)
        return part(b"x")

    status, headers, body = ask(echo, [drop] * 100, limits=Limits(header_seconds=0.1))
    assert (status, headers[b"connection"]) == (408, b"close")
    assert "took too long" in body["error"]


def test_a_client_that_goes_away_ends_the_work():
    ended = []

    async def long_work(scope, receive, send):
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    async def gone():
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    status, _, guard = ask(long_work, [BODY, gone])
    assert (status, ended) == (None, [True])
    assert 'status="499"' in guard.metrics.text().decode()


def test_a_client_that_goes_away_before_its_body_is_whole_is_forgotten():
    assert ask(echo, [part(b"a"), {"type": "http.disconnect"}])[0] is None


HOSTS = {
    "localhost": 200,
    "LOCALHOST:5000": 200,
    "127.0.0.1:5000": 200,
    "[::1]:5000": 200,
    "192.168.1.7": 200,
    "mt.example.org": 200,
    "evil.example.org": 421,
    "localhost.evil.org": 421,
    "127.0.0.1.evil.org": 421,
    "evil.org:80@localhost": 200,  # no name for a browser: this is the host localhost
    "localhost@evil.org": 421,
    "[::1": 421,
    "": 421,
}


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_only_our_own_names_and_addresses_are_answered(host, status):
    with client_of(hosts=("localhost", "mt.example.org")) as client:
        answer = client.get("/health", headers={"host": host})
    assert answer.status_code == status
    assert status == 200 or "--allow-host" in answer.json()["error"]


@given(st.text(st.characters(max_codepoint=255), max_size=30))
def test_no_host_header_breaks_the_check(host):
    guard = Guard(echo, Limits(), Metrics(), ["localhost"], [])
    assert guard._is_ours(host) in (True, False)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("https://localhost", 200),  # behind a proxy that speaks TLS
        ("http://localhost:81", 403),
        ("http://evil.org", 403),
        ("null", 403),
        ("https://friend.org", 200),
    ],
)
def test_pages_of_other_sites_are_not_answered_unless_allowed(origin, status):
    with client_of(origins=["https://friend.org"]) as client:
        answer = client.post("/generate", json={"text": "a"}, headers={"origin": origin})
        before = client.options("/generate", headers={"origin": origin, "access-control-request-method": "POST"})
    assert answer.status_code == status
    is_friend = origin == "https://friend.org"
    assert (answer.headers.get("access-control-allow-origin") == origin) == is_friend
    assert (before.headers.get("access-control-allow-origin") == origin) == is_friend


def test_without_cors_no_other_site_is_allowed():
    with client_of() as client:
        answer = client.get("/health", headers={"origin": "https://friend.org"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


GOOD = "a-long-secret"


@pytest.fixture(scope="module")
def locked():
    with client_of(keys=[GOOD, "another-one"]) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"X-API-Key": GOOD}, "", 200),
        ({"X-API-Key": "another-one"}, "", 200),
        ({"Authorization": f"Bearer {GOOD}"}, "", 200),
        ({"Authorization": f"bearer  {GOOD} "}, "", 200),
        ({}, f"?api_key={GOOD}", 200),
        ({"Authorization": f"Basic {GOOD}"}, "", 401),
        ({"X-API-Key": GOOD[:-1]}, "", 401),
        ({"X-API-Key": GOOD + "x"}, "", 401),
        ({"X-API-Key": ""}, "", 401),
        ({}, "?api_key=", 401),
        ({}, "", 401),
    ],
)
def test_a_key_is_needed_wherever_it_may_stand(locked, headers, query, status):
    answers = [
        locked.post(f"/generate{query}", json={"text": "a"}, headers=headers),
        locked.get(f"/model{query}", headers=headers),
        locked.get(f"/metrics{query}", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [status] * 3
    if status == 401:
        assert answers[0].headers["www-authenticate"] == "Bearer"


def test_a_file_is_not_read_without_a_key(locked):
    assert locked.post("/files", files={"file": ("a.txt", b"a")}).status_code == 401


def test_the_page_health_and_languages_are_for_everybody(locked):
    assert {locked.get(path).status_code for path in ("/", "/page/main.js", "/health", "/languages", "/docs")} == {200}


def test_libretranslates_paths_take_the_key_of_a_body_and_refuse_with_403(locked):
    asked = {"q": "a", "source": "en", "target": "fr"}
    for path in ("/translate", "/detect"):
        assert locked.post(path, json={**asked, "api_key": GOOD}).status_code == 200
        assert locked.post(path, data={**asked, "api_key": GOOD}).status_code == 200
        assert locked.post(path, json={**asked, "api_key": "wrong"}).status_code == 403
        assert locked.post(path, json=asked).status_code == 403


def test_a_rate_is_that_of_each_key_and_fills_up_evenly(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("pointing.server.keys.time.monotonic", lambda: now[0])
    limits = Limits(requests_a_minute=2)
    with client_of(limits, keys=["one", "two"]) as client:

        def status(key):
            return client.get("/model", headers={"X-API-Key": key})

        assert [status("one").status_code for _ in range(3)] == [200, 200, 429]
        assert status("one").headers["retry-after"] == "31"
        assert status("two").status_code == 200
        now[0] += 31
        assert [status("one").status_code for _ in range(2)] == [200, 429]
        now[0] += 10_000
        assert [status("one").status_code for _ in range(3)] == [200, 200, 429]


def test_without_keys_the_rate_is_that_of_an_address():
    with client_of(Limits(requests_a_minute=1)) as client:
        codes = [client.get("/model", headers={"X-API-Key": str(n)}).status_code for n in range(2)]
    assert codes == [200, 429]


def test_the_memory_of_rates_is_bounded(monkeypatch):
    monkeypatch.setattr("pointing.server.keys.MOST_REMEMBERED", 3)
    keys = Keys(requests_a_minute=1)
    for address in "abcde":
        keys._count(address)
    assert list(keys._allowance) == ["c", "d", "e"]
    with pytest.raises(Refused):
        keys._count("e")
