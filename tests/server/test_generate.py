"""POST /generate and the paths beside it, as programs use them."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from here import POINTER, SOFTMAX, client_of

from pointing import __version__, load
from pointing.server.guard import HEADERS
from pointing.server.limits import Limits

TEXTS = ["the modern release of tobram is 315.38", "", "open zorblatt.conf", "a b c d e f g h", "<unk> </s> x"]


@pytest.fixture(scope="module")
def client():
    with client_of() as client:
        yield client


@pytest.fixture(scope="module")
def model():
    return load(POINTER)


def generate(client, text, **options):
    answer = client.post("/generate", json={"text": text, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def same(found, expected):
    """Equal, except for the last digits of numbers: a batch is not summed up in the order of its lines alone."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys()
        for name, value in expected.items():
            same(found[name], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=2e-5)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 1},
        {"beam": 4, "nbest": 3, "ranking": "marginal", "normalize": "gnmt", "alpha": 1.0},
        {"max_length": 2, "min_length": 2, "block_ngrams": 1, "coverage": 0.3},
        {"normalize": "dl4mt", "max_ratio": None, "allow_unk": False},
        {"glossary": {"release": "parution"}, "keep": ["open"]},
    ],
)
def test_an_answer_is_what_the_python_interface_gives(client, model, options):
    found = generate(client, TEXTS, **options)
    expected = [output.json() for output in model.generate(TEXTS, **options)]
    assert found["run"] == "pointer-softmax"
    same(found["outputs"], expected)


def test_a_term_may_be_encouraged_only(client, model):
    terms = {"release": "parution"}
    found = generate(client, TEXTS, glossary=terms, glossary_mode="encouraged")["outputs"]
    glossary = model.glossary(terms, None, "encouraged")
    same(found, [output.json() for output in model.generate(TEXTS, glossary=glossary)])


def test_one_text_has_one_output_and_the_tokens_of_its_source(client):
    (output,) = generate(client, "open  zorblatt.conf")["outputs"]
    assert output["line"] == 1
    assert output["source"]["text"] == "open  zorblatt.conf"
    assert [(token["text"], token["span"]) for token in output["source"]["tokens"]] == [
        ("open", [0, 4]),
        ("zorblatt.conf", [6, 19]),
    ]
    assert "location" not in output["tokens"][0]
    assert "choices" not in output["tokens"][0]


def test_locations_and_choices_come_when_they_are_asked_for(client, model):
    (output,) = generate(client, TEXTS[0], locations=True, choices=3, nbest=2)["outputs"]
    expected = model.generate(TEXTS[0], locations=True, choices=3, nbest=2)
    for found, token in zip(output["tokens"], expected.tokens, strict=True):
        assert found["location"] == pytest.approx(token.location, abs=1e-4)
        assert len(found["location"]) == len(output["source"]["tokens"])
        assert found["choices"][0]["text"] == token.choices[0].text
        assert 1 <= len(found["choices"]) <= 3
    assert "location" in output["alternatives"][0]["tokens"][0]


def test_texts_of_many_requests_at_once_get_the_outputs_that_they_get_alone(client):
    texts = [f"{text} name{number}" for number in range(4) for text in TEXTS]
    alone = [generate(client, text)["outputs"] for text in texts]
    with ThreadPoolExecutor(len(texts)) as pool:
        together = list(pool.map(lambda text: generate(client, text)["outputs"], texts))
    same(together, alone)


