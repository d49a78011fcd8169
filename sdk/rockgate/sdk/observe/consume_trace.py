"""The message trace of consumption: two records of every message that a listener is given.

    SubBefore 1 time 1 region 1 group 1 request 1 id 1 retries 1 keys 2
    SubAfter 1 request 1 id 1 ms 1 ok 1 keys 1 how 1 time 1 group 2

A request is one call of a listener, and joins the two. How it ended is 0 for success, 1 for a
time-out, 2 for an exception and 4 for a retry; RocketMQ's 3, a listener that returned nothing, is
success here. `message_trace` sends the records.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from rockgate.protocol.remoting import properties as names
from rockgate.sdk.hooks import ConsumeHook, ConsumeKind, Consuming
from rockgate.sdk.observe.message_trace import REGION, Record, record

_CODES: Final = {
    ConsumeKind.SUCCESS: 0,
    ConsumeKind.TIME_OUT: 1,
    ConsumeKind.EXCEPTION: 2,
    ConsumeKind.FAILED: 4,
}


class ConsumeTraceHook(ConsumeHook):
    """Makes the records of every message that is consumed."""

    def __init__(self, now_ms: Callable[[], int], take: Callable[[Record], None]) -> None:
        self._now_ms = now_ms
        self._take = take

    def before_consume(self, consuming: Consuming) -> None:
        """Record what is about to be consumed."""
        request = consuming.notes[self] = uuid.uuid4().hex.upper()
        now_ms = self._now_ms()
        for message in consuming.messages:
            if message.properties.get(names.TRACE_SWITCH) == "false":
                continue
            self._take(
                record(
                    message.topic,
                    message.message_id,
                    message.keys,
                    *("SubBefore", now_ms, message.properties.get(names.MSG_REGION) or REGION),
                    *(consuming.group, request, message.message_id, message.tries - 1),
                    " ".join(message.keys),
                )
            )

    def after_consume(self, consuming: Consuming) -> None:
        """Its outcome."""
        assert consuming.kind is not None
        took_ms = round(consuming.took_s * 1000) // len(consuming.messages)
        now_ms = self._now_ms()
        for index, message in enumerate(consuming.messages):
            if message.properties.get(names.TRACE_SWITCH) == "false":
                continue
            is_done = index < consuming.done_count
            self._take(
                record(
                    message.topic,
                    message.message_id,
                    message.keys,
                    *("SubAfter", consuming.notes[self], message.message_id, took_ms),
                    *("true" if is_done else "false", " ".join(message.keys)),
                    *(_CODES[consuming.kind], now_ms, consuming.group),
                )
            )
