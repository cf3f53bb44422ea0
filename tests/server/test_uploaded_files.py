"""POST /files: a translator's file in, the same file filled and its review page out; and what is refused."""

import asyncio
import base64
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from threading import Event

import own_loop
import polib
import pytest
from here import POINTER, client_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointing.server.files import safe_name
from pointing.server.limits import Limits
from pointing.server.models import Models

HEADER = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
FILLED = (
    '# Mine.\n#. theirs\n#: a.c:1\nmsgid   "done"\nmsgstr "fait"   \n\n#, fuzzy\nmsgid "half"\nmsgstr "à moitié"\n\n'
)
OBSOLETE = '#~ msgid "old"\n#~ msgstr "vieux"\n# the end'
NEW = 'msgid "please install zorblatt on hal9000"\nmsgstr ""\n'
CATALOG = f"{HEADER}{FILLED}{NEW}\n{OBSOLETE}"
HOSTILE = "<script>alert(1)</script> \\\"'><img src=x onerror=alert(2)> </title></style> zorblatt"
SECONDS = 20


@pytest.fixture(scope="module")
def client():
    with client_of() as client:
        yield client


def send(client, name, data, **values):
    return client.post("/files", files={"file": (name, data)}, data=values)


def answered(client, name, data, **values):
    """The answer's JSON, with the file's bytes as `data`."""
    answer = send(client, name, data, **values)
    assert answer.status_code == 200, answer.text
    return {**answer.json(), "data": base64.b64decode(answer.json()["data"])}


def refused(answer, status=400):
    """The sentence of a refusal, which says nothing about the server's own folders."""
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    sentence = answer.json()["error"]
    assert tempfile.gettempdir() not in sentence
    assert "Traceback" not in sentence
    return sentence


def test_a_catalog_comes_back_filled_and_the_rest_of_it_is_the_same_to_the_byte(client):
    answer = answered(client, "app.po", CATALOG.encode())
    text = answer["data"].decode()
    assert text.startswith(f"{HEADER}{FILLED}#, fuzzy\n{NEW.splitlines()[0]}\nmsgstr ")
    assert text.endswith(f"\n\n{OBSOLETE}")
    (entry,) = [entry for entry in polib.pofile(text) if entry.msgid.startswith("please")]
    assert entry.msgstr
    assert answer["name"] == "app.fr.po"
    counts = {name: answer["summary"][name] for name in ("entries", "filled", "left", "failed")}
    assert counts == {"entries": 3, "filled": 1, "left": 2, "failed": 0}
    assert answer["summary"]["notes"] == []


def test_a_catalog_without_anything_to_fill_is_the_same_to_the_byte(client):
    data = f"{HEADER}{FILLED}{OBSOLETE}".replace("\n", "\r\n").encode()
    answer = answered(client, "fr.po", data)
    assert answer["data"] == data
    assert answer["name"] == "fr.po"


def test_the_lines_of_a_text_are_translated_as_texts_are(client):
    lines = ["please install zorblatt on hal9000", "open my.conf with emacs29"]
    data = f"{lines[0]}\r\n\n  \n{lines[1]}".encode()
    outputs = client.post("/generate", json={"text": lines}).json()["outputs"]
    first, second = (output["text"] for output in outputs)
    answer = answered(client, "notes.txt", data)
    assert answer["data"].decode() == f"{first}\r\n\n  \n{second}"
    assert answer["name"] == "notes.fr.txt"


def test_a_file_longer_than_one_turn_in_the_queue_is_translated_in_its_order(client):
    lines = [f"open file{number}.conf with zorblatt" for number in range(100)]
    outputs = [
        output["text"]
        for first in (0, 50)
        for output in client.post("/generate", json={"text": lines[first : first + 50]}).json()["outputs"]
    ]
    assert answered(client, "long.txt", "\n".join(lines))["data"].decode().split("\n") == outputs


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.xlf", "a.pot"])
def test_every_kind_of_file_is_filled(client, name):
    xliff = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en"'
    xliff += ' target-language="fr" datatype="plaintext"><body><trans-unit id="1"><source>zorblatt depends on quux'
    data = {
        "a.csv": "en,fr\nzorblatt depends on quux,\n",
        "a.tsv": "en\tfr\nzorblatt depends on quux\t\n",
        "a.jsonl": '{"en": "zorblatt depends on quux", "fr": ""}\n',
        "a.xlf": f"{xliff}</source></trans-unit></body></file></xliff>",
        "a.pot": HEADER.replace("fr\\n", "\\n") + NEW,
    }[name]
    answer = answered(client, name, data)
    assert answer["summary"]["filled"] == 1
    assert answer["name"] == {"a.pot": "fr.po"}.get(name, name.replace(".", ".fr."))


