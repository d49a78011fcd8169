"""UpdateFeatures: v0-2.

Behaviour
- Features are raised and lowered between the levels that ApiVersions names, all of a request or
  none: the first that cannot be is INVALID_UPDATE_VERSION for the whole request, with Kafka's
  reason. A level is lowered only where the upgrade type says so (2 safe, 3 unsafe; both do the
  same), and raised only where it is 1. The current level is always accepted.
- Level 0 of group.version, share.version or streams.version switches the APIs of those groups off:
  they answer UNSUPPORTED_VERSION, and remain advertised, as in Kafka. transaction.version tells
  clients which protocol to use; eligible.leader.replicas.version and kraft.version mean nothing on
  one node. metadata.version cannot be lowered: no older form of the metadata is written.
- Levels are in the log and outlast a restart. `validate_only` changes nothing.

Versions
- v0: `allow_downgrade` is ignored, as in Kafka 4.3, so nothing is lowered.  v1: `validate_only` and
  kinds of updates.  v2: no results for single features.

Departs from Kafka
- Of several features that cannot be set, the first in the request is reported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, Protocol

from rockgate.gateway.kafka.features.table import Feature, Levels
from rockgate.gateway.kafka.features.updates import why_not
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

REQUEST_BYTES_MAX: Final = 16 << 10
"""There are few features, and a larger request would only repeat them."""


class ChangeableLevels(Levels, Protocol):
    """Levels that can be changed."""

    def put(self, levels: Mapping[str, int]) -> None:
        """Change levels, all of them or none; RequestError if they cannot be written."""


class UpdateFeatures:
    """Changes the levels of features."""

    def __init__(
        self,
        *,
        features: Mapping[str, Feature],
        levels: ChangeableLevels,
        node_id: int,
        durability: Durable,
    ) -> None:
        self._features = features
        self._levels = levels
        self._node_id = node_id
        self._durability = durability

    def handle(
        self, request: UpdateFeaturesRequest, call: Call
    ) -> UpdateFeaturesResponse | Awaitable[UpdateFeaturesResponse]:
        """Change all levels of the request, or none."""
        for update in request.feature_updates:
            if reason := self._why_not(update):
                return _refused(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    "The update failed for all features since the following feature had an error: "
                    + reason,
                )
        response = UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(feature=update.feature, error_message=None)
                for update in request.feature_updates
            ],
        )
        if request.validate_only:
            return response
        wanted = {each.feature: each.max_version_level for each in request.feature_updates}
        try:
            self._levels.put(wanted)
        except RequestError as error:
            return _refused(error.code, error.reason)
        return self._durability.after_changes(response)

    def _why_not(self, update: FeatureUpdateKey) -> str:
        name = update.feature
        feature = self._features.get(name)
        return why_not(
            name,
            feature,
            current=0 if feature is None else self._levels.level(name),
            wanted=update.max_version_level,
            type_=update.upgrade_type,
            node_id=self._node_id,
        )

    def refuse(self, request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
        """An error for the whole request."""
        return _refused(code, code.meaning)


def _refused(code: ErrorCode, reason: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=reason)
