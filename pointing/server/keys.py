"""Who may ask, and how often."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Collection

from starlette.requests import Request

from pointing.server.limits import Refused

MOST_REMEMBERED = 10_000  # keys or addresses whose last requests are remembered


class Keys:
    """API keys and a rate for each. Without keys everybody may ask, and the rate is that of an address."""

    def __init__(self, keys: Collection[str] = (), requests_a_minute: int | None = None) -> None:
        self.keys = [key.encode() for key in keys]
        self.rate = requests_a_minute
        self._allowance: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when this was so

    def check(self, request: Request, given: str | None = None, *, status: int = 401) -> None:
        """Refuses a request without a key, with one that is not known, or one too many; `given` stood in its body."""
        key = _key_of(request) if given is None else given
        if self.keys and not (key is not None and self._is_known(key)):
            what = "an API key is needed: send it as X-API-Key" if key is None else "Invalid API key"
            raise Refused(status, what, {"WWW-Authenticate": "Bearer"} if status == 401 else None)
        if self.rate is not None:
            address = "" if request.client is None else request.client.host
            self._count(f"key {key}" if self.keys else address)

    def _is_known(self, key: str) -> bool:
        """Compares with every key in the same time, whatever it is."""
        return bool(sum([hmac.compare_digest(key.encode(errors="replace"), known) for known in self.keys]))

    def _count(self, who: str) -> None:
        """A bucket that holds a minute's requests and fills up evenly."""
        assert self.rate is not None
        now = time.monotonic()
        left, then = self._allowance.pop(who, (float(self.rate), now))
        left = min(float(self.rate), left + (now - then) * self.rate / 60)
        self._allowance[who] = (left - 1 if left >= 1 else left), now
        while len(self._allowance) > MOST_REMEMBERED:
            self._allowance.popitem(last=False)
        if left < 1:
            seconds = str(int((1 - left) * 60 / self.rate) + 1)
            raise Refused(429, f"Slowdown: {self.rate} requests a minute", {"Retry-After": seconds})


def _key_of(request: Request) -> str | None:
    """The key of a request's headers or query."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    return request.headers.get("x-api-key") or bearer or request.query_params.get("api_key")