def test_the_run_to_compare_with_is_asked_by_its_name(client):
    found = generate(client, TEXTS[0], run="softmax")
    assert found["run"] == "softmax"
    same(found["outputs"], [load(SOFTMAX).generate(TEXTS[0]).json()])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "text"),
        ({"text": 7}, 400, "text"),
        ({"text": []}, 400, "text"),
        ({"text": ["a"] * 65}, 400, "64"),
        ({"text": "a" * 5001}, 400, "5000"),
        ({"text": "a", "beam": 21}, 400, "20"),
        ({"text": "a", "beam": 0}, 400, "beam"),
        ({"text": "a", "beam": True}, 400, "beam"),
        ({"text": "a", "beem": 2}, 400, "beem: there is no such parameter"),
        ({"text": "a", "run": "other"}, 400, "pointer-softmax"),
        ({"text": "a", "nbest": 6}, 422, "nbest"),
        ({"text": "a", "min_length": 5, "max_length": 4}, 422, "min_length"),
        ({"text": "a", "ranking": "best"}, 400, "ranking"),
        ({"text": "a", "glossary": {"": "b"}}, 400, "glossary"),
        ({"text": "a", "keep": ["x" * 201]}, 400, "200"),
        ({"text": "a", "keep": [str(n) for n in range(501)]}, 400, "500"),
        (
            {"text": "a", "keep": [f"k{n}" for n in range(400)], "glossary": {f"g{n}": "x" for n in range(400)}},
            400,
            "500",
        ),
        ({"text": "a", "keep": ["b"], "run": "softmax"}, 422, "cannot point"),
        ({"text": "a", "min_confidence": 2.0}, 400, "min_confidence"),
        ({"text": "a", "min_confidence": 0.5}, 422, "calibrate"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(client, body, status, words):
    answer = client.post("/generate", json=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"text": NaN}', b"[" * 100_000])
def test_a_body_that_is_not_json_is_refused(client, body):
    answer = client.post("/generate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_a_wrong_method_or_kind_of_body_is_answered_with_the_right_one(client):
    answer = client.get("/generate")
    assert (answer.status_code, answer.json()) == (405, {"error": "this path is asked with POST; /docs says how"})
    answer = client.post("/generate", content=b'{"text": "a"}')
    needed = "body: send a JSON object, with Content-Type: application/json"
    assert (answer.status_code, answer.json()) == (400, {"error": needed})


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/health", 200), ("/generate", 405), ("/nothing", 404)])
def test_programs_that_look_if_the_server_is_there_may_ask_for_the_head_alone(client, path, status):
    assert client.head(path).status_code == status


def test_odd_texts_are_answered(client):
    texts = ["\x00\x01", "\ud7ff\U0001f3e0", "a" * 5000, "word " * 1000, "\r\n\u2028", "<script>alert(1)</script>"]
    outputs = generate(client, texts, beam=1, max_length=5)["outputs"]
    assert [output["source"]["text"] for output in outputs] == texts
    lone = client.post("/generate", content=b'{"text": "a \\ud800 b"}', headers={"content-type": "application/json"})
    assert lone.status_code in (200, 400)


def test_model_says_what_is_served(client):
    found = client.get("/model").json()
    ours, theirs = found["models"]
    assert found["version"] == __version__
    assert found["limits"] == {**found["limits"], "texts": Limits.texts, "beam": Limits.beam, "file_bytes": Limits.body}
    assert (ours["name"], ours["role"], ours["takes_terms"]) == ("pointer-softmax", "model", True)
    assert (theirs["name"], theirs["role"], theirs["takes_terms"]) == ("softmax", "against", False)
    assert ours["languages"] == list(load(POINTER).lexicon.config.data.languages)
    assert ours["vocabulary"]["target"] == len(load(POINTER).lexicon.target)


def test_health_and_metrics_count_what_happens():
    with client_of() as client:
        assert client.get("/health").json() == {"status": "ok"}
        generate(client, ["secret-word a", "secret-word b"])
        client.post("/generate", json={"text": 7})
        client.get("/no/such/secret-word")
        text = client.get("/metrics").text
    assert 'pointing_requests_total{method="POST",path="/generate",status="200"} 1.0' in text
    assert 'pointing_requests_total{method="POST",path="/generate",status="400"} 1.0' in text
    assert 'pointing_requests_total{method="GET",path="other",status="404"} 1.0' in text
    assert "pointing_texts_total 2.0" in text
    assert "pointing_waiting_texts 0.0" in text
    assert "secret-word" not in text


def test_after_the_end_health_says_so():
    with client_of() as client:
        client.service.batcher.close()
        answers = client.get("/health"), client.post("/generate", json={"text": "a"})
    for answer in answers:
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"


def test_every_path_is_in_the_description_and_on_its_page(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {"/generate", "/model", "/health", "/metrics", "/translate", "/detect", "/languages", "/files"}
    page = client.get("/docs").text
    assert all(path in page for path in paths)
    assert "<td><code>beam</code></td><td>integer, 1–20</td><td>default 5</td><td>Hypotheses; 1 is greedy.</td>" in page
    assert "<td>object or null</td><td>default null</td><td>Terms and how" in page
    assert "<td></td></tr>" not in page.partition("/translate")[0]  # every field of /generate is described
    assert "<script" not in page


@pytest.mark.parametrize("path", ["/", "/docs", "/health", "/nothing", "/page/main.js", "/openapi.json"])
def test_every_answer_has_the_headers_that_bind_a_browser(client, path):
    answer = client.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "server" not in answer.headers
    assert "unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "app.py", "main.js%00", ".", "main"])
def test_no_name_leads_to_another_file(client, name):
    answer = client.get(f"/page/{name}")
    assert answer.status_code in (404, 405)
    assert "import" not in answer.text


def test_an_error_of_ours_says_nothing_of_the_text(client, monkeypatch, caplog):
    monkeypatch.setattr("pointing.server.app.described", lambda output: json.loads("no json: secret-word"))
    answer = client.post("/generate", json={"text": "secret-word"})
    assert answer.status_code == 500
    assert "secret-word" not in answer.text
    assert "not in your request" in answer.json()["error"]
