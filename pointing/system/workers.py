"""Work on all cores: jobs go to worker processes, results come in the jobs' order, no worker outlives its parent."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from pointing.errors import Failure

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[Job], Result], jobs: Iterable[Job], workers: int | None, set_up: Callable[..., None], *settings: Any
) -> Iterator[Result]:
    """work(job) for every job, in the jobs' order; every process calls set_up(*settings) first.

    At most 2 · workers + 1 jobs are in flight, so jobs may be large. One job, or one worker, needs no process.
    """
    workers = workers or cores()
    jobs = iter(jobs)
    first = list(islice(jobs, 2))
    if not first:
        return
    set_up(*settings)  # in this process too, so that an error in the settings is reported once, and clearly
    if len(first) < 2 or workers == 1:
        yield from map(work, chain(first, jobs))
        return
    pool = _Pool(work, workers, set_up, settings)
    results: deque[Future[Result]] = deque()
    try:
        for job in chain(first, jobs):
            results.append(pool.submit(job))
            if len(results) > 2 * workers:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.close()


class _Pool(Generic[Job, Result]):
    """Worker processes, each with a pipe of its own, and a thread for every worker that is at work.

    Python's own pools can leave the program waiting for ever when their processes are ended early: a process that dies
    half-way through a message leaves a thread that waits for the rest of it. Here only the worker holds the other end
    of its pipe, so the pipe breaks when the worker dies, and the thread that serves it goes on.
    """

    def __init__(
        self, work: Callable[[Job], Result], size: int, set_up: Callable[..., None], settings: tuple[Any, ...]
    ) -> None:
        self.size = size
        self.arguments = work, set_up, settings
        self.context = _context(work)
        self.threads = ThreadPoolExecutor(size)
        self.processes: list[BaseProcess] = []
        self.idle: deque[Connection] = deque()

    def submit(self, job: Job) -> Future[Result]:
        if len(self.processes) < self.size:
            self._start_process()
        return self.threads.submit(self._ask, job)

    def _start_process(self) -> None:
        ours, theirs = self.context.Pipe()
        process: BaseProcess = self.context.Process(target=_serve, args=(theirs, *self.arguments))  # type: ignore[attr-defined]
        self.processes.append(process)
        process.start()
        theirs.close()
        self.idle.append(ours)

    def _ask(self, job: Job) -> Result:
        """The result of one job, in a thread of the pool: there are at least as many pipes as threads."""
        connection = self.idle.pop()
        try:
            connection.send(job)
            result, error, place = connection.recv()
        except (EOFError, OSError):
            self.terminate()
            raise Failure("a worker process died; was there too little memory?") from None
        finally:
            self.idle.append(connection)
        if error is not None:
            raise error from RuntimeError(f"in a worker process:\n{place}")
        return result  # type: ignore[no-any-return]

    def terminate(self) -> None:
        """Ends the workers now, whatever they do."""
        for process in self.processes:
            if process.pid is not None:
                process.terminate()

    def close(self) -> None:
        """Waits for the threads, then for the workers, which end when their pipes are closed."""
        self.threads.shutdown(cancel_futures=True)
        for connection in self.idle:
            connection.close()
        for process in self.processes:
            if process.pid is not None:
                process.join()


def _context(work: Callable[..., Any]) -> multiprocessing.context.BaseContext:
    """How processes are started. Not by fork: it would copy torch's threads half-way through their work."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([work.__module__])  # so that modules are imported once, not by every worker
    return context


def _serve(
    connection: Connection, work: Callable[[Any], Any], set_up: Callable[..., None], settings: tuple[Any, ...]
) -> None:
    """A worker process: answers each job with its result, or with the error and where it came from."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    set_up(*settings)
    while True:
        try:
            job = connection.recv()
        except EOFError:  # the parent has closed its end: there are no more jobs
            return
        try:
            connection.send((work(job), None, ""))
        except Exception as error:
            connection.send((None, error, traceback.format_exc()))


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
