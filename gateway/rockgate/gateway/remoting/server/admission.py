"""Admission of requests to the broker's processors: overload protection on the event loop.

`overload` decides; this gives it the loop's time, and lets sends wait. Nothing runs while the store
is not stalled: dispatch then only reads a flag of the request's kind.
"""

from __future__ import annotations

import asyncio
from typing import Final

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Handle, Later, Reply
from rockgate.gateway.remoting.server.overload import Overload, RequestKind
from rockgate.gateway.storage.slow_appends import SlowAppends
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

STEP_SECONDS: Final = 0.01
"""How often waiting sends are looked at, as in RocketMQ."""


class HeldSend:
    """A send that waits for its turn; `reply` is what its client waits for."""

    __slots__ = ("_caller", "_command", "_handle", "reply")

    def __init__(self, handle: Handle, command: Command, caller: Caller) -> None:
        self._handle = handle
        self._command = command
        self._caller = caller
        self.reply: asyncio.Future[Reply | asyncio.Future[Reply]]
        self.reply = asyncio.get_running_loop().create_future()

    def end(self, refusal: str | None) -> None:
        """Start it, or refuse it; neither if its connection is gone."""
        if self.reply.done():
            return
        if refusal is not None:
            self.reply.set_exception(Refused(ResponseCode.SYSTEM_BUSY, refusal))
            return
        try:
            reply = self._handle(self._command, self._caller)
        except Exception as error:  # noqa: BLE001 # dispatch, which awaits it, decides by type
            self.reply.set_exception(error)
        else:
            if isinstance(reply, (Command, list)):
                self.reply.set_result(reply)
            else:
                self.reply.set_result(asyncio.ensure_future(_last(reply)))


class Admission:
    """Starts, holds or refuses requests. One for the broker's listener."""

    def __init__(
        self, overload: Overload[HeldSend], clock: Clock, slow_appends: SlowAppends
    ) -> None:
        self._overload = overload
        self._slow_appends = slow_appends
        self._clock = clock
        self._timer: Timer | None = None

    def kind_of(self, code: RequestCode) -> RequestKind:
        """The kind of a request code."""
        return self._overload.kind_of(code)

    def stalled(self, is_stalled: bool) -> None:
        """The store is stalled, or has resumed."""
        self._overload.stalled(is_stalled, self._now_ms())
        self._step()

    def guard(self, kind: RequestKind, handle: Handle) -> Handle:
        """What to call for a request of a kind that is guarded."""
        refusal = self._overload.refusal(kind, self._now_ms())
        if refusal is not None:
            return _refusing(refusal)
        return self._holding(handle) if kind.is_held else handle

    def overdue(self, kind: RequestKind, age_ms: int, behind_count: int) -> Command | None:
        """The answer to a request that has waited for too long before it is started."""
        refusal = self._overload.overdue(kind, age_ms, behind_count)
        return None if refusal is None else Command(ResponseCode.SYSTEM_BUSY, remark=refusal)

    def note_slow(self, kind: RequestKind, seconds: float) -> None:
        """Count a request that took long, if it appends."""
        if kind.name == "send":
            self._slow_appends.note(seconds)

    def stop(self) -> None:
        """Stop checking: the listener is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _holding(self, handle: Handle) -> Handle:
        def hold(command: Command, caller: Caller) -> Later:
            held = HeldSend(handle, command, caller)
            self._overload.wait(held, self._now_ms())
            return held.reply

        return hold

    def _step(self) -> None:
        """Refuse or start sends that wait, and look again soon if there may be more."""
        self.stop()
        for held, refusal in self._overload.step(self._now_ms()):
            held.end(refusal)
        if not self._overload.is_at_rest:
            seconds = 0.0 if self._overload.is_releasing else STEP_SECONDS
            self._timer = self._clock.call_later(seconds, self._step)

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


async def _last(reply: Later) -> Reply:
    """The reply to come; a long poll's may come in two parts."""
    answer = await reply
    return await answer if isinstance(answer, asyncio.Future) else answer


def _refusing(refusal: str) -> Handle:
    def refuse(command: Command, caller: Caller) -> Reply:
        raise Refused(ResponseCode.SYSTEM_BUSY, refusal)

    return refuse
