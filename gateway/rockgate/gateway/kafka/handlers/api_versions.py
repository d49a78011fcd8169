"""ApiVersions: v0-4.

Behaviour
- Lists what the table of handlers advertises; APIs without a handler are left out.
- A version above those served is answered in v0 with UNSUPPORTED_VERSION and this API's own range,
  so that any client can retry (KIP-511); the connection stays open.
- From v3 a client names its software. A name or version that is not of letters, digits, dots and
  dashes gets INVALID_REQUEST, as in Kafka.

Versions
- v1: throttle time.  v3: flexible, software name and version.  v4: features may start at level 0;
  before, those that do are left out of the supported ones, as in Kafka.
- The features are those of Kafka 4.3, at the levels that a new cluster has. Features of groups and
  transactions are there with the APIs that they stand for. metadata.version says which release the
  APIs and configs are of, and kraft.version that there may be a quorum of controllers; there are
  none, so neither changes anything.

Departs from Kafka
- Levels are fixed, so their epoch is always 0.
"""

import re
from collections.abc import Container, Mapping
from typing import Final, NamedTuple

from rockgate.gateway.kafka.request.handler import Answer, Call
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from rockgate.protocol.kafka.schema import encode
from rockgate.protocol.kafka.versions import Versions

SOFTWARE_SINCE = 3
ZERO_LEVELS_SINCE = 4


class Feature(NamedTuple):
    """A feature of Kafka 4.3, whose level is the highest."""

    low: int
    high: int
    needs: ApiKey = ApiKey.API_VERSIONS
    """The API without which it means nothing."""
    is_finalized: bool = True
    """Whether it has a level, besides those that are supported."""


FEATURES: Final[Mapping[str, Feature]] = {
    "eligible.leader.replicas.version": Feature(0, 1),
    "group.version": Feature(0, 1, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    "kraft.version": Feature(0, 1, is_finalized=False),
    "metadata.version": Feature(7, 30),
    "share.version": Feature(0, 1, ApiKey.SHARE_GROUP_HEARTBEAT),
    "streams.version": Feature(0, 1, ApiKey.STREAMS_GROUP_HEARTBEAT),
    "transaction.version": Feature(0, 2, ApiKey.INIT_PRODUCER_ID),
}
"""The features of a new cluster of Kafka 4.3.1, by ApiVersions of its broker."""


def features_of(advertised: Container[ApiKey]) -> dict[str, Feature]:
    """The features of a server with these APIs."""
    return {name: each for name, each in FEATURES.items() if each.needs in advertised}


_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersions:
    """Lists what is advertised, and records the client software."""

    def __init__(self, advertised: Mapping[ApiKey, Versions]) -> None:
        self._api_keys = _ranges(advertised)
        self._features = features_of(advertised)
        self._finalized = [
            FinalizedFeatureKey(name=name, max_version_level=each.high, min_version_level=each.high)
            for name, each in self._features.items()
            if each.is_finalized
        ]

    def handle(self, request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
        """Everything that is advertised."""
        if call.version >= SOFTWARE_SINCE:
            names = (request.client_software_name, request.client_software_version)
            if not all(map(_SOFTWARE.fullmatch, names)):
                return self.refuse(request, ErrorCode.INVALID_REQUEST)
            call.peer.software, call.peer.software_version = names
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=self._api_keys,
            supported_features=_supported(self._features, call.version),
            finalized_features_epoch=0,
            finalized_features=self._finalized,
        )

    def refuse(self, request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
        """An error and no APIs."""
        return ApiVersionsResponse(error_code=code, api_keys=[])


def _supported(features: Mapping[str, Feature], version: int) -> list[SupportedFeatureKey]:
    # Before v4 clients take a level 0 for an error.
    low = 0 if version >= ZERO_LEVELS_SINCE else 1
    return [
        SupportedFeatureKey(name=name, min_version=each.low, max_version=each.high)
        for name, each in features.items()
        if each.low >= low
    ]


def unsupported() -> Answer:
    """The response to an unsupported version, in the version that every client can decode."""
    served = {ApiKey.API_VERSIONS: APIS[ApiKey.API_VERSIONS].advertised}
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ranges(served)
    )
    return [encode(response, 0)]


def _ranges(advertised: Mapping[ApiKey, Versions]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
        for key, versions in advertised.items()
    ]
