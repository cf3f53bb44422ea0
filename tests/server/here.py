"""The application of the frozen runs in this process, without a network."""

from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from pointing.server.app import make_app
from pointing.server.keys import Keys
from pointing.server.limits import Limits
from pointing.server.models import Models
from pointing.server.service import Service

FROZEN = Path(__file__).parents[1] / "frozen"
POINTER, SOFTMAX = FROZEN / "pointer-softmax", FROZEN / "softmax"


@contextmanager
def client_of(limits=None, keys=(), runs=(POINTER,), against=SOFTMAX, models=None, **options):
    """A client of an application that has these runs, or models; its service is `client.service`."""
    limits = limits or Limits()
    service = Service(models or Models.load(runs, against), limits, Keys(keys, limits.requests_a_minute))
    app = make_app(service, **options)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        client.service = service
        yield client