def test_a_run_a_beam_and_terms_can_be_chosen(client):
    by_pointer, by_softmax = (
        answered(client, "app.po", CATALOG, run=run, beam="1") for run in ("pointer-softmax", "softmax")
    )
    assert by_pointer["data"] != by_softmax["data"]
    text = "please install zorblatt on hal9000"
    output = client.post("/generate", json={"text": text, "run": "softmax", "beam": 1}).json()["outputs"][0]
    assert polib.pofile(by_softmax["data"].decode()).find(text).msgstr == output["text"]
    terms = answered(client, "app.po", CATALOG, glossary='{"install": "posez donc"}', keep='["please"]')
    assert "posez donc" in terms["data"].decode().partition('msgid "please')[2]
    assert re.search('msgstr ".*please.*"', terms["data"].decode())
    assert terms["summary"]["glossary_terms"] == 1


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.po", b'msgid "a\nmsgstr ""\n', "a.po:1: "),
        ("a.po", HEADER.encode() + b'msgid "\xff"\nmsgstr ""\n', "a.po:6: not UTF-8"),
        ("a.txt", b"one\n\xff\xfe", "a.txt:2: not utf-8"),
        ("a.xlf", b"<xliff", "a.xlf:1: this is no XML"),
        ("a.xlf", b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><xliff>&c;</xliff>', "a.xlf"),
        ("a.jsonl", b'{"en": ', "a.jsonl:1: "),
        ("a.csv", b'en,fr\n"a', "a.csv"),
        (
            "de.po",
            CATALOG.replace("Language: fr", "Language: de").encode(),
            "de.po: this file is a translation into 'de'",
        ),
        ("a.png", b"\x89PNG", "a.png: files named *.png"),
        ("a", b"x", "a: files without an ending"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_a_sentence_that_names_it_alone(client, name, data, sentence):
    assert refused(send(client, name, data)).startswith(sentence)


def test_notes_and_the_review_page_name_the_file_alone(client):
    answer = answered(client, "a.csv", "en\nzorblatt depends on quux\n")
    (note,) = answer["summary"]["notes"]
    assert note.startswith("a.csv: ")
    for folder in (tempfile.gettempdir(), "out/"):
        assert folder not in answer["review"]
        assert folder not in note
    assert "→ a.fr.csv<" in answer["review"]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["a.po", "a.pot", "a.xlf", "a.csv", "a.tsv", "a.jsonl", "a.txt"]),
    st.one_of(st.binary(max_size=30), st.lists(st.sampled_from([CATALOG[:300], *CATALOG.split("\n")])).map("\n".join)),
)
def test_whatever_a_file_holds_it_is_filled_or_refused(client, name, data):
    answer = send(client, name, data)
    assert answer.status_code == 200 or refused(answer).startswith("a.")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/", "file"),
        ("..", "file"),
        ("", "file"),
        ("a\0b.po", "a_b.po"),
        ("<img src=x onerror=alert(1)>.po", "_img_src_x_onerror_alert_1_.po"),
        ("-rf.po", "rf.po"),
        (".hidden.po", "hidden.po"),
        ("my file; rm -r $(HOME).po", "my_file_rm_-r_HOME_.po"),
        ("été\u202egpj.po", "_t_gpj.po"),
        ("x" * 500 + ".po", "x" * 77 + ".po"),
        ("app.fr-FR_2.po", "app.fr-FR_2.po"),
    ],
)
def test_names_become_harmless(name, safe):
    assert safe_name(name) == safe


@settings(max_examples=300)
@given(st.one_of(st.text(), st.text(st.sampled_from("a./\\-_ \0é"), max_size=200)))
@example("x" * 10 + "." * 90)
@example("x" * 10 + "-" + "y" * 79)
def test_a_name_is_of_few_plain_characters_and_leads_nowhere(name):
    safe = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", safe)
    assert Path("/folder", safe).resolve().parent == Path("/folder")
    assert safe_name(safe) == safe


@pytest.mark.parametrize("name", ["out", "out.txt", "review.html", "out/out", "file", "con.po", "x" * 300 + ".txt"])
def test_no_name_of_a_file_gets_in_the_way_of_the_servers_own(client, name):
    answer = send(client, name, "zorblatt depends on quux\n")
    if name.endswith(".txt"):
        assert answer.json()["summary"]["filled"] == 1
    else:
        refused(answer)


