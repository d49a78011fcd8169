"""Logs a repeated failure once, and again when its reason changes."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

from rockgate.store.errors import DiskFailed

REMEMBERED_MAX: Final = 1_000


class DeferralLog:
    """One kind of work that is currently deferred, and retried."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        """`what` starts the log line, as in "deliveries deferred"."""
        self._log = log
        self._what = what
        self._reason: type[Exception] | None = None

    def report(self, error: Exception) -> None:
        """Log the reason, unless it is the same as the last time.

        A failed disk is not logged: that happened once, where it failed.
        """
        # By class, because the text may contain a changing place or number.
        if type(error) is self._reason:
            return
        self._reason = type(error)
        if not isinstance(error, DiskFailed):
            self._log.warning("%s deferred reason=%s", self._what, error)

    def end(self) -> None:
        """Log that the work has resumed."""
        if self._reason is not None:
            self._reason = None
            self._log.info("%s resumed", self._what)


class Remembered:
    """A bounded set of reported things: the oldest are evicted first."""

    def __init__(self, count_max: int = REMEMBERED_MAX) -> None:
        self._count_max = count_max
        self._things: dict[Hashable, None] = {}

    def is_new(self, thing: Hashable) -> bool:
        """Say whether a thing is new, and add it."""
        if thing in self._things:
            return False
        if len(self._things) >= self._count_max:
            del self._things[next(iter(self._things))]
        self._things[thing] = None
        return True
