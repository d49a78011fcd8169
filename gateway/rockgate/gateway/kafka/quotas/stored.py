"""The fold of client quotas, and which of them applies to a client (docs/reference/quotas.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rockgate.gateway.kafka.quotas.entities import CLIENT_ID, IP, USER, Entity
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_quotas"
ENTITIES_MAX: Final = 100_000

Sharer = tuple[str, str]
"""The user and the client id that share a rate; one of them may be empty."""


class StoredQuotas:
    """The quotas that were set, by entity. One without any quota is not stored."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[Entity, dict[str, float]] = KeyedFold(
            journal, name="quotas", topic=TOPIC, key=Entity, value=dict[str, float]
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

    def of(self, entity: Entity) -> Mapping[str, float]:
        """The quotas set for an entity itself."""
        return self._fold.find(entity) or {}

    def items(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """All of them; valid until the next change."""
        return iter(self._fold.items())

    def put(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Replace the quotas of some entities."""
        if len(self._fold) + len(quotas) > ENTITIES_MAX:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"The maximum of {ENTITIES_MAX:,} entities with quotas has been reached.",
            )
        self._fold.put({entity: dict(found) or None for entity, found in quotas.items()})

    # Lookup

    def limit(self, quota: str, user: str, client_id: str) -> tuple[float, Sharer] | None:
        """The quota that applies to a client, and the entity that shares it; None without one."""
        for entity, sharer in _candidates(user, client_id):
            value = self.of(entity).get(quota)
            if value is not None:
                return value, sharer
        return None

    def address_limit(self, quota: str, address: str) -> float | None:
        """The quota that applies to an address."""
        for name in (address, None):
            value = self.of(((IP, name),)).get(quota)
            if value is not None:
                return value
        return None


def _candidates(user: str, client_id: str) -> Iterator[tuple[Entity, Sharer]]:
    """The entities that a client matches, the most specific first."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name)), (user, client_id)
        yield ((USER, user_name),), (user, "")
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),), ("", client_id)
