"""Work on all cores: jobs go out to worker processes, results come back in order, and no worker outlives its parent."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

from pointing.errors import Failure

Job = TypeVar("Job")
Done = TypeVar("Done")


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[Job], Done],
    jobs: Iterable[Job],
    workers: int | None,
    set_up: Callable[..., None],
    *settings: Any,
) -> Iterator[Done]:
    """work(job) for every job, in their order; every process calls set_up(*settings) first.

    Never more than a few jobs are in flight, so they may be large. One job, or one worker, needs no process.
    """
    workers = workers or cores()
    jobs = iter(jobs)
    first = list(islice(jobs, 2))
    if not first:
        return
    set_up(*settings)  # here too: what is wrong with the settings is said once, and clearly
    if len(first) < 2 or workers == 1:
        yield from map(work, chain(first, jobs))
        return
    pool = ProcessPoolExecutor(workers, _context(work), initializer=_start, initargs=(set_up, settings))
    waiting: deque[Future[Done]] = deque()
    try:
        for job in chain(first, jobs):
            waiting.append(pool.submit(work, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        pool.shutdown()
    except BrokenProcessPool:
        raise Failure("a worker process died; was there too little memory?") from None
    except BaseException:
        _kill(pool)
        raise


def _kill(pool: ProcessPoolExecutor) -> None:
    """Ends the workers now. There is no public way to do so before Python 3.14's `kill_workers`.

    A worker that dies while it sends a result, or takes a job, leaves a thread of the executor waiting for the rest of
    it to come, or to go, and the program waiting for that thread; closing our ends of those pipes lets them go.
    """
    processes = list((pool._processes or {}).values())
    jobs, results = pool._call_queue, pool._result_queue  # type: ignore[attr-defined]
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
    jobs._reader.close()  # from 3.11.5 on Python does so itself
    results._writer.close()  # type: ignore[attr-defined]


def _context(work: Callable[..., Any]) -> multiprocessing.context.BaseContext:
    """How processes are started. Not by fork: it would copy torch's threads half-way through their work."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([work.__module__])  # so that the imports are made once, not by every worker
    return context


def _start(set_up: Callable[..., None], settings: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    set_up(*settings)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
