"""Topics that groups are forbidden to read (353): a fold, so that it persists.

docs/internals/state.md has the shape of its records: topic and group as RocketMQ writes them, and
RocketMQ's bits of what is forbidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_forbidden_reads"
READ_BIT: Final = 4
COUNT_MAX: Final = 1_000
"""All of them are in the answer to 201."""


class ForbiddenReads:
    """What is forbidden, by topic and group."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[tuple[str, str], int] = KeyedFold(
            journal, name="forbidden reads", topic=TOPIC, key=tuple[str, str], value=int
        )
        self.has: Callable[[tuple[str, str]], bool] = self._fold.has
        """Whether a topic must not be read by a group; every pull asks."""

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    def set(self, topic: str, group: str, *, is_forbidden: bool) -> None:
        """Forbid or allow it; it is in the log when this returns."""
        if is_forbidden == self.has((topic, group)):
            return
        if is_forbidden and len(self._fold) >= COUNT_MAX:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"{COUNT_MAX:,} reads are forbidden; that is the maximum.",
            )
        self._fold.put({(topic, group): READ_BIT if is_forbidden else None})

    def forget(self, group: str) -> None:
        """Allow a group that is deleted everything again."""
        found = [key for key, _ in self._fold.items() if key[1] == group]
        if found:
            self._fold.put(dict.fromkeys(found))

    def by_group(self) -> dict[str, dict[str, int]]:
        """Return all of them, as RocketMQ lists them."""
        table: dict[str, dict[str, int]] = {}
        for (topic, group), bits in self._fold.items():
            table.setdefault(group, {})[topic] = bits
        return table
