"""Where received bytes go first: one place that all connections of a door share.

Receiving is one step of the loop: the transport asks for a buffer, fills it and says so, and then
the bytes are copied out, or belong to a large frame already. So one buffer serves all connections.
"""

from rockgate.protocol.frames import Spares

CHUNK_SIZE = 64 << 10
"""Enough for hundreds of small requests; what a large one has more is received in its place."""


class Receiving:
    """The buffers of one door."""

    __slots__ = ("chunk", "spares")

    def __init__(self) -> None:
        self.chunk = memoryview(bytearray(CHUNK_SIZE))
        self.spares = Spares()
