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
- The features are those of Kafka 4.3, at the levels that a new cluster has, or that UpdateFeatures
  gave them; one at level 0 is not among the finalized. Features of groups and transactions are
  there with the APIs that they stand for. metadata.version says which release the APIs and configs
  are of, and kraft.version that there may be a quorum of controllers; there are none, so neither
  changes anything.

Departs from Kafka
- The epoch of the levels counts their changes; Kafka's is an offset of its metadata.
"""

import re
from collections.abc import Mapping

from rockgate.gateway.kafka.features.table import Feature, InitialLevels, Levels, features_of
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


_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersions:
    """Lists what is advertised, and records the client software."""

    def __init__(self, advertised: Mapping[ApiKey, Versions], levels: Levels | None = None) -> None:
        """Without `levels`, they are those of a new cluster."""
        self._api_keys = _ranges(advertised)
        self._features = features_of(advertised)
        self._levels = levels or InitialLevels()

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
            finalized_features_epoch=self._levels.epoch,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name in self._features
                if (level := self._levels.level(name))
            ],
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
