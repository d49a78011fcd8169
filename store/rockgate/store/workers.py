"""Worker threads of the store: woken on demand, and jobs that report back when done.

The store's thread never waits: a job runs on a worker thread, and its result comes back through
`post`, which the gateway derives from its event loop. Tests run the same jobs inline, in order,
without any thread.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from rockgate.store.errors import DiskFailed

_log = logging.getLogger(__name__)

Work = Callable[[], None]
Done = Callable[[Exception | None], None]
Post = Callable[[Callable[[], None]], None]
"""Runs a function on the store's thread, soon."""


class Jobs(Protocol):
    """Runs slow work."""

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` on a worker thread, then `done` on the store's thread."""


class InlineJobs:
    """Runs each job at once: for tests, and while the store opens and closes."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[Work, Done]] = deque()
        self._is_running = False

    def submit(self, work: Work, done: Done) -> None:
        """Run both parts now, or after the job that submits this one."""
        self._jobs.append((work, done))
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._jobs:
                self._run(*self._jobs.popleft())
        finally:
            self._is_running = False

    @staticmethod
    def _run(work: Work, done: Done) -> None:
        failure: Exception | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001  # a supervisor: the job's owner gets it
            failure = error
        done(failure)


def run_job(jobs: Jobs, work: Work) -> Iterator[bool]:
    """Run work on a worker thread, pausing until it is done; raise its error."""
    outcome: list[Exception | None] = []
    jobs.submit(work, outcome.append)
    while not outcome:
        yield True
    if outcome[0] is not None:
        raise outcome[0]


class ThreadJobs:
    """One thread that runs jobs in order."""

    def __init__(self, name: str, post: Post) -> None:
        self._post = post
        self._jobs: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._finished: deque[tuple[Done, Exception | None]] = deque()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Done) -> None:
        """Queue a job."""
        self._jobs.put((work, done))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done = job
            failure: Exception | None = None
            try:
                work()
            except Exception as error:  # noqa: BLE001  # a supervisor: the job's owner gets it
                failure = error
            self._finished.append((done, failure))
            self._post(self.deliver)

    def deliver(self) -> None:
        """Notify the owners of finished jobs, on the store's thread."""
        while self._finished:
            done, failure = self._finished.popleft()
            done(failure)

    def stop(self) -> None:
        """Finish queued jobs, end the thread and notify the owners."""
        self._jobs.put(None)
        self._thread.join()
        self.deliver()


class Worker:
    """A thread that runs a step whenever it is woken, or after an interval."""

    def __init__(self, name: str, step: Callable[[], None], interval_ms: int | None = None) -> None:
        self._step = step
        self._interval_s = None if interval_ms is None else interval_ms / 1000
        self._woken = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Request a step soon; several requests before it runs count as one."""
        self._woken.set()

    def _run(self) -> None:
        while True:
            self._woken.wait(self._interval_s)
            self._woken.clear()
            if self._is_stopping:
                return
            try:
                self._step()
            except DiskFailed:
                pass  # logged once, where it happened
            except Exception:  # noqa: BLE001  # a supervisor: retried when it is next due
                _log.exception("step of thread %s failed", self._thread.name)

    def stop(self) -> None:
        """End the thread after its current step."""
        self._is_stopping = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()


class Threads:
    """The threads of one store. Before `start` and after `stop` everything runs at once."""

    def __init__(self) -> None:
        self.jobs: Jobs = InlineJobs()
        """Where slow work currently runs; callers read it for each submit."""
        self._post: Post | None = None
        self._workers: Sequence[Worker] = ()

    def start(self, post: Post, *workers: Worker) -> None:
        """Run jobs and these workers on threads from now on; `post` returns results."""
        self._post = post
        self.jobs = ThreadJobs("rockgate-jobs", post)
        self._workers = workers
        for worker in workers:
            worker.start()

    def soon(self, work: Callable[[], None]) -> None:
        """Run work in the next iteration of the store's thread; at once without an event loop."""
        if self._post is None:
            work()
        else:
            self._post(work)

    def stop(self) -> None:
        """End all threads, each after its current work."""
        for worker in self._workers:
            worker.stop()
        jobs, self.jobs = self.jobs, InlineJobs()
        if isinstance(jobs, ThreadJobs):
            jobs.stop()
