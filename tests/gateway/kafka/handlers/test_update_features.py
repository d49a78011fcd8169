import pytest
from tests.gateway.kafka.admin import seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.update_features import UpdateFeatures
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("level", [0, 1, 99])
async def test_no_feature_has_a_level_to_change(version: int, level: int) -> None:
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=level)
    request = UpdateFeaturesRequest(feature_updates=[update])
    response = await seen(UpdateFeatures().handle(request, call(version)), version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "metadata.version" in response.error_message
    assert version == 2 or response.results == []


@pytest.mark.parametrize("version", range(3))
async def test_to_change_nothing_is_done(version: int) -> None:
    response = await seen(UpdateFeatures().handle(UpdateFeaturesRequest(), call(version)), version)
    assert (response.error_code, response.error_message) == (0, None)
