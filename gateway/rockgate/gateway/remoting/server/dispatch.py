"""From a command to its response: find the processor, call it, write the response.

Fates of a request that fails are decided here, by type, and nowhere else:

- the peer broke the protocol (ProtocolError, Disconnect): raised, and the session closes;
- the request does not fit its declaration, or cannot be served: the answer has a code and why;
- anything else is our bug: logged with its traceback, SYSTEM_ERROR, the connection lives.

A one-way request gets no answer, whatever becomes of it. All are counted for telemetry, by code.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, Final, cast

from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.remoting.server.admission import Admission
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.errors import Refused, code_of
from rockgate.gateway.remoting.server.handle import Frame, Handle, Later, Reply
from rockgate.gateway.remoting.server.overload import UNBOUNDED
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.telemetry.durations import BOUNDS
from rockgate.gateway.telemetry.requests import ApiStats, RequestStats
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import (
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
    request_name,
)
from rockgate.protocol.remoting.command import Command, encode
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest

__all__ = ["UNKNOWN", "Dispatcher", "Frame", "Handle", "Later", "Reply", "failed", "write"]

log = logging.getLogger(__name__)

OnSlow = Callable[[Command, float], None]
"""Called with a request and the seconds that it took."""
REMARK_MAX = 1_000
SLOW_SECONDS: Final = 0.001
UNKNOWN: Final = -1
"""The code under which requests without a processor are counted."""


def write(request: Command, reply: Reply) -> Frame:
    """The frame of a response; empty for a one-way request."""
    if request.flag & ONEWAY_FLAG:
        return []
    if isinstance(reply, list):
        return reply
    reply.opaque = request.opaque
    reply.flag = RESPONSE_FLAG
    reply.encoding = request.encoding
    head = encode(reply)
    return [head, reply.body] if len(reply.body) else [head]


class Dispatcher:
    """The processors of one listener, by code. One for all its connections."""

    def __init__(
        self,
        table: Mapping[RequestCode, Handle],
        stats: RequestStats | None = None,
        now: Callable[[], float] = perf_counter,
        admission: Admission | None = None,
        on_slow: Mapping[RequestCode, OnSlow] | None = None,
    ) -> None:
        """Without `admission` every request is started at once.

        `on_slow` is called, by code, with requests that took a millisecond or more.
        """
        self.stats = stats or RequestStats()
        self._admission = admission
        self._table = {
            int(code): (
                handle,
                self.stats.of(code),
                UNBOUNDED if admission is None else admission.kind_of(code),
            )
            for code, handle in table.items()
        }
        self._now = now
        self._on_slow = {int(code): listener for code, listener in (on_slow or {}).items()}

    def dispatch(self, command: Command, caller: Caller) -> Frame | asyncio.Future[Frame]:
        """The response's frame, or a future of it; raises if the connection must be closed."""
        now = self._now
        started = now()
        found = self._table.get(command.code)
        if found is None:
            return self._count(command, _unsupported(command), self.stats.of(UNKNOWN), started)
        handle, stats, kind = found
        if kind.is_guarded and self._admission is not None:
            handle = self._admission.guard(kind, handle)
        try:
            reply = handle(command, caller)
            if type(reply) is list:
                # Sends and pulls pass through this, so `_count` is inlined.
                seconds = now() - started
                stats.counts[bisect_left(BOUNDS, seconds)] += 1
                stats.seconds += seconds
                if seconds >= SLOW_SECONDS:
                    self._slow(command, seconds)
                    if self._admission is not None:
                        self._admission.note_slow(kind, seconds)
                stats.request_bytes += command.size
                stats.answer_bytes += len(reply[0]) if len(reply) == 1 else sum(map(len, reply))
                return [] if command.flag & ONEWAY_FLAG else reply
        except (ProtocolError, Disconnect):
            raise
        except Exception as error:  # noqa: BLE001 # decided by type in failed()
            reply = failed(command, caller, error)
        if isinstance(reply, Command):
            return self._count(command, reply, stats, started)
        later = self._later(command, caller, cast(Awaitable[Any], reply), stats, started)
        future = asyncio.ensure_future(later)
        kind.enter()
        future.add_done_callback(kind.leave)
        return future

    def overdue(self, command: Command, age_ms: int, behind_count: int) -> Frame | None:
        """The refusal of a request that has waited too long since it was received, if it has."""
        found = self._table.get(command.code)
        if found is None or self._admission is None:
            return None
        _, stats, kind = found
        answer = self._admission.overdue(kind, age_ms, behind_count)
        return None if answer is None else self._count(command, answer, stats, self._now())

    async def _later(
        self,
        command: Command,
        caller: Caller,
        reply: Later,
        stats: ApiStats,
        started: float,
    ) -> Frame:
        try:
            answer = await reply
            if isinstance(answer, asyncio.Future):
                answer = await answer
        except (ProtocolError, Disconnect, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 # decided by type in failed()
            answer = failed(command, caller, error)
        return self._count(command, answer, stats, started)

    def _count(self, command: Command, reply: Reply, stats: ApiStats, started: float) -> Frame:
        """Encode a response, and count it."""
        frame = write(command, reply)
        seconds = self._now() - started
        stats.add(seconds)
        if seconds >= SLOW_SECONDS:
            self._slow(command, seconds)
        stats.request_bytes += command.size
        stats.answer_bytes += sum(map(len, frame))
        if not isinstance(reply, list) and reply.code:
            stats.count_error(reply.code)
        return frame

    def _slow(self, command: Command, seconds: float) -> None:
        listener = self._on_slow.get(command.code)
        if listener is not None:
            listener(command, seconds)


def failed(command: Command, caller: Caller, error: Exception) -> Command:
    """The response to a request that raised."""
    if isinstance(error, Refused):
        return Command(error.code, remark=error.remark[:REMARK_MAX])
    if isinstance(error, MalformedRequest):
        return Command(ResponseCode.INVALID_PARAMETER, remark=str(error)[:REMARK_MAX])
    if isinstance(error, MalformedContent):
        return Command(ResponseCode.MESSAGE_ILLEGAL, remark=str(error)[:REMARK_MAX])
    code = code_of(error)
    if code is not None:
        return Command(code, remark=str(error)[:REMARK_MAX])
    log.error(
        "request failed %s code=%s",
        caller.peer,
        quoted(request_name(command.code)),
        exc_info=error,
    )
    return Command(ResponseCode.SYSTEM_ERROR, remark="Internal server error; see the server log.")


def _unsupported(command: Command) -> Command:
    # Rare, and not needed to start.
    from rockgate.gateway.remoting.server.unsupported import remark

    return Command(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark(command.code))
