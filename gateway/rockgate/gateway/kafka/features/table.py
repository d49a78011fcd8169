"""The features of Kafka 4.3, the levels that a new cluster has, and the APIs that they switch."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final, NamedTuple, Protocol

from rockgate.protocol.kafka.keys import ApiKey

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
_SHARE_APIS: Final = frozenset(
    {
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)
_CONSUMER_APIS: Final = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE})
_STREAMS_APIS: Final = frozenset({ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE})


class Feature(NamedTuple):
    """A feature, and the level that it has until it is changed."""

    low: int
    high: int
    initial: int
    needs: ApiKey = ApiKey.API_VERSIONS
    """The API without which it means nothing."""
    switches: frozenset[ApiKey] = frozenset()
    """The APIs that level 0 switches off."""


FEATURES: Final[Mapping[str, Feature]] = {
    "eligible.leader.replicas.version": Feature(0, 1, 1),
    "group.version": Feature(0, 1, 1, ApiKey.CONSUMER_GROUP_HEARTBEAT, _CONSUMER_APIS),
    KRAFT_VERSION: Feature(0, 1, 0),
    METADATA_VERSION: Feature(7, 30, 30),
    "share.version": Feature(0, 1, 1, ApiKey.SHARE_GROUP_HEARTBEAT, _SHARE_APIS),
    "streams.version": Feature(0, 1, 1, ApiKey.STREAMS_GROUP_HEARTBEAT, _STREAMS_APIS),
    "transaction.version": Feature(0, 2, 2, ApiKey.INIT_PRODUCER_ID),
}
"""The features of a new cluster of Kafka 4.3.1, by ApiVersions of its broker."""

SWITCHES: Final[Mapping[ApiKey, str]] = {
    key: name for name, each in FEATURES.items() for key in each.switches
}
"""The features that switch APIs off at level 0, by API."""


class Levels(Protocol):
    """The levels of features."""

    @property
    def epoch(self) -> int:
        """A number that grows with each change; clients keep the newest levels they have seen."""

    def level(self, name: str) -> int:
        """The level of a feature."""


class InitialLevels:
    """The levels of a new cluster, where none can be changed."""

    epoch = 0

    def level(self, name: str) -> int:
        """The level of a feature."""
        return FEATURES[name].initial


def features_of(advertised: Container[ApiKey]) -> dict[str, Feature]:
    """The features of a server with these APIs."""
    return {name: each for name, each in FEATURES.items() if each.needs in advertised}
