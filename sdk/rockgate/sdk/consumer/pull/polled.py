"""Reports what polls return, and its outcome, to hooks, spans, the trace and statistics.

A poll returns messages of several queues; observers see the messages of one queue together, as
those of a listener. They count as consumed at the next poll or commit; if the consumer is closed
before that, they are delivered again.
"""

from __future__ import annotations

from collections.abc import Sequence

from rockgate.sdk.consumer.delivery.observed import Call, Observed
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue


class PolledCalls:
    """The messages that the application is processing."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._open: list[tuple[Call, int]] = []

    def begin(self, messages: Sequence[Received]) -> None:
        """A poll returns these."""
        by_queue: dict[Queue, list[Received]] = {}
        for message in messages:
            by_queue.setdefault(message.source, []).append(message)
        for part in by_queue.values():
            call = self._observed.call(part, is_iterated=True).__enter__()
            self._open.append((call, len(part)))

    def end(self, *, is_done: bool) -> None:
        """The application is done with all of them, or never will be."""
        ended, self._open = self._open, []
        for call, count in ended:
            call.done = count if is_done else 0
            call.end()
