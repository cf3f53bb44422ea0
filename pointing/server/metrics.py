"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "pointing_requests", "Answers, by path and status.", ["method", "path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "pointing_request_seconds", "Time to the answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.texts = Counter("pointing_texts", "Texts that were decoded.", registry=self.registry)
        self.words = Counter("pointing_words", "Words that were written.", registry=self.registry)
        self.batch = Histogram(
            "pointing_batch_texts", "Texts that were decoded together.", buckets=TEXTS, registry=self.registry
        )
        self.decoding = Counter("pointing_decoding_seconds", "Time spent on decoding.", registry=self.registry)
        self.abandoned = Counter(
            "pointing_abandoned", "Texts that were dropped because nobody waited for them.", registry=self.registry
        )

    def watch_queue(self, waiting: Callable[[], float]) -> None:
        gauge = Gauge("pointing_waiting_texts", "Texts in the queue.", registry=self.registry)
        gauge.set_function(waiting)

    def decoded(self, texts: int, words: int, seconds: float) -> None:
        self.texts.inc(texts)
        self.words.inc(words)
        self.batch.observe(texts)
        self.decoding.inc(seconds)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        self.requests.labels(method, path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
