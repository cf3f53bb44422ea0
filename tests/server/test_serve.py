"""The command `pointing serve` as a process: how it begins, what it withstands, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import forked
import pytest
from browser import SERVING, START
from here import FROZEN, POINTER, SOFTMAX

TEXT = "the modern release of tobram is 315.38.266"


def command(*arguments, **environment):
    """Exit code and messages of a command that is expected to end by itself."""
    done = forked.run("serve", *arguments, env={**os.environ, **environment}, timeout=START)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


class Process:
    """A server that a test may end as it likes."""

    def __init__(self, messages, *arguments, port=0):
        self.messages = messages
        messages.write_text("")
        self.process = forked.Forked("serve", *arguments, "--port", port, stdout=os.devnull, stderr=messages)
        deadline = time.monotonic() + START
        while not (found := SERVING.search(messages.read_text())):
            assert self.process.poll() is None, messages.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.address = found[1]
        self.port = int(self.address.rpartition(":")[2])

    def ask(self, path="/health", body=None):
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + path, data, {"content-type": "application/json"})
        try:
            with urlopen(request, timeout=START) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=START)

    @property
    def kilobytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@contextmanager
def started(folder, *arguments, port=0):
    server = Process(folder / "messages.txt", *arguments, port=port)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with started(tmp_path_factory.mktemp("server"), POINTER, "--against", SOFTMAX) as server:
        yield server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_answered_after_the_signal_to_stop(tmp_path, number):
    slow = {"text": [f"{TEXT} {n}" for n in range(8)], "beam": 20, "min_length": 100, "max_ratio": 100.0}
    with started(tmp_path, POINTER, "--max-batch", "4") as server, ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(server.ask, "/generate", slow) for _ in range(6)]
        while "pointing_texts_total 0.0" in _metrics(server):
            time.sleep(0.01)
        code = server.end(number)
        statuses = [answer.result(START)[0] for answer in answers]
        outputs = [len(answer.result(START)[1]["outputs"]) for answer in answers]
        messages = server.messages.read_text()
    assert code == 0
    assert statuses == [200] * 6
    assert outputs == [8] * 6
    assert "Traceback" not in messages


def test_no_request_is_lost_when_the_signal_to_stop_comes_in_the_middle_of_the_load(tmp_path):
    """Half of the clients keep their connection, the others make a new one for every request."""
    body, fields = json.dumps({"text": TEXT, "beam": 1}), {"content-type": "application/json"}

    def client(port, keeps_connection):
        """How many answers there were until nobody was there any more; a request without an answer is an error."""
        connection, answers = HTTPConnection("127.0.0.1", port, timeout=START), 0
        with closing(connection):
            while True:
                try:
                    connection.connect() if connection.sock is None else None
                except ConnectionRefusedError:
                    return answers
                connection.request("POST", "/generate", body, fields)
                with connection.getresponse() as answer:
                    assert answer.status == 200
                    assert len(json.load(answer)["outputs"]) == 1
                answers += 1
                if not keeps_connection:
                    connection.close()

    with started(tmp_path, POINTER) as server, ThreadPoolExecutor(16) as pool:
        clients = [pool.submit(client, server.port, bool(number % 2)) for number in range(16)]
        time.sleep(1)
        assert server.end() == 0
        assert min(client.result(START) for client in clients) > 0


def test_the_last_answer_of_a_connection_says_so_after_the_signal_to_stop(tmp_path):
    slow = {"text": [f"{TEXT} {n}" for n in range(8)], "beam": 20, "min_length": 100, "max_ratio": 100.0}
    with started(tmp_path, POINTER, "--max-batch", "1") as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=START)
        connection.request("POST", "/generate", json.dumps(slow), {"content-type": "application/json"})
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        with closing(connection), connection.getresponse() as answer:
            assert answer.status == 200
            assert answer.getheader("connection") == "close"  # a client would send its next request into a closed one
        assert server.process.wait(START) == 0


def _metrics(server):
    with urlopen(server.address + "/metrics", timeout=START) as answer:
        return answer.read().decode()


def test_a_server_that_was_killed_is_started_again_on_the_same_port(tmp_path):
    with started(tmp_path, POINTER) as first:
        before = first.ask("/generate", {"text": TEXT})
        with socket.create_connection(("127.0.0.1", first.port)):  # a client that was connected
            first.end(signal.SIGKILL)
            with started(tmp_path, POINTER, port=first.port) as second:
                assert second.ask("/generate", {"text": TEXT}) == before


def test_a_port_that_is_taken_is_said_before_anything_is_loaded(server):
    code, messages = command(POINTER, "--port", server.port)
    assert code == 1
    assert "Address already in use" in messages
    assert "--port" in messages


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_off_loopback_a_key_or_no_auth_is_needed(host):
    code, messages = command(POINTER, "--host", host, "--port", "0")
    assert code == 2
    assert "--no-auth" in messages


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([FROZEN / "nothing"], "nothing"),
        ([FROZEN / "entities"], "tags"),
        ([POINTER, FROZEN / "dictionary"], "--against"),
        ([POINTER, "--host", "no such host", "--no-auth"], "no such address"),
        ([POINTER, "--api-key-file", FROZEN / "nothing"], "nothing"),
        ([POINTER, "--max-batch", "0"], "max-batch"),
    ],
)
def test_misuse_is_said_with_exit_code_2(arguments, words):
    code, messages = command(*arguments)
    assert code == 2
    assert words in messages


def test_an_empty_key_file_is_no_lock(tmp_path):
    (tmp_path / "keys").write_text("# none yet\n\n")
    code, messages = command(POINTER, "--api-key-file", tmp_path / "keys")
    assert code == 2
    assert "no API key" in messages


def test_keys_come_from_a_file_and_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "keys").write_text("# ours\nfrom-the-file\n")
    monkeypatch.setenv("POINTING_API_KEY", "from-the-environment")
    arguments = POINTER, "--host", "0.0.0.0", "--api-key-file", tmp_path / "keys"
    with started(tmp_path, *arguments) as server:
        assert server.ask("/model")[0] == 401
        for key in ("from-the-file", "from-the-environment"):
            assert server.ask(f"/model?api_key={key}")[0] == 200


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    (tmp_path / "fastapi.py").write_text("raise ModuleNotFoundError(\"No module named 'fastapi'\", name='fastapi')")
    path = os.pathsep.join([str(tmp_path), str(FROZEN.parents[1])])
    real = [sys.executable, "-m", "pointing", "serve", str(POINTER)]
    done = subprocess.run(real, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, "pointing[serve]" in done.stderr) == (2, True), done.stderr


LOADING = """
import os, torch
from pathlib import Path
from pointing.server import serve

