"""LibreTranslate's clients as they are, against the command `pointing serve` in a process of its own."""

import json
import os
import shutil
import subprocess
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from browser import ROOT, serving
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException, ServerException
from here import POINTER
from libretranslatepy import LibreTranslateAPI

TEXTS = [
    "the modern release of tobram is 315.38.266",
    "open «été».conf & 100% + more",
    "please install zorblatt on hal9000",
]
KEY = "a secret & more"
NODE_CLIENT = ROOT / ".venv" / "node" / "node_modules" / "libretranslate"
SCRIPT = f"""
const {{ translate }} = require({json.dumps(str(NODE_CLIENT))});
Promise.all(JSON.parse(process.argv[1]).map((request) => translate(request).catch((error) => String(error))))
  .then((answers) => console.log(JSON.stringify(answers)));
"""
SECONDS = 60


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), POINTER) as address:
        yield address


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """The address of a server that wants a key."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "keys.txt").write_text(f"# ours\n{KEY}\n")
    with serving(folder, POINTER, "--api-key-file", folder / "keys.txt") as address:
        yield address


@pytest.fixture(scope="module")
def expected(address):
    """What POST /generate answers for the texts."""
    request = Request(f"{address}/generate", json.dumps({"text": TEXTS}).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=SECONDS) as answer:
        return [output["text"] for output in json.load(answer)["outputs"]]


def test_libretranslatepy(address, expected):
    client = LibreTranslateAPI(address)
    assert [client.translate(text, "en", "fr") for text in TEXTS] == expected
    assert client.translate("\n".join(TEXTS), "auto", "fr") == "\n".join(expected)
    assert client.detect(TEXTS[0])[0]["language"] == "en"
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]


def test_libretranslatepy_gets_errors_as_errors(address):
    with pytest.raises(HTTPError) as caught:
        LibreTranslateAPI(address).translate(TEXTS[0], "en", "es")
    assert caught.value.code == 400
    assert json.load(caught.value) == {"error": "es is not supported"}


def test_libretranslatepy_with_a_key(locked, expected):
    client = LibreTranslateAPI(locked, KEY)
    assert client.translate(TEXTS[0], "en", "fr") == expected[0]
    assert client.detect(TEXTS[0])[0]["language"] == "en"
    assert client.languages()[0]["code"] == "en"
    with pytest.raises(HTTPError) as caught:
        LibreTranslateAPI(locked, "another").translate(TEXTS[0], "en", "fr")
    assert caught.value.code == 403
    assert json.load(caught.value) == {"error": "Invalid API key"}


def test_deep_translator(address, expected):
    translator = LibreTranslator(source="en", target="fr", custom_url=f"{address}/", api_key="any")
    assert [translator.translate(text) for text in TEXTS] == expected
    assert translator.translate_batch(TEXTS) == expected
    detecting = LibreTranslator(source="auto", target="French", custom_url=f"{address}/", api_key="any")
    assert detecting.translate(TEXTS[0]) == expected[0]
    with pytest.raises(ServerException):
        LibreTranslator(source="en", target="es", custom_url=f"{address}/", api_key="any").translate(TEXTS[0])


def test_deep_translator_with_a_key(locked, expected):
    def translator(key):
        return LibreTranslator(source="en", target="fr", custom_url=f"{locked}/", api_key=key)

    assert translator(KEY).translate(TEXTS[0]) == expected[0]
    with pytest.raises(AuthorizationException):
        translator("another").translate(TEXTS[0])


def node():
    """The path of node. Without it or its client the test is skipped, but never where all tests have to run."""
    found = shutil.which("node")
    if found is None or not NODE_CLIENT.is_dir():
        missing = "node" if found is None else NODE_CLIENT
        reason = f"LIBRETRANSLATE'S CLIENT FOR NODE IS NOT TESTED: there is no {missing} here (make browser)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def test_the_client_for_node(address, expected):
    requests = [{"query": text, "source": "en", "target": "fr", "apiurl": address} for text in TEXTS]
    requests += [{"query": TEXTS[0], "target": "fr", "apiurl": address}]  # its source is "auto" then
    requests += [{"query": f"<p>{TEXTS[0]}</p>", "source": "en", "target": "fr", "format": "html", "apiurl": address}]
    requests += [{"query": TEXTS, "source": "en", "target": "fr", "apiurl": address}]
    requests += [{"query": TEXTS[0], "source": "en", "target": "es", "apiurl": address}]
    command = [node(), "-e", SCRIPT, json.dumps(requests)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stderr == ""
    *answers, error = json.loads(done.stdout)
    assert answers == [*expected, expected[0], f"<p>{expected[0]}</p>", expected]
    assert error == "TypeError: This language was not found/does not exist."  # it asked /languages
