"""The fold of configs of resources without another record: groups (docs/internals/state.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, Refusals
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.folds import Fold, Journal, KeyedFold
from rockgate.store.errors import StoreError

TOPIC: Final = b"rmq_sys_rockgate_configs"
RESOURCES_MAX: Final = 100_000

Key = tuple[int, str]


class ResourceConfigs:
    """The configs set, by the type and name of a resource. One without any is not saved."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[Key, dict[str, str]] = KeyedFold(
            journal, name="configs", topic=TOPIC, key=Key, value=dict[str, str]
        )

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    def of(self, type_: int, name: str) -> Mapping[str, str]:
        """The configs set for a resource."""
        return self._fold.find((type_, name)) or {}

    def names(self, type_: int) -> Iterator[str]:
        """The resources of a type with configs set; valid until the next change."""
        return (name for (kind, name), _ in self._fold.items() if kind == type_)

    def put(self, type_: int, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Replace all configs that are set for some resources of a type."""
        if len(self._fold) + len(configs) > RESOURCES_MAX:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"The maximum of {RESOURCES_MAX:,} resources with configs has been reached.",
            )
        try:
            self._fold.put({(type_, name): dict(found) or None for name, found in configs.items()})
        except StoreError as error:
            raise RequestError(*explain(error)) from error
        return NO_REFUSALS
