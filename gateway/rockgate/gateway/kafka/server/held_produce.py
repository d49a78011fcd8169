"""Produce requests that wait for the disk: slowed down, never failed.

An error would make a plain producer send its batches again in another order. So while the store is
stalled, a Produce is held before it is handled: nothing behind it on its connection is started, and
since that leaves requests over, nothing more is read from it. Once the store continues, it is
handled as usual, and its response has a throttle time, so that clients do not return all at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from rockgate.gateway.kafka.request.handler import AnyHandler, Call, Peer
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.net.stream import Disconnect
from rockgate.protocol.kafka.errors import ErrorCode

THROTTLE_MS_MAX: Final = 1_000
STEP_COUNT: Final = 32
"""Held requests that are handled per turn of the loop."""
LOOK_SECONDS: Final = 1.0
"""How often clients of held requests are checked: their hangup is not noticed without reading."""


class HeldProduce:
    """Stands in for the handler of Produce while the store is stalled."""

    def __init__(
        self,
        handler: AnyHandler,
        clock: Clock,
        swap: Callable[[bool], None],
        on_appended: Callable[[float], None],
    ) -> None:
        """`swap` replaces the handler with this, or restores it.

        `on_appended` is called with the seconds that each append took.
        """
        self._handler = handler
        self._clock = clock
        self._swap = swap
        self._on_appended = on_appended
        self._turns: deque[tuple[asyncio.Future[None], Peer]] = deque()
        self._is_stalled = False
        # The timer of the next check of clients while requests are held; None while none are.
        self._timer: Timer | None = None

    def stalled(self, is_stalled: bool) -> None:
        """The store is stalled, or has resumed."""
        self._is_stalled = is_stalled
        if not is_stalled:
            self._step()
        elif self._timer is None:
            self._timer = self._clock.call_later(LOOK_SECONDS, self._look)
            self._swap(True)

    def stop(self) -> None:
        """Stop checking clients: the listener is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def handle(self, request: Any, call: Call) -> Any:
        """Promise the response."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call.peer.reading_count += 1
        self._turns.append((turn, call.peer))
        return self._in_turn(turn, request, call, self._clock.time())

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        """The response to a request that failed after it was held."""
        return self._handler.refuse(request, code)

    async def _in_turn(
        self, turn: asyncio.Future[None], request: Any, call: Call, since: float
    ) -> Any:
        peer = call.peer
        try:
            await turn
            if peer.has_left():
                # It has given up, and perhaps sent the same again.
                raise Disconnect("client left while its request was held")
            held_ms = int((self._clock.time() - since) * 1000)
            response = self._handler.handle(request, call)
            self._on_appended(self._clock.time() - since)
            if hasattr(response, "__await__"):
                response = await response
        finally:
            turn.cancel()
            # The session continues with the next requests when it has the response.
            peer.reading_count -= 1
        peer.throttle_ms = max(peer.throttle_ms, min(held_ms, THROTTLE_MS_MAX))
        return response

    def _step(self) -> None:
        """Release some held requests, in order of arrival."""
        if self._is_stalled or self._timer is None:
            return
        for _ in range(min(STEP_COUNT, len(self._turns))):
            turn, _peer = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._turns:
            self._clock.call_later(0.0, self._step)
        else:
            self.stop()
            self._swap(False)

    def _look(self) -> None:
        """Close connections whose clients are gone."""
        self._timer = self._clock.call_later(LOOK_SECONDS, self._look)
        self._turns = deque(each for each in self._turns if not each[0].done())
        for _, peer in self._turns:
            peer.has_left()
