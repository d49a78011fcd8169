"""Detects that the peer has closed a connection, without reading from it."""

from __future__ import annotations

import select
from typing import Protocol

_GONE = getattr(select, "POLLRDHUP", 0)
"""Signals that the peer has shut down its side;

on systems without it, only a full close is noticed.
"""


class Socket(Protocol):
    """The part of a socket that is used."""

    def fileno(self) -> int:
        """The file descriptor; negative once the socket is closed."""


def has_hung_up(socket: Socket | None) -> bool:
    """Whether the peer will send nothing after what it has already sent."""
    if socket is None or socket.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(socket.fileno(), _GONE)
    return any(events & (_GONE | select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
