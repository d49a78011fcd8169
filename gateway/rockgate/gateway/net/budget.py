"""The memory budget of requests over all connections.

Above `bytes_max` only connections that hold less than their allowance are read from: a small
request always gets through. Complete requests are answered, which frees their bytes. Incomplete
ones are freed only if their clients continue, so they may take three quarters: beyond that the
largest incomplete request is aborted, and the others can be read to their ends. At twice
`bytes_max` the only way out is to close the connection that holds most.
"""

from collections.abc import Callable
from typing import Final

ALLOWANCE: Final = 64 << 10
"""Bytes that each connection may hold, however much others hold: the size of one read."""


LENGTH_SIZE: Final = 4


class Budget:
    """Counts request bytes, and the connections that wait for budget. Owned by the listener."""

    __slots__ = (
        "_on_overdrawn",
        "_on_overfull",
        "_waiting",
        "allowance",
        "bytes_max",
        "incomplete",
        "incomplete_max",
        "used",
    )

    def __init__(
        self,
        bytes_max: int,
        on_overdrawn: Callable[[], None],
        on_overfull: Callable[[], None] | None = None,
        *,
        allowance: int = ALLOWANCE,
        frame_bytes_max: int = 0,
    ) -> None:
        """Set what happens when the budget is exceeded.

        `on_overfull` aborts the largest incomplete request, `on_overdrawn` closes the connection
        that holds most. A single request of `frame_bytes_max` never exceeds the budget.
        """
        self.bytes_max = bytes_max
        self.incomplete_max = max(bytes_max * 3 // 4, frame_bytes_max + LENGTH_SIZE)
        self.allowance = allowance
        self.used = 0
        self.incomplete = 0
        """The part of them that belongs to incomplete requests."""
        self._waiting: dict[Callable[[], None], None] = {}
        self._on_overdrawn = on_overdrawn
        self._on_overfull = on_overfull

    @property
    def is_spent(self) -> bool:
        """Whether connections above their allowance must wait before they are read from."""
        return self.used > self.bytes_max

    def take(self, size: int) -> None:
        """Count bytes received of an incomplete request."""
        self.used += size
        self.incomplete += size
        if self.incomplete > self.incomplete_max and self._on_overfull is not None:
            self._on_overfull()
        if self.used > 2 * self.bytes_max:
            self._on_overdrawn()

    def give(self, size: int) -> None:
        """Release bytes, and wake the waiters once enough of the budget is free."""
        self.used -= size
        assert self.used >= 0, f"{-self.used} bytes were given that nobody took"
        # Only incomplete requests are left, so nothing more would be released.
        if self._waiting and self.used <= max(self.bytes_max * 3 // 4, self.incomplete):
            waiting, self._waiting = self._waiting, {}
            for resume in waiting:
                resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` when budget is available again; registering twice has no effect."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        """Cancel a registered `resume`."""
        self._waiting.pop(resume, None)
