"""Logs a repeated failure once, and again when its reason changes."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

from rockgate.store.errors import DiskFailed

REMEMBERED_MAX: Final = 1_000


class Complaint:
    """One kind of work that is refused for now, and tried again."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        """`what` begins the line: "deliveries" are put off, and later go on."""
        self._log = log
        self._what = what
        self._reason: type[Exception] | None = None

    def tell(self, error: Exception) -> None:
        """Say why, unless that was the reason the last time too.

        Of a disk that failed nothing is said: that was told where it happened, once.
        """
        # Not its text: that may name a place or a number that is another each time.
        if type(error) is self._reason:
            return
        self._reason = type(error)
        if not isinstance(error, DiskFailed):
            self._log.warning("%s deferred reason=%s", self._what, error)

    def end(self) -> None:
        """It is done again."""
        if self._reason is not None:
            self._reason = None
            self._log.info("%s resumed", self._what)


class Remembered:
    """Which things were told of, as far as there is room: the oldest are forgotten first."""

    def __init__(self, count_max: int = REMEMBERED_MAX) -> None:
        self._count_max = count_max
        self._things: dict[Hashable, None] = {}

    def is_new(self, thing: Hashable) -> bool:
        """Say whether a thing was not told of, and remember that it is now."""
        if thing in self._things:
            return False
        if len(self._things) >= self._count_max:
            del self._things[next(iter(self._things))]
        self._things[thing] = None
        return True
