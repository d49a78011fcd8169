"""UpdateFeatures: v0-2.

Behaviour
- ApiVersions names no features, so there is none whose level could be changed: the first that is
  named is INVALID_UPDATE_VERSION for the whole request, as one bad feature is in Kafka.
- A request that names none is done.

Versions
- v1: `validate_only` and kinds of updates.  v2: no results for single features.
"""

from __future__ import annotations

from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.logs import shown
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpdateFeatures:
    """Refuses features that do not exist."""

    def handle(self, request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
        """Change nothing, and say why."""
        for update in request.feature_updates:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=f"this server has no feature {shown(update.feature)}, so that it"
                f" cannot have level {update.max_version_level}",
            )
        return UpdateFeaturesResponse(error_message=None)

    def refuse(self, request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
        """One error for all of it."""
        return UpdateFeaturesResponse(error_code=code, error_message=code.meaning)
