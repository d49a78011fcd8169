import pytest
from tests.gateway.kafka.admin import seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.api_versions import Feature
from rockgate.gateway.kafka.handlers.update_features import UpdateFeatures
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FEATURES = {"transaction.version": Feature(0, 2)}


async def update(version: int, *levels: tuple[str, int]) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=level) for feature, level in levels
        ]
    )
    response: UpdateFeaturesResponse = await seen(
        UpdateFeatures(FEATURES).handle(request, call(version)), version
    )
    return response


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("feature", "level", "reason"),
    [
        ("metadata.version", 1, "does not exist and cannot be set"),
        ("metadata.version", 0, "does not exist and cannot be set"),
        ("transaction.version", 1, "is fixed at level 2"),
        ("transaction.version", 0, "is fixed at level 2"),
        ("transaction.version", 99, "is fixed at level 2"),
    ],
)
async def test_no_level_is_changed(version: int, feature: str, level: int, reason: str) -> None:
    response = await update(version, ("transaction.version", 2), (feature, level))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert feature in (response.error_message or "") and reason in (response.error_message or "")
    assert response.results == []


@pytest.mark.parametrize("version", range(3))
async def test_what_is_so_already_is_done(version: int) -> None:
    response = await update(version, ("transaction.version", 2))
    assert (response.error_code, response.error_message) == (0, None)
    told = [(each.feature, each.error_code) for each in response.results]
    assert told == ([("transaction.version", 0)] if version < 2 else [])
    assert (await update(version)).error_code == 0
