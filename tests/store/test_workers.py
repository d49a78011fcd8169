"""Work beside the store's thread: in order, told when done, never silent about a failure."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest
from tests.waiting import wait_until

from rockgate.store.errors import StoreFull
from rockgate.store.testing.memory_files import PowerCut
from rockgate.store.workers import Done, InlineJobs, ThreadJobs, Work, Worker

# Jobs at once


def test_an_inline_job_runs_before_submit_returns() -> None:
    heard: list[object] = []
    InlineJobs().submit(lambda: heard.append("work"), heard.append)
    assert heard == ["work", None]


@pytest.mark.parametrize("error", [OSError("disk"), StoreFull("full"), ValueError("bug")])
def test_what_an_inline_job_raises_goes_to_its_owner(error: Exception) -> None:
    heard: list[object] = []

    def work() -> None:
        raise error

    InlineJobs().submit(work, heard.append)
    assert heard == [error]


def test_a_cut_of_power_goes_through_an_inline_job() -> None:
    def work() -> None:
        raise PowerCut

    with pytest.raises(PowerCut):
        InlineJobs().submit(work, lambda failure: None)


def test_a_job_that_an_inline_job_submits_runs_after_it() -> None:
    jobs = InlineJobs()
    heard: list[str] = []

    def done(failure: Exception | None) -> None:
        jobs.submit(lambda: heard.append("second"), lambda failure: heard.append("told"))
        heard.append("first")

    jobs.submit(lambda: None, done)
    assert heard == ["first", "second", "told"]


def test_a_chain_of_inline_jobs_may_be_longer_than_the_stack() -> None:
    jobs = InlineJobs()
    count = 0

    def again(failure: Exception | None) -> None:
        nonlocal count
        count += 1
        if count < 3 * sys.getrecursionlimit():
            jobs.submit(lambda: None, again)

    again(None)
    assert count == 3 * sys.getrecursionlimit()


def test_inline_jobs_continue_after_an_owner_that_raised() -> None:
    jobs = InlineJobs()
    heard: list[object] = []

    def done(failure: Exception | None) -> None:
        raise RuntimeError("injected")

    with pytest.raises(RuntimeError, match="injected"):
        jobs.submit(lambda: None, done)
    jobs.submit(lambda: None, heard.append)
    assert heard == [None]


# Jobs in a thread


class Home:
    """A store's thread: what is posted runs on demand."""

    def __init__(self) -> None:
        self._posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.post = self._posted.put

    def run_one(self) -> None:
        self._posted.get(timeout=60)()


def test_jobs_run_in_a_thread_and_answer_at_home_in_order() -> None:
    home = Home()
    jobs = ThreadJobs("test-jobs", home.post)
    heard: list[tuple[str, int, str]] = []

    def pair(number: int) -> tuple[Work, Done]:
        def name() -> str:
            return threading.current_thread().name

        return (
            lambda: heard.append(("work", number, name())),
            lambda failure: heard.append(("told", number, name())),
        )

    for number in range(3):
        jobs.submit(*pair(number))
    for _ in range(3):
        home.run_one()
    here = threading.current_thread().name
    assert [h for h in heard if h[0] == "work"] == [("work", n, "test-jobs") for n in range(3)]
    assert [h for h in heard if h[0] == "told"] == [("told", n, here) for n in range(3)]
    jobs.stop()


def test_what_a_job_raises_goes_to_its_owner_and_the_next_job_runs() -> None:
    home = Home()
    jobs = ThreadJobs("test-jobs", home.post)
    heard: list[object] = []
    error = StoreFull("full")

    def work() -> None:
        raise error

    jobs.submit(work, heard.append)
    jobs.submit(lambda: None, heard.append)
    jobs.stop()
    assert heard == [error, None]


def test_stopping_finishes_what_is_queued_and_tells_its_owners() -> None:
    jobs = ThreadJobs("test-jobs", lambda call: None)
    heard: list[object] = []
    for _ in range(50):
        jobs.submit(lambda: None, heard.append)
    jobs.stop()
    assert heard == [None] * 50


# Workers


def test_a_worker_takes_a_step_when_it_is_woken() -> None:
    steps: list[int] = []
    worker = Worker("test-worker", lambda: steps.append(1))
    worker.start()
    for count in (1, 2, 3):
        worker.wake()
        wait_until(lambda count=count: len(steps) >= count, "a step was taken")  # type: ignore[misc]
    worker.stop()


def test_waking_a_worker_during_its_step_makes_it_take_another() -> None:
    """Or what was appended while it flushed would wait forever."""
    inside, go_on = threading.Event(), threading.Event()
    steps: list[int] = []

    def step() -> None:
        steps.append(1)
        inside.set()
        go_on.wait(60)

    worker = Worker("test-worker", step)
    worker.start()
    worker.wake()
    assert inside.wait(60)
    worker.wake()
    go_on.set()
    wait_until(lambda: len(steps) == 2, "the second step was taken")
    worker.stop()


def test_a_worker_with_an_interval_takes_steps_unasked() -> None:
    steps: list[int] = []
    worker = Worker("test-worker", lambda: steps.append(1), interval_ms=1)
    worker.start()
    wait_until(lambda: len(steps) >= 3, "three steps were taken")
    worker.stop()


def test_a_step_that_fails_is_logged_and_the_worker_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps: list[int] = []

    def step() -> None:
        steps.append(1)
        if len(steps) == 1:
            raise OSError("injected")

    worker = Worker("test-worker", step)
    with caplog.at_level(logging.ERROR):
        worker.start()
        worker.wake()
        wait_until(lambda: "injected" in caplog.text, "the failure is logged")
        worker.wake()
        wait_until(lambda: len(steps) == 2, "the second step was taken")
        worker.stop()
    assert "test-worker" in caplog.text


def test_a_worker_that_never_started_can_be_stopped() -> None:
    Worker("test-worker", lambda: None).stop()
