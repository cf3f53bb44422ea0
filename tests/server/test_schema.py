"""Every path answers what its OpenAPI description says, whatever it is sent."""

import pytest
import schemathesis
from here import client_of
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from pointing.server.limits import Limits

FEW = Limits(texts=3, beam=3, length=5, choices=3)  # so that what is asked is soon done
HOST = {"host": "localhost"}
OPERATIONS = [
    *(("POST", path) for path in ("/generate", "/translate", "/detect", "/files", "/languages")),
    *(("GET", path) for path in ("/languages", "/model", "/health", "/metrics")),
]
some = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def schema():
    """Schemathesis begins and ends the application's life with every call; this one lives as long as the tests."""
    with client_of(FEW) as client:

        async def living(scope, receive, send):
            if scope["type"] == "http":
                await client.app(scope, receive, send)
                return
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})

        yield schemathesis.openapi.from_asgi("/openapi.json", living, headers=HOST)


def test_every_operation_is_tried_here(schema):
    described = [(method.upper(), path) for path, methods in schema.raw_schema["paths"].items() for method in methods]
    assert sorted(described) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_answers_are_as_described(schema, method, path, mode):
    """Status, kind and form of every answer.

    What goes against the description is understood now and then: a form has only strings. What goes by it may be
    refused with 422, where two parameters do not fit together. So neither of these is asked for here.
    """

    @some
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(headers=HOST, excluded_checks=[negative_data_rejection, positive_data_acceptance])

    try:
        check()
    except Exception as error:
        if type(error).__name__ != "Unsatisfiable":  # a path without parameters cannot be asked wrongly
            raise


@pytest.mark.parametrize(("mode", "statuses"), [("POSITIVE", {200, 422}), ("NEGATIVE", {400, 422})])
def test_generate_answers_what_is_asked_by_its_description_and_refuses_all_else(schema, mode, statuses):
    seen = set()

    @some
    @given(schema["/generate"]["POST"].as_strategy(generation_mode=GenerationMode[mode]))
    def check(case):
        seen.add(case.call(headers=HOST).status_code)

    check()
    assert seen <= statuses
    assert min(statuses) in seen
