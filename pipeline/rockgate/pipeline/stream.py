"""Running a job to its end, or until it is stopped, so that it can be run again.

A stream is run step by step: a micro-batch is handed to the job's `step`, which writes it. A signal
(Ctrl-C, SIGTERM) lets the step that runs finish and waits until its checkpoint is written; only
then the query is stopped. A second signal does not wait. Killed with kill -9, the step in flight is
done again by the next run, with exactly the same records.
"""

from __future__ import annotations

import ast
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from rockgate.pipeline.errors import Stopped
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.failures import explained, spark_errors
from rockgate.pipeline.spark.remote import is_remote, lost, means_lost
from rockgate.pipeline.spark.remote_steps import Steering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

POLL_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Step = Callable[["DataFrame", int], None]


class Stopping:
    """Whether the job has been asked to stop; a second request stops it at once."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._urgently = threading.Event()

    def request(self) -> None:
        """Request the end."""
        (self._urgently if self._requested.is_set() else self._requested).set()

    @property
    def is_requested(self) -> bool:
        """Whether to end after this step."""
        return self._requested.is_set()

    @property
    def is_urgent(self) -> bool:
        """Whether to end without waiting for the step."""
        return self._urgently.is_set()

    def wait(self, seconds: float) -> bool:
        """Pause, until the end is requested at the latest."""
        return self._requested.wait(max(seconds, 0))


@contextmanager
def stopped_by_signals(reporter: Reporter) -> Iterator[Stopping]:
    """Within the block Ctrl-C and SIGTERM mean "after this step"."""
    stopping = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.request()
        if not stopping.is_urgent:
            reporter.say("stopping after this step; press Ctrl-C again to stop now")

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a stream runs: once through the stored records, or until it is stopped."""

    is_following: bool = False
    every: str = "5 seconds"

    def trigger(self) -> dict[str, Any]:
        """The trigger for Spark."""
        return {"processingTime": self.every} if self.is_following else {"availableNow": True}


class _Gate:
    """Hands batches to the step until the end is requested."""

    def __init__(self, step: Step, stopping: Stopping) -> None:
        self._step = step
        self._stopping = stopping
        self._lock = threading.Lock()
        self._taken = -1
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        with self._lock:
            if self._stopping.is_requested:
                raise InterruptedError("the job is stopping; the next run processes this batch")
            self._taken = number
        try:
            self._step(frame, number)
        except BaseException as error:
            # Spark would hand it back as text in a Java stack trace.
            self.failure = error
            raise

    def is_idle(self, query: StreamingQuery) -> bool:
        """Whether the last batch that was started has been committed."""
        with self._lock:
            progress = query.lastProgress
            return (progress is not None and progress["batchId"] >= self._taken) or self._taken < 0


def run_stream(
    frame: DataFrame,
    step: Step,
    *,
    checkpoint: str,
    pace: Pace,
    reporter: Reporter,
    stopping: Stopping | None = None,
) -> None:
    """Run a stream into `step` until it is through, stopped, or failed.

    Raises Stopped if that was before the end of the input: a job that follows has no end, and a
    stop is its normal completion.
    """
    if stopping is not None:
        is_through = _run_stream(frame, step, checkpoint, pace, reporter, stopping)
    else:
        with stopped_by_signals(reporter) as by_signal:
            is_through = _run_stream(frame, step, checkpoint, pace, reporter, by_signal)
    if not is_through and not pace.is_following:
        raise Stopped("stopped before the end; run the same command to continue")


def _run_stream(
    frame: DataFrame,
    step: Step,
    checkpoint: str,
    pace: Pace,
    reporter: Reporter,
    stopping: Stopping,
) -> bool:
    """Run it; returns whether it ended by itself."""
    from pyspark.errors import PySparkException

    gate, watch = _Gate(step, stopping), _Watch(reporter)
    steering = Steering(frame.sparkSession, gate) if is_remote(frame.sparkSession) else None
    with spark_errors():
        function = steering.function() if steering else gate
        writer = frame.writeStream.foreachBatch(function).option("checkpointLocation", checkpoint)
        query = writer.trigger(**pace.trigger()).start()
        is_lost = is_broken_off = False
        # A bounded stream ends by itself once requested: with its last step, or before the next.
        try:
            while query.isActive:
                if steering:
                    steering.turn()
                watch.look(query)
                if stopping.is_urgent or (
                    pace.is_following and stopping.is_requested and gate.is_idle(query)
                ):
                    is_broken_off = True
                    break
                time.sleep(POLL_SECONDS)
        except PySparkException as error:
            is_lost = steering is not None and means_lost(error)
            if is_lost:
                raise lost(frame.sparkSession) from None
            raise
        finally:
            if not is_lost:
                if steering:
                    steering.end(is_urgent=stopping.is_urgent)
                query.stop()
        watch.look(query)
    if gate.failure is not None and not isinstance(gate.failure, InterruptedError):
        with spark_errors():
            raise gate.failure
    failure = query.exception()
    if failure is not None and not stopping.is_requested:
        raise explained(str(failure))
    return not is_broken_off and failure is None


class _Watch:
    """Reports each batch once."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._reported = -1

    def look(self, query: StreamingQuery) -> None:
        for each in query.recentProgress:
            progress = json.loads(each.json)
            if progress["batchId"] <= self._reported:
                continue
            records = sum(_count(source) for source in progress["sources"])
            if records:
                self._reported = progress["batchId"]
                self._reporter.step(self._reported, records)


def _count(source: Mapping[str, Any]) -> int:
    """How many offsets a batch took from a source; its `numInputRows` counts re-reads, too."""
    before, after = _ends(source["startOffset"]), _ends(source["endOffset"])
    if not before:
        return int(source["numInputRows"])
    # A partition that is new in this batch was read from its beginning, which is rarely not 0.
    return sum(max(0, offset - before.get(place, 0)) for place, offset in after.items())


def _ends(offsets: Mapping[str, Mapping[str, int]] | str | None) -> dict[tuple[str, str], int]:
    if isinstance(offsets, str):
        # From a Connect server they come as Python's notation of a dict.
        offsets = ast.literal_eval(offsets)
    if not isinstance(offsets, Mapping):
        return {}
    return {
        (topic, number): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }
