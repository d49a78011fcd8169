"""Detects that the peer has closed a connection, without reading from it."""

from __future__ import annotations

import select
from typing import Protocol

_GONE = getattr(select, "POLLRDHUP", 0)
"""Nothing more comes. Where the system cannot say so, only that all is over is noticed."""


class Socket(Protocol):
    """A socket, as far as it can be asked."""

    def fileno(self) -> int:
        """Its descriptor; below zero if it is closed."""


def has_hung_up(socket: Socket | None) -> bool:
    """Whether it will send nothing after what it has sent already."""
    if socket is None or socket.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(socket.fileno(), _GONE)
    return any(events & (_GONE | select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