@pytest.mark.parametrize(
    "name", ["../../tmp/a.txt", "a\nb.txt", "<img src=x onerror=alert(1)>.txt", 'a";b.txt', "é.txt"]
)
def test_a_file_with_a_hostile_name_is_filled_under_a_harmless_one(client, name):
    answer = answered(client, name, "zorblatt depends on quux\n")
    assert re.fullmatch(r"\w[\w.-]*\.fr\.txt", answer["name"], re.ASCII)
    assert "<img" not in answer["review"]


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))


def test_nothing_in_the_texts_becomes_a_part_of_the_review_page(client):
    kinds = []
    for text in ("harmless, and zorblatt", HOSTILE):
        entries = f'msgctxt "{text}"\nmsgid "{text}"\nmsgstr ""\n\nmsgid "done {text}"\nmsgstr "fait {text}"\n'
        answer = answered(client, "app.po", f"{HEADER}#. {text}\n#: {text}\n{entries}")
        assert answer["summary"]["entries"] == 2
        kinds.append(set(Elements(answer["review"]).found))
    harmless, hostile = kinds
    assert {kind[0] for kind in hostile} <= {kind[0] for kind in harmless} | {"details", "summary", "ol", "li"}
    assert not any(attribute.startswith("on") or attribute == "src" for kind in hostile for attribute in kind[1:])
    assert answer["review"].count("<script") == 1
    assert "&lt;script&gt;alert(1)" in answer["review"]


def test_a_run_that_is_not_there_is_refused(client):
    sentence = refused(send(client, "app.po", CATALOG, run="../../etc"), 404)
    assert "pointer-softmax, softmax" in sentence
    assert "etc" not in sentence


@pytest.mark.parametrize(
    "beam", ["0", "-1", "x", "21", "1.5", "²", " 5", "1" * 30, "000000001000", "0" * 8 + "1" * 5000]
)
def test_a_beam_that_is_no_number_within_the_limit_is_refused(client, beam):
    assert refused(send(client, "app.po", CATALOG, beam=beam)) == "beam: should be a number from 1 to 20"


@pytest.mark.parametrize(
    "values",
    [
        {"glossary": "{"},
        {"glossary": "[]"},
        {"glossary": "null"},
        {"glossary": '{"a": 1}'},
        {"glossary": "[" * 100_000},
        {"glossary": '{"a": ' + "1" * 5000 + "}"},
        {"glossary": '{"zorblatt": "\\ud800"}'},
        {"keep": "{}"},
        {"keep": '"zorblatt"'},
        {"keep": '["a", 1]'},
        {"keep": "NaN"},
    ],
    ids=lambda values: next(f"{name} {value[:20]}" for name, value in values.items()),
)
def test_terms_that_are_no_json_of_the_right_kind_are_refused(client, values):
    assert re.match("glossary|keep", refused(send(client, "app.po", CATALOG, **values)))


def test_terms_that_the_run_cannot_use_or_that_are_too_many_are_refused(client):
    assert "softmax" in refused(send(client, "app.po", CATALOG, run="softmax", keep='["zorblatt"]'), 422)
    assert "no word" in refused(send(client, "app.po", CATALOG, glossary='{"": "x"}'), 422)
    many = "{" + ",".join(f'"a{number}": "b"' for number in range(501)) + "}"
    assert refused(send(client, "app.po", CATALOG, glossary=many)).startswith("glossary: more than 500")


def test_a_request_without_a_file_is_refused_with_what_to_do(client):
    for answer in (
        client.post("/files", files={"other": ("app.po", CATALOG)}),
        client.post("/files", files={"file": (None, CATALOG)}),
        client.post("/files", files={"run": (None, "softmax")}),
        client.post("/files", data={"file": CATALOG}),
        client.post("/files", json={"file": CATALOG}),
        client.post("/files", content=CATALOG.encode(), headers={"content-type": "text/plain"}),
        client.post("/files"),
    ):
        assert refused(answer) == "send the file as multipart/form-data, with the name `file`"


