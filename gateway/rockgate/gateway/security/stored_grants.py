"""The fold of grants: Kafka's ACL bindings (docs/internals/security.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rockgate.gateway.security.errors import TooManyRecords
from rockgate.gateway.security.grant_index import GrantIndex
from rockgate.gateway.security.grants import Grant
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_grants"
GRANTS_MAX: Final = 100_000


class StoredGrants:
    """All grants, and the index that answers questions about them."""

    def __init__(self, journal: Journal) -> None:
        self.index = GrantIndex()
        self._fold: KeyedFold[Grant, bool] = KeyedFold(
            journal, name="grants", topic=TOPIC, key=Grant, value=bool, follower=self.index
        )

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    @property
    def on_changed(self) -> list[Callable[[], None]]:
        """Called after something has changed."""
        return self._fold.on_changed

    def __len__(self) -> int:
        return len(self._fold)

    def __contains__(self, grant: Grant) -> bool:
        return self._fold.has(grant)

    def __iter__(self) -> Iterator[Grant]:
        """All grants; valid until the next change."""
        return (grant for grant, _ in self._fold.items())

    def add(self, grants: Iterable[Grant]) -> None:
        """Add grants, all or none; those that exist stay."""
        new = {grant: True for grant in grants if not self._fold.has(grant)}
        if len(self._fold) + len(new) > GRANTS_MAX:
            raise TooManyRecords(GRANTS_MAX, "grants")
        self._fold.put(new)

    def remove(self, grants: Iterable[Grant]) -> None:
        """Remove grants, all or none; those that do not exist are left out."""
        self._fold.put({grant: None for grant in grants if self._fold.has(grant)})
