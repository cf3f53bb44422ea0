"""The Dockerfile: what it promises, and its steps run one by one in an environment of their own, without Docker."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "frozen" / "softmax"
KEY = "a-key-of-the-test"
START = 60  # seconds that the server may take until it is healthy
FOLDERS = ("/opt/pointing", "/source", "/run-folder")  # of the image; in the test they are in a temporary folder


class Step(NamedTuple):
    """An instruction: RUN and the like, and what stands behind it."""

    name: str
    text: str


def stages():
    """The instructions of each stage, from its FROM on; lines that go on are joined, comments are left out."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    steps = [Step(*line.split(maxsplit=1)) for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines() if line]
    found = []
    for step in steps:
        if step.name == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def texts(steps, name):
    return [step.text for step in steps if step.name == name]


def copies(steps):
    """(sources, destination) of each COPY from the clone, not from another stage."""
    words = [text.split() for text in texts(steps, "COPY") if not text.startswith("--from=")]
    return [(sources, destination) for *sources, destination in words]


def is_sent(path, patterns):
    """Whether a path of the clone goes to the builder: the last pattern that matches it or a folder above decides."""
    sent = True
    for pattern in patterns:
        name = pattern.removeprefix("!")
        places = [path, *path.parents][:-1]
        if any(fnmatch(str(place), name) or fnmatch(f"/{place}", f"/{name}".replace("/**", "*")) for place in places):
            sent = pattern.startswith("!")
    return sent


def ignored():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def command(steps, name):
    """The words of an ENTRYPOINT, a CMD, or a health check's CMD."""
    (text,) = texts(steps, name)
    return json.loads(text[text.index("[") :])


def test_images_have_a_version():
    for steps in stages():
        image = steps[0].text.split()[0]
        assert re.fullmatch(r"python:3\.\d+-slim-\w+", image), image


def test_the_server_does_not_run_as_root():
    steps = stages()[-1]
    names = [step.name for step in steps]
    assert texts(steps, "USER")[-1].partition(":")[0] not in ("root", "0")
    assert "RUN" not in names[names.index("USER") :]


def test_the_health_check_asks_the_port_that_is_served():
    steps = stages()[-1]
    (port,) = texts(steps, "EXPOSE")
    server = command(steps, "ENTRYPOINT")
    assert server[server.index("--port") + 1] == port
    assert f":{port}/health" in command(steps, "HEALTHCHECK")[-1]


def test_what_is_copied_is_there_and_reaches_the_builder():
    names = [name for steps in stages() for sources, _ in copies(steps) for name in sources]
    assert "pointing" in names
    for name in names:
        assert (ROOT / name).exists(), name
        assert is_sent(Path(name), ignored()), name


@pytest.mark.parametrize(
    "path", [".git/config", ".venv/bin/python", "runs/demo/config.yaml", "data/a", "tests/tiny.py", "pointing/a.pyc"]
)
def test_nothing_else_reaches_the_builder(path):
    assert not is_sent(Path(path), ignored())


def test_torch_is_the_one_of_the_lock():
    locked = re.findall(r"^torch==\S+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert re.findall(r"\btorch==[^\s\"']+", (ROOT / "Dockerfile").read_text()) == locked


def test_no_host_is_named_but_the_container_itself():
    hosts = re.findall(r"\w+://([^/:\s'\"]+)", (ROOT / "Dockerfile").read_text())
    assert set(hosts) == {"127.0.0.1"}


@pytest.mark.slow
def test_the_steps_make_a_server(tmp_path):
    build, last = stages()

    def here(text):
        for folder in FOLDERS:
            text = re.sub(rf"(?<![\w.]){folder}\b", f"{tmp_path}{folder}", text)
        return text

    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "POINTING"))}
    outside["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    (folder,) = texts(build, "WORKDIR")
    work = Path(here(folder))
    work.mkdir()
    variables = environment(build, outside, here)
    for step in build:
        if step.name == "COPY":
            copy(step, work)
        elif step.name == "RUN":
            done = subprocess.run(here(step.text), shell=True, cwd=work, env=variables, capture_output=True, text=True)
            assert done.returncode == 0, f"RUN {step.text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    # The second stage adds a user, which needs root, and takes the environment over, which is in its place already.
    assert [text.split()[0] for text in texts(last, "RUN")] == ["useradd"]
    assert texts(last, "COPY") == ["--from=build /opt/pointing /opt/pointing"]
    shutil.copytree(RUN, tmp_path / "run-folder")
    before = contents(tmp_path / "run-folder")
    check_server(last, environment(last, outside, here), here, tmp_path)
    assert contents(tmp_path / "run-folder") == before


def environment(steps, outside, here):
    """The variables of a stage."""
    pairs = [pair.split("=", 1) for text in texts(steps, "ENV") for pair in shlex.split(here(text))]
    return outside | {name: value.replace("$PATH", outside["PATH"]) for name, value in pairs}


def copy(step, work):
    """What COPY does, with .dockerignore."""
    ((sources, destination),) = copies([step])
    patterns = ignored()
    for source in sources:
        if (ROOT / source).is_file():
            shutil.copy(ROOT / source, work / destination)
            continue
        for path in sorted((ROOT / source).rglob("*")):
            if path.is_file() and is_sent(path.relative_to(ROOT), patterns):
                target = work / destination / path.relative_to(ROOT / source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_server(steps, variables, here, folder):
    """The server with a key answers, is healthy and ends in good order; without one it does not start."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (exposed,) = texts(steps, "EXPOSE")
    words = [here(word) for word in [*command(steps, "ENTRYPOINT"), *command(steps, "CMD")]]
    server = [port if word == exposed else word for word in words]
    health = [word.replace(f":{exposed}/", f":{port}/") for word in command(steps, "HEALTHCHECK")]
    for line in (server, health):  # the program of the new environment, as PATH would find it in the container
        line[0] = shutil.which(line[0], path=variables["PATH"])
        assert line[0].startswith(str(folder))

    def run(line):
        return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, timeout=START)

    refused = run(server)
    assert refused.returncode == 2
    assert "POINTING_API_KEY" in refused.stderr
    assert run(health).returncode != 0

    messages = folder / "messages.txt"
    with messages.open("w") as file:
        process = subprocess.Popen(server, cwd=folder, env=variables | {"POINTING_API_KEY": KEY}, stderr=file)
    try:
        deadline = time.monotonic() + START
        while run(health).returncode != 0:
            assert process.poll() is None, messages.read_text()
            assert time.monotonic() < deadline, messages.read_text()
        address = f"http://127.0.0.1:{port}"
        with urlopen(Request(f"{address}/model", headers={"X-API-Key": KEY}), timeout=10) as answer:
            assert [model["name"] for model in json.load(answer)["models"]] == ["run-folder"]
        with pytest.raises(HTTPError) as error:
            urlopen(f"{address}/model", timeout=10)
        with error.value as answer:
            assert answer.status == 401
    finally:
        process.terminate()
        code = process.wait(timeout=30)
    assert code == 0, messages.read_text()
