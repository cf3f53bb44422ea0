"""Texts of all requests → batches → outputs. One thread decodes; requests wait for it without blocking the server.

While a batch is decoded, the texts that arrive wait in a queue, and the next batch takes as many of them as go
together: those of the same model that are searched in the same way. If texts of several requests came together a moment
ago, a batch waits a little for more; a single client never waits for others. A text that nobody waits for any more is
dropped from the queue, or from the search, at its next step.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread

from pointing.config import Search
from pointing.generation.generator import Generator
from pointing.generation.glossary import Glossary
from pointing.generation.output import Output
from pointing.generation.reader import Line
from pointing.server.limits import Limits, busy
from pointing.server.metrics import Metrics


@dataclass(frozen=True)
class Manner:
    """How a text is searched. Texts with equal manners are decoded together."""

    generator: Generator = field(hash=False)
    settings: Search
    locations: bool = False
    choices: int = 0


@dataclass(eq=False)
class Text:
    """A text that waits for its output."""

    text: str
    manner: Manner
    glossary: Glossary | None
    deadline: float  # of time.monotonic
    request: object  # the same for all texts of a request
    output: Future[Output] = field(default_factory=Future)

    @property
    def is_abandoned(self) -> bool:
        """True if nobody waits for it any more."""
        return self.output.cancelled() or time.monotonic() > self.deadline


class Batcher:
    """The queue, and the thread that empties it."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self._queue: deque[Text] = deque()
        self._changed = Condition()
        self._closed = False
        self._last: set[object] = set()  # requests of the last batch
        self._thread = Thread(target=self._work, name="decoding", daemon=True)
        self._thread.start()

    def submit(
        self, texts: Sequence[str], manner: Manner, glossary: Glossary | None, seconds: float
    ) -> list[Future[Output]]:
        """Futures of the outputs. All texts are taken, or none; cancelling a future abandons its text."""
        deadline = time.monotonic() + seconds
        request = object()
        new = [Text(text, manner, glossary, deadline, request) for text in texts]
        with self._changed:
            if self._closed:
                raise busy("the server is stopping", 5)
            if len(self._queue) + len(new) > self.limits.waiting:
                self._drop_abandoned()
            if len(self._queue) + len(new) > self.limits.waiting:
                raise busy(f"{len(self._queue):,} texts are waiting already")
            self._queue.extend(new)
            self._changed.notify()
        return [text.output for text in new]

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._closed

    def close(self) -> None:
        """Takes nothing more, decodes what was taken, and ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._answer(batch)

    def _answer(self, batch: Sequence[Text]) -> None:
        """Decodes a batch. An error belongs to the text that it comes from, and the thread goes on."""
        try:
            outputs = self._decode(batch)
        except Exception as error:
            if len(batch) > 1:
                for text in batch:
                    self._answer([text])
                return
            with suppress(InvalidStateError):
                batch[0].output.set_exception(error)
            return
        for text, output in zip(batch, outputs, strict=True):
            with suppress(InvalidStateError):  # abandoned in this moment
                text.output.set_result(output)

    def _next_batch(self) -> list[Text]:
        """Texts that go together, oldest first; an empty list if the queue is empty and closed."""
        with self._changed:
            is_shared = len(self._last.union(text.request for text in self._queue)) > 1
            while True:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if is_shared:
                    self._wait_for_more()
                self._drop_abandoned()
                if self._queue:
                    break
                if self._closed:
                    return []
            manner = self._queue[0].manner
            batch, others = list[Text](), deque[Text]()
            for text in self._queue:
                together = text.manner == manner and len(batch) < self.limits.batch
                (batch if together else others).append(text)
            self._queue, self._last = others, {text.request for text in batch}
            return batch

    def _wait_for_more(self) -> None:
        until = time.monotonic() + self.limits.wait
        while not self._closed and len(self._queue) < self.limits.batch:
            left = until - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _drop_abandoned(self) -> None:
        live = deque(text for text in self._queue if not text.is_abandoned)
        self.metrics.abandoned.inc(len(self._queue) - len(live))
        for text in self._queue:
            if text.is_abandoned:
                text.output.cancel()
        self._queue = live

    def _decode(self, batch: Sequence[Text]) -> list[Output]:
        began = time.perf_counter()
        manner = batch[0].manner
        outputs = manner.generator.run(
            _read(batch),
            manner.settings,
            locations=manner.locations,
            choices=manner.choices,
            abandoned=lambda row: batch[row].is_abandoned,
        )
        self.metrics.decoded(len(batch), sum(len(output.tokens) for output in outputs), time.perf_counter() - began)
        return outputs


def _read(batch: Sequence[Text]) -> list[Line]:
    """The texts as the model reads them; those without a glossary, and those of each glossary, at once."""
    rows: dict[int, list[int]] = {}
    for row, text in enumerate(batch):
        rows.setdefault(id(text.glossary), []).append(row)
    lines: dict[int, Line] = {}
    for group in rows.values():
        first = batch[group[0]]
        lines.update(
            zip(
                group,
                first.manner.generator.read([batch[row].text for row in group], None, first.glossary),
                strict=True,
            )
        )
    return [lines[row] for row in range(len(batch))]
