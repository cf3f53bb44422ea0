"""What all paths share: the models, the queue, the keys, and the one way from texts to outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from pointing.config import Search
from pointing.errors import Misuse
from pointing.generation.generator import kept_below
from pointing.generation.glossary import Glossary, Mode
from pointing.generation.output import Output
from pointing.server.batching import Batcher, Manner
from pointing.server.keys import Keys
from pointing.server.limits import Limits, Refused, busy
from pointing.server.metrics import Metrics
from pointing.server.models import Model, Models

LATE = "the answer took too long"


@dataclass
class Service:
    """A server's parts."""

    models: Models
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=Keys)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.batcher = Batcher(self.limits, self.metrics)
        self.metrics.watch_queue(lambda: self.batcher.waiting)
        self.files_at_work = asyncio.Semaphore(self.limits.files)

    async def outputs(
        self,
        model: Model,
        texts: Sequence[str],
        settings: Search,
        glossary: Glossary | None = None,
        *,
        locations: bool = False,
        choices: int = 0,
        min_confidence: float | None = None,
    ) -> list[Output]:
        """An output for each text, decoded together with those of other requests. If cancelled, they are abandoned."""
        if min_confidence is not None:
            model.generator.check_confidence(min_confidence)
        manner = Manner(model.generator, settings, locations, choices)
        futures = self.batcher.submit(texts, manner, glossary, self.limits.seconds)
        try:
            found = await asyncio.wait_for(asyncio.gather(*map(asyncio.wrap_future, futures)), self.limits.seconds)
        except (asyncio.TimeoutError, asyncio.CancelledError) as error:
            abandon(futures)
            if isinstance(error, asyncio.TimeoutError) or not _is_cancelled():
                raise busy(LATE) from None
            raise
        outputs = [output for output in found if isinstance(output, Output)]
        return outputs if min_confidence is None else [kept_below(min_confidence, output) for output in outputs]

    async def glossary(
        self, model: Model, terms: Mapping[str, str] | None, keep: Sequence[str] | None, mode: Mode = "guaranteed"
    ) -> Glossary | None:
        """The user's terms; refused if there are too many, or if the run has no use for them."""
        if not terms and not keep:
            return None
        if len(terms or ()) + len(keep or ()) > self.limits.terms:
            raise Refused(400, f"glossary: more than {self.limits.terms} terms, kept words counted")
        if not model.takes_terms:
            reason = (
                "reads pieces of words or entities" if model.can_point else "has a plain softmax, which cannot point"
            )
            raise Refused(422, f"a glossary's terms are pointed at, and the run {model.name} {reason}")
        try:
            return await run_in_threadpool(model.generator.glossary, terms, keep, mode)
        except Misuse as error:
            raise Refused(422, str(error)) from None


def _is_cancelled() -> bool:
    """True if this task itself was told to end, and not only a future that it waits for."""
    task = asyncio.current_task()
    return task is not None and getattr(task, "cancelling", lambda: 1)() > 0


def abandon(futures: Sequence[Future[Output]]) -> None:
    for future in futures:
        future.cancel()
