"""What the server accepts of one request, and of all together; and how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds. What is beyond them is refused with a sentence that names the bound."""

    texts: int = 64  # of a request
    characters: int = 5_000  # of a text
    terms: int = 500  # of a glossary, kept words counted
    term_characters: int = 200
    beam: int = 20
    choices: int = 20  # words of a step that may be asked for
    detailed: int = 64  # outputs of a request whose words come with locations or choices
    length: int = 500  # words of an output
    body: int = 1_000_000  # bytes, of files too
    waiting: int = 1_024  # texts in the queue
    batch: int = 64  # texts that are decoded together
    wait: float = 0.002  # seconds that a batch waits for more texts, if several requests came together
    seconds: float = 30.0  # of a request
    file_seconds: float = 600.0  # of a file
    files: int = 2  # translated at the same time
    header_seconds: float = 10.0  # for a connection's next request to begin, and for its body to arrive
    connections: int = 512
    requests_a_minute: int | None = None  # of a key, or of an address if there are no keys

    @property
    def open_connections(self) -> int:
        """Connections beyond which a new one is cut off; those between the two numbers are told to come later."""
        return self.connections + self.connections // 2


class Refused(Exception):
    """An answer that is an error: its status, a sentence that says what to do, and headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


def busy(message: str, seconds: int = 1) -> Refused:
    """The answer to a request that may be sent again later."""
    return Refused(503, f"{message}: try again in {seconds} s", {"Retry-After": str(seconds)})
