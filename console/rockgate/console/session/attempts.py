"""Failed logins by the address they came from: after some, each further one has to wait longer."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

FREE: Final = 5
"""Failed logins of one address before it waits."""
WAIT_S_MAX: Final = 300
ADDRESSES_MAX: Final = 1_024


@dataclass(slots=True)
class _Failed:
    count: int = 0
    until: float = 0.0


class Attempts:
    """Counts failures; a success or an hour without one forgets those of an address."""

    FORGOTTEN_S: Final = 3_600.0

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._failed: OrderedDict[str, _Failed] = OrderedDict()

    def wait_s(self, address: str) -> int:
        """How many seconds an address has to wait for its next login; 0 if it may try."""
        found = self._failed.get(address)
        return 0 if found is None else max(0, ceil(found.until - self._seconds()))

    def fail(self, address: str) -> None:
        """A login from an address failed."""
        now = self._seconds()
        found = self._failed.pop(address, None) or _Failed()
        if now - found.until > self.FORGOTTEN_S:
            found = _Failed()
        found.count += 1
        over = found.count - FREE
        found.until = now + (min(2**over, WAIT_S_MAX) if over >= 0 else 0)
        self._failed[address] = found
        if len(self._failed) > ADDRESSES_MAX:
            self._failed.popitem(last=False)

    def succeed(self, address: str) -> None:
        """A login from an address succeeded."""
        self._failed.pop(address, None)
