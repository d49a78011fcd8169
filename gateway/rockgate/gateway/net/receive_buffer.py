"""The receive buffer that all connections of a listener share.

Receiving is one step of the loop: the transport asks for a buffer, fills it and says so, and then
the bytes are copied out, or belong to a large frame already. So one buffer serves all connections.

Large frames arrive as fast as the kernel has them, megabytes at a time, and into memory that is new
to the process: two dozen of them blocked all other connections for a third of a second in one turn
of the loop. So all of them together get `TURN_BYTES` in a turn; the rest is read in later turns, in
order of arrival. Their memory is freed over several turns, too, if they are aborted.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from rockgate.gateway.net.clock import Clock
from rockgate.protocol.frames import Spares

CHUNK_SIZE = 64 << 10
"""Enough for hundreds of small requests; what a large one has more is received in its place."""
TURN_BYTES: Final = 2 << 20
"""What large requests may receive in one turn: a millisecond or two of the kernel's work."""
LEAST_BYTES: Final = 16 << 10
"""What can be received in a turn whose bytes are spent: a transport does not accept "none"."""
RESUMED_MAX: Final = 4
"""How many connections read on in a turn. The first that the kernel names may take all of it, so
few are asked, that each comes first in its time; and more than one, because some have nothing."""


class ReceiveBuffer:
    """The buffers of one listener, and the turns of connections that receive much."""

    __slots__ = ("_is_due", "_left", "_waiting", "chunk", "spares")

    def __init__(self) -> None:
        self.chunk = memoryview(bytearray(CHUNK_SIZE))
        self.spares = Spares()
        self._left = TURN_BYTES
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def share(self, room: memoryview) -> memoryview:
        """As much of a frame's memory as may be filled at once."""
        return room[: max(self._left, LEAST_BYTES)]

    def spend(self, size: int, clock: Clock) -> bool:
        """Count what was received of a frame; whether its connection has to wait for a turn."""
        self._left -= size
        self._come_back(clock)
        return self._left <= 0

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, in a later turn, after `spend` has said so."""
        self._waiting.append(resume)

    def clear(self, clock: Clock) -> None:
        """Free what aborted frames have left behind, one in a turn."""
        if self.spares.retired:
            self._come_back(clock)

    def _come_back(self, clock: Clock) -> None:
        if not self._is_due:
            self._is_due = True
            clock.call_later(0, lambda: self._advance(clock))

    def _advance(self, clock: Clock) -> None:
        self._is_due = False
        self._left = TURN_BYTES
        if self.spares.retired:
            self.spares.retired.pop()
        for _ in range(min(len(self._waiting), RESUMED_MAX)):
            self._waiting.popleft()()
        if self._waiting or self.spares.retired:
            self._come_back(clock)
