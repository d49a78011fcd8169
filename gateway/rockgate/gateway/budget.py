"""Memory that requests of all connections may hold together.

Above `bytes_max` no connection starts to read another request; those in the middle of one read on,
because a request that is not whole can never be answered and its memory would never come back. At
twice that, reading on is no way out any more and the connection that holds most must go.
"""

from collections.abc import Callable


class Budget:
    """Counts bytes and keeps those who wait for room. Owned by the door."""

    __slots__ = ("_on_overdrawn", "_waiting", "bytes_max", "used")

    def __init__(self, bytes_max: int, on_overdrawn: Callable[[], None]) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        self._waiting: dict[Callable[[], None], None] = {}
        self._on_overdrawn = on_overdrawn

    @property
    def is_spent(self) -> bool:
        """Whether another request must wait before it is read."""
        return self.used > self.bytes_max

    def take(self, size: int) -> None:
        """Count bytes that were read."""
        self.used += size
        if self.used > 2 * self.bytes_max:
            self._on_overdrawn()

    def give(self, size: int) -> None:
        """Count bytes that are free again, and wake those who waited once there is real room."""
        self.used -= size
        assert self.used >= 0, f"{-self.used} bytes were given that nobody took"
        if self._waiting and self.used <= self.bytes_max * 3 // 4:
            waiting, self._waiting = self._waiting, {}
            for resume in waiting:
                resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` when there is room again; asking twice is asking once."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        """Do not call `resume` any more."""
        self._waiting.pop(resume, None)
