"""Tells hooks, spans, the trace and statistics of what polls hand out, and what becomes of it.

A poll hands out messages of several queues; observers see the messages of one queue together, as
those of a listener. They are consumed when the next poll or a commit says so; what was handed out
before a consumer is closed without that comes again.
"""

from __future__ import annotations

from collections.abc import Sequence

from rockgate.sdk.consumer.delivery.observed import Call, Observed
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue


class PolledCalls:
    """What the application has in hand."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._open: list[tuple[Call, int]] = []

    def begin(self, messages: Sequence[Received]) -> None:
        """These are handed out."""
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
