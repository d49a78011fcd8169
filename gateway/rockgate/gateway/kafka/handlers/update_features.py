"""UpdateFeatures: v0-2.

Behaviour
- The features that ApiVersions names are switched on, and stay at their level: setting one to
  its current level succeeds. Any other level, and any other feature, is INVALID_UPDATE_VERSION for
  the whole request, as one bad feature is in Kafka.

Versions
- v1: `validate_only` and kinds of updates.  v2: no results for single features.

Departs from Kafka
- Feature levels cannot be changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from rockgate.gateway.kafka.handlers.api_versions import Feature
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpdateFeatures:
    """Leaves features as they are."""

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._features = features

    def handle(self, request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
        """Refuse any change; setting a feature to its own level succeeds."""
        for update in request.feature_updates:
            feature = self._features.get(update.feature)
            if feature is None or feature.high != update.max_version_level:
                has = f"is fixed at level {feature.high}" if feature else "does not exist"
                return UpdateFeaturesResponse(
                    error_code=ErrorCode.INVALID_UPDATE_VERSION,
                    error_message=f"Feature {quoted(update.feature)} {has} and cannot be set to "
                    f"{update.max_version_level}.",
                )
        return UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(feature=update.feature, error_message=None)
                for update in request.feature_updates
            ],
        )

    def refuse(self, request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
        """An error for the whole request."""
        return UpdateFeaturesResponse(error_code=code, error_message=code.meaning)
