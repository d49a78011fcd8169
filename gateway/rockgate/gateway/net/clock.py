"""The gateway's clock: the event loop's, or a fake one in tests."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """The timer interface of an event loop."""

    def time(self) -> float:
        """Monotonic time in seconds."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        """Call a function once, after `delay` seconds."""
        ...