class Models:
    @staticmethod
    def load(*_):
        torch.ones(1 << 22) + 1  # as large as to be shared among all threads
        return len(os.listdir("/proc/self/task"))

async def run(threads_after_loading, *_):
    print(threads_after_loading - threads_before, torch.get_num_threads())

serve.Models, serve._run = Models, run
torch.set_num_threads(4)
threads_before = len(os.listdir("/proc/self/task"))
serve.serve([Path("none")], port=0)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux shows a process's threads")
def test_loading_a_model_starts_no_threads_that_would_be_in_the_way_of_those_that_decode():
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=START, check=False)
    assert done.stdout.split() == ["0", "4"], done.stderr


def test_connections_that_ask_nothing_are_closed_and_stand_in_nobodys_way(tmp_path):
    script = (
        "from pathlib import Path; from pointing.server.limits import Limits; from pointing.server.serve import serve;"
        f"serve([Path({str(POINTER)!r})], port=0, limits=Limits(header_seconds=1))"
    )
    messages = tmp_path / "messages.txt"
    with messages.open("w") as file, subprocess.Popen([sys.executable, "-c", script], stderr=file) as process:
        try:
            while not (found := SERVING.search(messages.read_text())):
                time.sleep(0.05)
            port = int(found[1].rpartition(":")[2])
            silent = [socket.create_connection(("127.0.0.1", port), timeout=START) for _ in range(50)]
            for connection in silent[:25]:
                connection.sendall(b"POST /generate HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            for connection in silent[25:40]:
                connection.sendall(b"POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                assert answer.status == 200
            answers = [_all_of(connection) for connection in silent]
        finally:
            process.terminate()
    assert set(answers[:25] + answers[40:]) == {b""}
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers[25:40])


def _all_of(connection):
    """What the server sends until it closes the connection."""
    with connection:
        parts = iter(lambda: connection.recv(65_536), b"")
        return b"".join(parts)


def test_a_client_that_sends_far_too_much_reads_why_it_was_refused(server):
    status, answer = server.ask("/generate", {"text": "x" * 5_000_000})  # and looks for an answer only at the end
    assert (status, answer) == (413, {"error": "the body is larger than 1,000,000 bytes"})


def test_a_client_that_hangs_up_is_worked_for_no_more(server):
    long = {"text": [TEXT] * 64, "beam": 20, "min_length": 500, "max_length": 500, "max_ratio": 100.0}
    body = json.dumps(long).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = f"POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        time.sleep(0.5)  # its search has begun
    assert server.ask("/generate", {"text": TEXT})[0] == 200
    assert 'status="499"' in _metrics(server)


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 100,
        b"A" * 100_000,
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_noise_instead_of_a_request_harms_nobody(server, noise):
    with socket.create_connection(("127.0.0.1", server.port), timeout=START) as connection:
        connection.sendall(noise)
        connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):  # cut off before all was read
            assert _all_of(connection)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert server.ask()[0] == 200


def test_texts_are_not_written_into_the_log(server):
    server.ask("/generate", {"text": "secret-word"})
    server.ask("/translate?q=secret-word&source=en&target=fr", {})
    server.ask("/generate", {"text": 7, "secret-word": "secret-word"})
    assert "secret-word" not in server.messages.read_text()


@pytest.mark.slow
def test_ten_thousand_requests_leave_the_memory_as_it_was(tmp_path):
    with started(tmp_path, POINTER) as server, ThreadPoolExecutor(8) as pool:

        def ask(number):
            return server.ask(
                "/generate", {"text": f"the release of name{number} is {number}", "keep": [f"name{number}"]}
            )[0]

        assert set(pool.map(ask, range(4_000))) == {200}  # until each thread has the memory that it needs
        before = server.kilobytes
        assert set(pool.map(ask, range(4_000, 14_000))) == {200}
        after = server.kilobytes
    assert after < before * 1.05, f"{before} kB before, {after} kB after"
