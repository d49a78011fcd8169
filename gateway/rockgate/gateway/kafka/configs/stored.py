"""The fold of configs of resources without another record: groups, client metrics subscriptions.

docs/internals/state.md describes it.
"""

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
CLIENT_METRICS: Final = 16
CLIENT_METRICS_MAX: Final = 50
"""Every client that asks for its subscription is compared with all of them."""
NAME_SIZE_MAX: Final = 1_000

Key = tuple[int, str]


class NamesByType:
    """The names of resources with configs, by type, in the order in which they came."""

    def __init__(self) -> None:
        self._names: dict[int, dict[str, None]] = {}

    def of(self, type_: int) -> Mapping[str, None]:
        """The names of one type."""
        return self._names.get(type_) or {}

    def was_set(self, key: Key, value: Mapping[str, str]) -> None:
        """A resource has configs."""
        self._names.setdefault(key[0], {})[key[1]] = None

    def was_removed(self, key: Key) -> None:
        """The last config of a resource was removed."""
        del self._names[key[0]][key[1]]

    def was_cleared(self) -> None:
        """None has."""
        self._names.clear()


class ResourceConfigs:
    """The configs set, by the type and name of a resource. One without any is not saved."""

    def __init__(self, journal: Journal) -> None:
        self._names = NamesByType()
        self._fold: KeyedFold[Key, dict[str, str]] = KeyedFold(
            journal,
            name="configs",
            topic=TOPIC,
            key=Key,
            value=dict[str, str],
            follower=self._names,
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
        return iter(self._names.of(type_))

    def put(self, type_: int, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Replace all configs that are set for some resources of a type."""
        self._check_room(type_, configs)
        try:
            self._fold.put({(type_, name): dict(found) or None for name, found in configs.items()})
        except StoreError as error:
            raise RequestError(*explain(error)) from error
        return NO_REFUSALS

    def _check_room(self, type_: int, configs: Mapping[str, Mapping[str, str]]) -> None:
        count, limit = len(self._fold) + len(configs), RESOURCES_MAX
        if type_ == CLIENT_METRICS:
            known = self._names.of(type_)
            count = len(known) + sum(name not in known for name in configs)
            limit = CLIENT_METRICS_MAX
        if count > limit:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"The maximum of {limit:,} resources with configs has been reached.",
            )
        if any(len(name) > NAME_SIZE_MAX for name in configs):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"A resource's name must not exceed {NAME_SIZE_MAX:,} characters.",
            )
