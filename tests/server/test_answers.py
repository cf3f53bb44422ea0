"""The JSON of answers: the same as Python's own, and nobody waits for another one's."""

import asyncio
import json
import time

import own_loop
from here import client_of
from hypothesis import given
from hypothesis import strategies as st

from pointing.server import answers
from pointing.server.limits import Limits

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)


@given(JSON)
def test_an_answer_in_parts_is_what_python_writes_at_once(value):
    assert answers.encoded(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_no_part_of_a_large_answer_is_larger_than_one_output():
    output = {"text": "a b", "tokens": [{"text": "a"}, {"text": "b"}]}
    value = {"run": "x", "outputs": [{**output, "alternatives": [output] * 3}] * 4}
    assert max(answers._parts(value, answers.DEPTH), key=len) == json.dumps(output, separators=(",", ":"))


def test_while_a_large_answer_is_written_the_server_goes_on():
    def make():
        time.sleep(0.5)
        return {}

    async def ticks_meanwhile():
        writing = asyncio.ensure_future(answers.json_answer(make))
        count = 0
        while not writing.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert own_loop.run(ticks_meanwhile()) > 5


def test_the_details_of_words_come_for_some_outputs_only():
    with client_of(Limits(detailed=3)) as client:
        for asked, status in (({"text": ["a"] * 3}, 200), ({"text": "a", "nbest": 3}, 200), ({"text": ["a"] * 4}, 422)):
            for details in ({"locations": True}, {"choices": 1}):
                assert client.post("/generate", json={**asked, **details}).status_code == status
        refused = client.post("/generate", json={"text": ["a", "b"], "nbest": 2, "choices": 2})
        assert refused.status_code == 422
        assert refused.json() == {"error": "locations and choices: of at most 3 outputs, texts × nbest"}
        assert client.post("/generate", json={"text": ["a"] * 4, "nbest": 2}).status_code == 200
        assert client.get("/model").json()["limits"]["detailed"] == 3
