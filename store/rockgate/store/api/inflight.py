"""Messages in flight: acquired by members of a group for a time, and acknowledged one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rockgate.store.inflight.changes import (
    INFLIGHT_TOPIC,
    SHARE_TOPIC,
    Acquire,
    Drop,
    End,
    EndReason,
    Extend,
    Forget,
    Reset,
    Shift,
    encode,
    runs_of,
)
from rockgate.store.inflight.share_window import SHARE_IN_FLIGHT_MAX, Run, ShareWindow
from rockgate.store.inflight.window import InFlight, Window

__all__ = [
    "INFLIGHT_TOPIC",
    "SHARE_IN_FLIGHT_MAX",
    "SHARE_TOPIC",
    "Acquire",
    "Drop",
    "End",
    "EndReason",
    "Extend",
    "Forget",
    "InFlight",
    "MessagesInFlight",
    "Reset",
    "Run",
    "ShareState",
    "ShareWindow",
    "Shift",
    "Window",
    "encode",
    "runs_of",
]


class MessagesInFlight(Protocol):
    """A window for each group and queue with acquired messages."""

    count: int
    """Number of offsets in flight, of all windows."""
    clock_ms: int
    """By how much the clock was set, in all, as far as deadlines follow. In memory only."""

    def __len__(self) -> int:
        """Return the number of windows."""

    def find(self, group: str, topic_id: bytes, queue_id: int) -> Window | None:
        """Return the window of a group in a queue."""

    def of_group(self, group: str) -> list[Window]:
        """Return the windows of a group."""

    def walk(self) -> Iterator[Window | None]:
        """Yield all windows, and None for empty slots; the caller may pause after any."""

    @property
    def next_due_ms(self) -> int | None:
        """When the next window is due."""

    def due(self, now_ms: int, count_max: int) -> list[Window]:
        """Return windows with expired deadlines, each once; the rest is returned by later calls.

        They are due again at their next deadline that has not passed yet.
        """

    def look_at(self, window: Window, when_ms: int) -> None:
        """Make a window due once this time has passed, if it is not due before."""


class ShareState(Protocol):
    """A window for each share group and queue that it reads."""

    count: int
    """Number of offsets in flight, of all windows."""

    def __len__(self) -> int:
        """Return the number of windows."""

    def find(self, group: str, topic_id: bytes, queue_id: int) -> ShareWindow | None:
        """Return the window of a group in a queue."""

    def of_group(self, group: str) -> list[ShareWindow]:
        """Return the windows of a group."""

    def has_group(self, group: str) -> bool:
        """Return whether a group has windows."""

    def groups(self) -> list[str]:
        """Return the groups that have windows."""

    def walk(self) -> Iterator[ShareWindow | None]:
        """Yield all windows, and None for empty slots; the caller may pause after any."""

    @property
    def next_due_ms(self) -> int | None:
        """When the next window is due."""

    def due(self, now_ms: int, count_max: int) -> list[ShareWindow]:
        """Return windows with expired deadlines, each once; the rest is returned by later calls."""

    def look_at(self, window: ShareWindow, when_ms: int) -> None:
        """Make a window due once this time has passed, if it is not due before."""
