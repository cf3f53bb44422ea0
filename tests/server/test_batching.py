"""The queue: who is decoded with whom, who is turned away, and who is left alone."""

import time
from concurrent.futures import CancelledError
from threading import Event

import pytest
from here import POINTER

from pointing import Search, load
from pointing.server.batching import Batcher, Manner
from pointing.server.limits import Limits, Refused
from pointing.server.metrics import Metrics

GREEDY = Search(beam=1, max_length=5)
SECONDS = 30.0


class Gate:
    """A generator that waits for a signal before it decodes, and writes down what it was asked."""

    def __init__(self, generator):
        self.generator, self.read = generator, generator.read
        self.is_open, self.has_begun = Event(), Event()
        self.batches = []

    def run(self, lines, settings, **options):
        self.batches.append([line.text for line in lines])
        self.has_begun.set()
        self.is_open.wait(SECONDS)
        return self.generator.run(lines, settings, **options)


@pytest.fixture(scope="module")
def generator():
    return load(POINTER)


@pytest.fixture
def gate(generator):
    return Gate(generator)


@pytest.fixture
def make(gate):
    made = []

    def make(**limits):
        made.append(Batcher(Limits(**limits), Metrics()))
        return made[-1]

    yield make
    gate.is_open.set()
    for batcher in made:
        batcher.close()


def submit(batcher, gate, *texts, search=GREEDY, seconds=SECONDS, **manner):
    return batcher.submit(texts, Manner(gate, search, **manner), None, seconds)


def hold(batcher, gate):
    """A text that is being decoded until the gate opens."""
    (future,) = submit(batcher, gate, "held")
    assert gate.has_begun.wait(SECONDS)
    return future


def test_what_waits_is_decoded_together_oldest_first_up_to_the_limit(make, gate):
    batcher = make(batch=3)
    first = hold(batcher, gate)
    others = [future for text in "abcde" for future in submit(batcher, gate, text)]
    assert batcher.waiting == 5
    gate.is_open.set()
    assert [future.result(SECONDS).source.text for future in (first, *others)] == ["held", *"abcde"]
    assert gate.batches == [["held"], ["a", "b", "c"], ["d", "e"]]


def test_a_client_that_is_alone_never_waits_for_others(make, gate):
    batcher = make(wait=10 * SECONDS, batch=2)
    gate.is_open.set()
    for texts in ("a", "bc", "def"):  # one request after another, of one text or several; three go into two batches
        outputs = [future.result(SECONDS) for future in submit(batcher, gate, *texts)]
        assert [output.source.text for output in outputs] == [*texts]
    assert gate.batches == [["a"], ["b", "c"], ["d", "e"], ["f"]]


def test_after_texts_came_together_the_next_one_waits_for_more(make, gate):
    batcher = make(wait=SECONDS, batch=2)
    hold(batcher, gate)
    together = [submit(batcher, gate, text)[0] for text in "ab"]
    gate.is_open.set()
    assert [future.result(SECONDS).source.text for future in together] == ["a", "b"]
    for text in "cd":
        (last,) = submit(batcher, gate, text)
        time.sleep(0.1)
    assert last.result(SECONDS).source.text == "d"
    assert gate.batches == [["held"], ["a", "b"], ["c", "d"]]


def test_texts_that_are_searched_in_another_way_wait_for_their_own_batch(make, gate):
    batcher = make()
    hold(batcher, gate)
    submit(batcher, gate, "a")
    submit(batcher, gate, "b", search=Search(beam=2))
    submit(batcher, gate, "c", locations=True)
    submit(batcher, gate, "d", choices=2)
    last = submit(batcher, gate, "e")
    gate.is_open.set()
    batcher.close()
    assert last[0].done()
    assert gate.batches == [["held"], ["a", "e"], ["b"], ["c"], ["d"]]


def test_texts_with_and_without_terms_go_together_and_keep_their_own(make, gate, generator):
    batcher = make()
    hold(batcher, gate)
    manner = Manner(gate, Search(beam=5))
    glossary = generator.glossary({"zorb": "ZORB9"}, None)
    with_term = batcher.submit(["the zorb"], manner, glossary, SECONDS)
    without = batcher.submit(["the zorb"], manner, None, SECONDS)
    gate.is_open.set()
    assert "ZORB9" in with_term[0].result(SECONDS).text
    assert "ZORB9" not in without[0].result(SECONDS).text
    assert gate.batches[1] == ["the zorb", "the zorb"]


def test_a_full_queue_takes_all_texts_of_a_request_or_none(make, gate):
    batcher = make(waiting=3)
    hold(batcher, gate)
    submit(batcher, gate, "a", "b")
    with pytest.raises(Refused, match="2 texts are waiting already") as refused:
        submit(batcher, gate, "c", "d")
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
    assert batcher.waiting == 2
    submit(batcher, gate, "e")


def test_abandoned_texts_make_room_and_are_not_decoded(make, gate):
    batcher = make(waiting=2)
    hold(batcher, gate)
    gone = submit(batcher, gate, "a", "b")
    for future in gone:
        future.cancel()
    kept = submit(batcher, gate, "c", "d")
    gate.is_open.set()
    assert [future.result(SECONDS).source.text for future in kept] == ["c", "d"]
    assert gate.batches == [["held"], ["c", "d"]]
    assert b"pointing_abandoned_total 2.0" in batcher.metrics.text()


def test_a_text_whose_time_is_over_is_not_decoded(make, gate):
    batcher = make()
    hold(batcher, gate)
    (late,) = submit(batcher, gate, "late", seconds=0.05)
    (other,) = submit(batcher, gate, "other")
    time.sleep(0.1)
    gate.is_open.set()
    other.result(SECONDS)
    assert gate.batches == [["held"], ["other"]]
    with pytest.raises(CancelledError):
        late.result(SECONDS)


def test_an_error_belongs_to_its_text_and_all_others_are_decoded(make, gate, generator):
    class Fragile(Gate):
        def run(self, lines, settings, **options):
            if "bad" in [line.text for line in lines]:
                raise ZeroDivisionError("broken on purpose")
            return self.generator.run(lines, settings, **options)

    batcher, fragile = make(), Fragile(generator)
    hold(batcher, gate)
    futures = [submit(batcher, fragile, text)[0] for text in ("a", "bad", "b")]
    gate.is_open.set()
    assert [futures[n].result(SECONDS).source.text for n in (0, 2)] == ["a", "b"]
    with pytest.raises(ZeroDivisionError):
        futures[1].result(SECONDS)
    assert batcher.is_alive


def test_closing_takes_nothing_more_and_decodes_what_was_taken(make, gate):
    batcher = make(batch=2)
    gate.is_open.set()
    futures = submit(batcher, gate, *"abcdefg")
    batcher.close()
    assert all(future.done() for future in futures)
    assert not batcher.is_alive
    with pytest.raises(Refused, match="stopping"):
        submit(batcher, gate, "h")


def test_a_search_that_nobody_waits_for_ends_at_its_next_step(make, generator):
    """A search of 5,000 steps would take minutes."""
    batcher = make()
    endless = Search(beam=5, min_length=5_000, max_length=5_000, max_ratio=None)
    (future,) = batcher.submit(["a b c"], Manner(generator, endless), None, SECONDS)
    while batcher.waiting:
        time.sleep(0.01)
    time.sleep(0.1)
    assert future.cancel()
    began = time.monotonic()
    assert batcher.submit(["a"], Manner(generator, GREEDY), None, SECONDS)[0].result(SECONDS).source.text == "a"
    assert time.monotonic() - began < 5
