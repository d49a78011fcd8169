"""Open connections by the address they come from, and by their user, over all listeners."""

import logging
from typing import Final

from rockgate.gateway.runtime.quoting import quoted

UNLIMITED: Final = 2**31 - 1
log = logging.getLogger(__name__)


class ConnectionCounts:
    """Counts the connections of each address and of each user."""

    def __init__(self, per_address_max: int, per_user_max: int = UNLIMITED) -> None:
        self._addresses = _Counts("host", per_address_max)
        self._users = _Counts("user", per_user_max)

    def allow_per_address(self, count_max: int) -> None:
        """Change the limit of connections per address; none is closed."""
        self._addresses.count_max = count_max

    def take(self, host: str) -> bool:
        """Count a connection; False, without counting it, if the address has enough."""
        return self._addresses.take(host)

    def give(self, host: str) -> None:
        """A counted connection is closed."""
        self._addresses.give(host)

    def enter(self, user: str) -> bool:
        """Count a connection that has authenticated; False if the user has enough."""
        return self._users.take(user)

    def leave(self, user: str) -> None:
        """A connection that was counted for a user is closed, or has another one."""
        self._users.give(user)


class _Counts:
    """Counts by name; a name without any takes no memory."""

    def __init__(self, what: str, count_max: int) -> None:
        self._what = what
        self.count_max = count_max
        self._counts: dict[str, int] = {}
        # Names that were refused, so that each is logged once until it has room again.
        self._refused: set[str] = set()

    def take(self, name: str) -> bool:
        count = self._counts.get(name, 0)
        if count >= self.count_max:
            if name not in self._refused:
                self._refused.add(name)
                log.warning(
                    "connection limit reached, rejecting connections %s=%s max=%d",
                    self._what,
                    quoted(name),
                    self.count_max,
                )
            return False
        self._counts[name] = count + 1
        return True

    def give(self, name: str) -> None:
        left = self._counts[name] - 1
        self._refused.discard(name)
        if left:
            self._counts[name] = left
        else:
            del self._counts[name]
