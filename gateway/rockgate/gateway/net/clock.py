"""The clock of the gateway: the event loop's, or a fake one in tests."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that was to happen later."""

    def cancel(self) -> None:
        """Let it not happen."""


class Clock(Protocol):
    """The part of an event loop that knows time."""

    def time(self) -> float:
        """Seconds since some moment."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        """Call once, after `delay` seconds."""
        ...
