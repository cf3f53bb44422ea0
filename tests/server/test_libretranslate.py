"""LibreTranslate's interface, as its documentation describes it."""

import json
import shutil

import pytest
from here import POINTER, client_of
from random_run import random_models

from pointing.server.html_scanner import scan
from pointing.server.limits import Limits

TEXT = "the modern release of tobram is 315.38.266"
OTHER = "please install zorblatt on hal9000"
PAIR = {"source": "en", "target": "fr"}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def client():
    with client_of() as client:
        yield client


@pytest.fixture(scope="module")
def locked():
    with client_of(keys=["secret"]) as client:
        yield client


@pytest.fixture(scope="module")
def two_pairs(tmp_path_factory):
    """A client of a server with two runs: English → French, and English → German."""
    german = tmp_path_factory.mktemp("runs") / "german"
    shutil.copytree(POINTER, german)
    config = (german / "config.yaml").read_text()
    assert "  - en\n  - fr\n" in config
    (german / "config.yaml").write_text(config.replace("  - en\n  - fr\n", "  - en\n  - de\n"))
    with client_of(runs=(POINTER, german), against=None) as client:
        yield client


def generated(client, *texts, **options):
    """What POST /generate answers for these lines."""
    answer = client.post("/generate", json={"text": list(texts), **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"]


def written(client, *texts):
    return [output["text"] for output in generated(client, *texts)]


def translate(client, q, **values):
    answer = client.post("/translate", json={"q": q, **PAIR, **values})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    return answer.json()["error"]


def test_a_truth_value_is_no_number_of_alternatives(client):
    answer = client.post("/translate", json={"q": TEXT, **PAIR, "alternatives": False})
    assert refused(answer).startswith("Invalid request: alternatives")


def test_languages_are_told_to_clients_that_send_an_empty_form_for_them(client):
    """So does argostranslate's LibreTranslateAPI 1.11.0."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/languages", content=b"", headers=form).json() == client.get("/languages").json()


def test_a_text_is_translated_as_generate_does_it(client):
    answer = translate(client, TEXT)
    (output,) = generated(client, TEXT)
    assert answer == {"translatedText": output["text"], "provenance": [output]}


def test_several_texts_give_lists(client):
    answer = translate(client, [TEXT, OTHER, TEXT])
    first, second = generated(client, TEXT, OTHER)
    assert answer["translatedText"] == [first["text"], second["text"], first["text"]]
    assert [[line["text"] for line in lines] for lines in answer["provenance"]] == [
        [first["text"]],
        [second["text"]],
        [first["text"]],
    ]
    assert translate(client, [TEXT]) == {"translatedText": [first["text"]], "provenance": [[first]]}
    assert translate(client, []) == {"translatedText": [], "provenance": []}


@pytest.mark.parametrize("q", [TEXT, [TEXT, OTHER]])
def test_parameters_come_as_json_as_a_form_or_in_the_query(client, q):
    expected = translate(client, q)
    values = {"q": q, **PAIR}
    capitals = {"content-type": f"{JSON.upper()}; charset=utf-8"}
    parts = [("q", (None, text)) for text in ([q] if isinstance(q, str) else q)]
    parts += [(name, (None, code)) for name, code in PAIR.items()]
    for answer in (
        client.post("/translate", data=values),
        client.post("/translate", files=parts),
        client.post("/translate", params=values),
        client.post("/translate", params=PAIR, json={"q": q}),
        client.post("/translate", params={"q": "another", **PAIR}, data={"q": q}),  # the body comes first
        client.post("/translate", content=json.dumps(values), headers={"content-type": "text/plain"}),
        client.post("/translate", content=json.dumps(values), headers=capitals),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json() == expected


def test_letters_of_all_languages_come_through_every_way(client):
    q = "ouvrez «été» 日本語 & más + 100%"
    for answer in (
        client.post("/translate", data={"q": q, **PAIR}),
        client.post("/translate", files={name: (None, value) for name, value in {"q": q, **PAIR}.items()}),
        client.post("/translate", params={"q": q, **PAIR}),
    ):
        assert answer.json()["provenance"][0]["source"]["text"] == q


def test_line_ends_and_white_space_around_lines_stay(client):
    first, second = written(client, TEXT, OTHER)
    q = f"\r\n  {TEXT}\t\r\n\n — \n{OTHER}\u2028{TEXT} \r"
    answer = translate(client, q)
    assert answer["translatedText"] == f"\r\n  {first}\t\r\n\n — \n{second}\u2028{first} \r"
    assert [line["text"] for line in answer["provenance"]] == [first, second, first]


@pytest.mark.parametrize("q", ["", " \n", "…", "—\r\n\t!"])
def test_a_text_without_words_is_its_own_translation(client, q):
    assert translate(client, q) == {"translatedText": q, "provenance": []}
    assert translate(client, q, format="html", source="auto")["translatedText"] == q


def test_alternatives_are_the_next_best_outputs(client):
    (output,) = generated(client, TEXT, nbest=3)
    answer = translate(client, TEXT, alternatives=2)
    assert answer["translatedText"] == output["text"]
    assert answer["alternatives"] == [other["text"] for other in output["alternatives"]]
    assert len(set(answer["alternatives"])) == 2
    assert "alternatives" not in translate(client, TEXT, alternatives=0)
    assert translate(client, [TEXT], alternatives=2)["alternatives"] == [answer["alternatives"]]
    as_form = client.post("/translate", data={"q": TEXT, **PAIR, "alternatives": "2"})
    assert as_form.json()["alternatives"] == answer["alternatives"]


def test_with_more_alternatives_than_the_beam_the_beam_is_wider(client):
    (output,) = generated(client, TEXT, beam=8, nbest=8)
    assert translate(client, TEXT, alternatives=7)["alternatives"] == [
        other["text"] for other in output["alternatives"]
    ]


def test_the_language_of_a_text_is_detected(client):
    answer = translate(client, TEXT, source="auto")
    assert answer["detectedLanguage"]["language"] == "en"
    assert 0 < answer["detectedLanguage"]["confidence"] <= 100
    assert answer["translatedText"] == translate(client, TEXT)["translatedText"]
    assert "detectedLanguage" not in translate(client, TEXT)
    several = translate(client, [TEXT, OTHER], source="auto")
    assert [found["language"] for found in several["detectedLanguage"]] == ["en", "en"]


@pytest.mark.parametrize(("source", "target"), [("en-GB", "fr"), ("en", "fr_CA"), ("EN", "FR"), ("en_US", "fr-FR")])
def test_codes_may_have_a_region(client, source, target):
    assert translate(client, TEXT, source=source, target=target) == translate(client, TEXT)


def test_html_stays_but_for_its_texts(client):
    first, second = written(client, TEXT, OTHER)
    kept = f'<p translate="no">{TEXT} &amp;</p><script>a < b</script>'
    q = f'<h1 class="x">{TEXT}</h1>\n<!-- {TEXT} --><p> {OTHER} {kept}'
    answer = translate(client, q, format="html")
    assert answer["translatedText"] == f'<h1 class="x">{first}</h1>\n<!-- {TEXT} --><p> {second} {kept}'
    assert [line["text"] for line in answer["provenance"]] == [first, second]
    assert translate(client, [q], format="html")["translatedText"] == [answer["translatedText"]]
    assert translate(client, q)["translatedText"] != answer["translatedText"]  # as a text, tags are words


def test_the_output_of_html_is_escaped(client):
    (output,) = generated(client, "<x> & y")
    answer = translate(client, "&lt;x&gt; &amp; y", format="html")
    assert answer["provenance"][0]["source"]["text"] == "<x> & y"
    assert answer["translatedText"] == output["text"].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_every_tag_comes_through_a_run_that_keeps_tags_exactly_once():
    q = '\n see <b>the file</b> <a download>the</a> file<br>see</p><p>100%<i>the</i> <a href="x">file</a>, '
    q += "the file " * 150 + "<b>the</b> file"  # longer than what the model reads of a line
    with client_of(models=random_models(3)) as client:
        found = translate(client, f"<p>{q}</p>", format="html", alternatives=2)
        for html in (found["translatedText"], *found["alternatives"]):
            assert _tags(html) == _tags(f"<p>{q}</p>")
        texts = [line["source"]["text"] for line in found["provenance"]]
        assert texts[:3] == ["see <b>the file</b>", "the</a> file<br>see", "100%"]


def _tags(html):
    return sorted(piece.html for piece in scan(html) if piece.kind != "text")


def test_a_paragraph_is_one_text_only_for_a_run_that_keeps_tags(client):
    first, second = written(client, "the modern release", "of tobram")
    answer = translate(client, "the modern release <b>of tobram</b>", format="html")
    assert answer["translatedText"] == f"{first} <b>{second}</b>"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": None, **PAIR}, "Invalid request: missing q parameter"),
        ({"q": TEXT, "target": "fr"}, "Invalid request: missing source parameter"),
        ({"q": TEXT, "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": TEXT, "source": "en", "target": ""}, "Invalid request: missing target parameter"),
        ({"q": TEXT, "source": "xx", "target": "fr"}, "xx is not supported"),
        ({"q": TEXT, "source": "en", "target": "de"}, "de is not supported"),
        ({"q": TEXT, "source": "auto", "target": "de"}, "de is not supported as a target"),
        ({"q": TEXT, "source": "fr", "target": "en"}, "en is not available as a target of fr; there is en → fr"),
        ({"q": TEXT, **PAIR, "format": "pdf"}, "Invalid request: format: input should be 'text' or 'html'"),
        ({"q": TEXT, **PAIR, "alternatives": 20}, "Invalid request: alternatives: input should be less than 20"),
        ({"q": TEXT, **PAIR, "alternatives": -1}, "Invalid request: alternatives: "),
        ({"q": TEXT, **PAIR, "api_key": 7}, "Invalid request: api_key: input should be a valid string"),
        ({"q": 7, **PAIR}, "Invalid request: q: input should be a valid string"),
        ({"q": [TEXT, 7], **PAIR}, "Invalid request: q"),
        ({"q": {"a": TEXT}, **PAIR}, "Invalid request: q"),
        ({"q": "\ud800", **PAIR}, "Invalid request: q: input should be a valid string"),
        ({"q": "a" * 5001, **PAIR}, "Invalid request: q: string should have at most 5000 characters"),
        ({"q": ["a"] * 65, **PAIR}, "Invalid request: q: "),
        ({"q": TEXT, "source": ["en"], "target": "fr"}, "Invalid request: source: "),
        ({"q": TEXT, "source": "en" * 11, "target": "fr"}, "Invalid request: source: "),
    ],
    ids=str,
)
def test_a_request_that_is_not_understood_is_refused_with_a_sentence(client, values, sentence):
    answer = client.post("/translate", content=json.dumps(values), headers={"content-type": JSON})
    assert refused(answer).startswith(sentence)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b"null"),
        (JSON, b"\xff"),
        (JSON, b"[" * 100_000),
        (JSON, b'{"q": ' + b"1" * 5000 + b"}"),
        (JSON, b""),
        (FORM, b""),
        (FORM, b"&&;=%"),
        (FORM, b"q=a&" * 1001),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=y", b"x"),
        ("multipart/form-data; boundary=y", b'--y\r\ncontent-disposition: form-data; name="q"\r\n\r\na'),
        (
            "multipart/form-data; boundary=y; charset=undefined",
            b'--y\r\ncontent-disposition: form-data; name="q"\r\n\r\na\r\n--y--\r\n',
        ),
        (
            "multipart/form-data; boundary=y",
            b'--y\r\ncontent-disposition: form-data; name="q"; filename="a"\r\n\r\na\r\n--y--\r\n',
        ),
        ("text/plain", b"q=a"),
        ("", b""),
    ],
    ids=lambda value: str(value[:30]),
)
def test_a_body_that_is_no_request_is_refused(client, kind, body):
    for path in ("/translate", "/detect"):
        refused(client.post(path, content=body, headers={"content-type": kind}))


def test_more_lines_or_paragraphs_than_the_queue_has_room_for_are_refused():
    with client_of(Limits(waiting=3)) as client:
        sentence = "Invalid request: more than 3 lines or paragraphs"
        assert refused(client.post("/translate", json={"q": "a\nb\nc\nd", **PAIR})) == sentence
        assert refused(client.post("/translate", json={"q": "<p>a" * 4, **PAIR, "format": "html"})) == sentence
        translate(client, "a\nb\n\n\nc\n")
    with client_of(Limits(waiting=3), models=random_models(0)) as client:
        q = "the<wbr>file " * 3  # one paragraph, and the model would lose its tags
        assert refused(client.post("/translate", json={"q": q, **PAIR, "format": "html"})) == sentence


def test_a_key_is_a_parameter_or_a_header(locked):
    values = {"q": TEXT, **PAIR}
    expected = written_with_key(locked, TEXT)
    for answer in (
        locked.post("/translate", json={**values, "api_key": "secret"}),
        locked.post("/translate", data={**values, "api_key": "secret"}),
        locked.post("/translate", params={**values, "api_key": "secret"}),
        locked.post("/translate", json=values, headers={"x-api-key": "secret"}),
        locked.post("/translate", json=values, headers={"authorization": "Bearer secret"}),
        locked.post("/translate", json={**values, "api_key": ""}, headers={"x-api-key": "secret"}),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json()["translatedText"] == expected
    assert locked.post("/detect", data={"q": TEXT, "api_key": "secret"}).status_code == 200


def written_with_key(client, text):
    answer = client.post("/generate", json={"text": text}, headers={"x-api-key": "secret"})
    return answer.json()["outputs"][0]["text"]


@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_without_a_key_that_is_known_nothing_is_answered(locked, path):
    values = {"q": TEXT, **PAIR}
    for key in ("wrong", "Secret", "sécret", "\ud800", ["secret"], ["secret", "secret"], 7, "", None):
        body = json.dumps({**values, "api_key": key})
        refused(locked.post(path, content=body, headers={"content-type": JSON}), 403)
    assert refused(locked.post(path, json=values), 403) == "an API key is needed: send it as X-API-Key"
    assert refused(locked.post(path, data={**values, "api_key": "wrong"}), 403) == "Invalid API key"
    assert refused(locked.post(path, params={**values, "api_key": ["secret", "x"]}), 403)
    assert refused(locked.post(path, json={}), 403)  # what else is wrong is not told


def test_languages_are_told_to_everybody(client, locked):
    expected = [{"code": "en", "name": "English", "targets": ["fr"]}, {"code": "fr", "name": "French", "targets": []}]
    for each in (client, locked):
        assert each.get("/languages").json() == expected
        assert each.request("GET", "/languages", content=b"", headers={"content-type": FORM}).json() == expected
        assert (
            each.request("GET", "/languages", content=b"api_key=any", headers={"content-type": FORM}).json() == expected
        )


def test_the_languages_of_a_text_are_detected_among_those_served(client):
    for answer in (
        client.post("/detect", json={"q": TEXT}),
        client.post("/detect", data={"q": TEXT}),
        client.post("/detect", params={"q": TEXT}),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json()[0]["language"] == "en"
        assert 0 < answer.json()[0]["confidence"] <= 100
    (best, *_) = client.post("/detect", json={"q": "le fichier est dans la maison"}).json()
    assert best["language"] == "fr"
    (none,) = client.post("/detect", json={"q": "zorblatt"}).json()
    assert none == {"language": "en", "confidence": 0.0}
    german = client.post("/detect", json={"q": "der Hund und die Katze"}).json()
    assert {found["language"] for found in german} <= {"en", "fr"}
    assert refused(client.post("/detect", json={})) == "Invalid request: missing q parameter"
    refused(client.post("/detect", json={"q": [TEXT]}))


def test_each_pair_of_languages_has_its_run(two_pairs):
    assert [(each["code"], each["targets"]) for each in two_pairs.get("/languages").json()] == [
        ("en", ["fr", "de"]),
        ("fr", []),
        ("de", []),
    ]
    asked = []
    two_pairs.service.outputs, real = _watched(two_pairs.service.outputs, asked), two_pairs.service.outputs
    try:
        for target in ("fr", "de", "de-AT"):
            for source in ("en", "auto"):
                translate(two_pairs, TEXT, source=source, target=target)
    finally:
        two_pairs.service.outputs = real
    assert asked == ["pointer-softmax"] * 2 + ["german"] * 4
    there = "there is en → fr, en → de"
    answer = two_pairs.post("/translate", json={"q": TEXT, "source": "fr", "target": "de"})
    assert refused(answer) == f"de is not available as a target of fr; {there}"


def _watched(outputs, asked):
    def watched(model, *values, **options):
        asked.append(model.name)
        return outputs(model, *values, **options)

    return watched
