"""ApiVersions: v0-4.

Behaviour
- Lists what the table of handlers advertises; APIs without a handler are left out.
- A version above those served is answered in v0 with UNSUPPORTED_VERSION and this API's own range,
  so that any client can retry (KIP-511); the connection stays open.
- From v3 a client names its software. A name or version that is not of letters, digits, dots and
  dashes gets INVALID_REQUEST, as in Kafka.

Versions
- v1: throttle time.  v3: flexible, software name and version.  v4: features may start at level 0.
- Names the features that mean something here, all of them switched on: transaction.version 2.

Departs from Kafka
- Features of the cluster itself (metadata.version, kraft.version) are not listed: there are none.
"""

import re
from collections.abc import Mapping

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
FEATURES = {"transaction.version": 2}
"""Features that are optional in Kafka and always enabled here, with their levels."""
_FINALIZED = [
    FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
    for name, level in FEATURES.items()
]
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersions:
    """Lists what is advertised, and records the client software."""

    def __init__(self, advertised: Mapping[ApiKey, Versions]) -> None:
        self._api_keys = _ranges(advertised)

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
            supported_features=_supported(call.version),
            finalized_features_epoch=0,
            finalized_features=_FINALIZED,
        )

    def refuse(self, request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
        """An error and no APIs."""
        return ApiVersionsResponse(error_code=code, api_keys=[])


def _supported(version: int) -> list[SupportedFeatureKey]:
    # Before v4 a level 0 was taken for an error, so features that have one begin at 1.
    low = 0 if version >= ZERO_LEVELS_SINCE else 1
    return [
        SupportedFeatureKey(name=name, min_version=low, max_version=level)
        for name, level in FEATURES.items()
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
