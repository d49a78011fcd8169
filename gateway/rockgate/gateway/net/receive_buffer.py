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
"""Enough for hundreds of small requests;

larger ones are received directly into their own memory.
"""
TURN_BYTES: Final = 2 << 20
"""Bytes that large requests may receive in one turn: one or two milliseconds in the kernel."""
LEAST_BYTES: Final = 16 << 10
"""Read size when the bytes of a turn are spent: a transport does not accept an empty buffer."""
RESUMED_MAX: Final = 4
"""How many waiting connections are resumed in a turn:

few, because the first may use up the turn, and more than one, because some have no data.
"""


class ReceiveBuffer:
    """The buffers of one listener, and the turns of connections that receive large frames."""

    __slots__ = ("_is_due", "_left", "_waiting", "chunk", "spares")

    def __init__(self) -> None:
        self.chunk = memoryview(bytearray(CHUNK_SIZE))
        self.spares = Spares()
        self._left = TURN_BYTES
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def share(self, room: memoryview) -> memoryview:
        """As much of a frame's memory as may be filled in this turn."""
        return room[: max(self._left, LEAST_BYTES)]

    def spend(self, size: int, clock: Clock) -> bool:
        """Count bytes received of a frame; True if the connection must wait for its turn."""
        self._left -= size
        self._come_back(clock)
        return self._left <= 0

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, in a later turn, after `spend` returned True."""
        self._waiting.append(resume)

    def clear(self, clock: Clock) -> None:
        """Free the memory of aborted frames, one per turn."""
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