def test_a_form_that_is_none_is_refused(client):
    for kind, body in [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=y", b"x"),
        (
            "multipart/form-data; boundary=y",
            b'--y\r\ncontent-disposition: form-data; name="file"; filename="a.po"\r\n\r\n',
        ),
    ]:
        refused(client.post("/files", content=body, headers={"content-type": kind}))
    refused(client.post("/files", files=[("file", ("a.po", CATALOG)), ("file", ("b.po", CATALOG))]))
    refused(client.post("/files", files={"file": ("a.po", CATALOG), **{f"x{n}": (None, "y") for n in range(20)}}))


def test_the_kind_of_a_form_may_be_written_in_capitals(client):
    body = b'--y\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nquux\r\n--y--\r\n'
    answer = client.post("/files", content=body, headers={"content-type": "Multipart/Form-Data; boundary=y"})
    assert answer.status_code == 200, answer.text


def test_a_file_beyond_the_limit_is_refused():
    with client_of(Limits(body=2_000)) as client:
        assert "2,000 bytes" in refused(send(client, "a.txt", "x" * 2_000), 413)
        assert send(client, "a.txt", "x" * 1_000).status_code == 200


def test_a_file_needs_a_key_where_there_are_keys():
    with client_of(keys=["secret"]) as client:
        refused(send(client, "a.txt", "quux"), 401)
        answer = client.post("/files", files={"file": ("a.txt", "quux")}, headers={"x-api-key": "secret"})
        assert answer.status_code == 200


def test_no_more_files_are_translated_at_the_same_time_than_the_limit_allows():
    with client_of(Limits(files=2)) as client, ThreadPoolExecutor(2) as threads:
        with client.service.batcher._changed:  # nothing is decoded meanwhile
            working = [threads.submit(send, client, "a.txt", f"open file{number}") for number in range(2)]
            deadline = time.monotonic() + SECONDS
            while not client.service.files_at_work.locked():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            answer = send(client, "a.txt", "open file3")
            assert "2 files are being translated already" in refused(answer, 503)
            assert int(answer.headers["retry-after"]) > 0
            assert refused(send(client, "a.txt", "x", beam="0"))  # what is wrong is said all the same
        assert [future.result(SECONDS).status_code for future in working] == [200, 200]
        assert send(client, "a.txt", "open file3").status_code == 200


class Held:
    """A run that decodes nothing until it is let go."""

    def __init__(self, generator):
        self.generator, self.read = generator, generator.read
        self.is_open, self.has_begun = Event(), Event()
        self.lines = 0

    def run(self, lines, settings, **options):
        self.has_begun.set()
        self.is_open.wait(SECONDS)
        self.lines += len(lines)
        return self.generator.run(lines, settings, **options)


@contextmanager
def held_client(**limits):
    models = Models.load([POINTER])
    (model,) = models.served
    held = Held(model.generator)
    with client_of(Limits(**limits), models=Models([replace(model, generator=held)])) as client:
        try:
            yield client, held
        finally:
            held.is_open.set()


LINES = "\n".join(f"open file{number}" for number in range(100))


def test_a_file_that_takes_too_long_is_given_up_and_makes_room():
    with held_client(files=1, file_seconds=0.3) as (client, held):
        answer = send(client, "a.txt", LINES)
        assert refused(answer, 503) == "the answer took too long: try again in 1 s"
        assert answer.headers["retry-after"] == "1"
        held.is_open.set()
        assert send(client, "a.txt", "open file2").status_code == 200
        assert held.lines == 32 + 1  # those that were being decoded; nothing was decoded after the end


def test_a_file_that_nobody_waits_for_any_more_is_not_translated_further():
    with held_client() as (client, held):
        hung_up = Event()

        async def receive_file():
            while not held.has_begun.is_set():
                await asyncio.sleep(0.01)
            hung_up.set()
            return {"type": "http.disconnect"}

        kind, body = _multipart("a.txt", LINES)
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        headers = [(b"host", b"localhost"), (b"content-type", kind.encode())]
        scope = {"type": "http", "method": "POST", "path": "/files", "query_string": b"", "headers": headers}
        sent = []

        async def receive():
            return messages.pop() if messages else await receive_file()

        async def send_back(message):
            sent.append(message)

        async def ask():
            await asyncio.wait_for(client.app(scope, receive, send_back), SECONDS)

        own_loop.run(ask())
        assert hung_up.is_set()
        assert sent == []
        held.is_open.set()
        assert send(client, "a.txt", "open file2").status_code == 200
        assert held.lines == 32 + 1


def _multipart(name, text):
    """The kind and the body of a form with a file."""
    head = f'--y\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "multipart/form-data; boundary=y", f"{head}{text}\r\n--y--\r\n".encode()
