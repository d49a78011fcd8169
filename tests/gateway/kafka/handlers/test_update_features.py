"""UpdateFeatures as Kafka 4.3.1 answered the same requests: codes, levels and reasons."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.features.table import FEATURES
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions
from rockgate.gateway.kafka.handlers.update_features import UpdateFeatures
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rockgate.protocol.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.kafka.versions import Versions
from rockgate.store.errors import StoreFull

UP, SAFE, UNSAFE = 1, 2, 3
WITHOUT_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)
NEWER = "Can't downgrade to a newer version."
Update = tuple[str, int, int]


class Features(Admin):
    """A world whose features can be updated."""

    def open(self) -> None:
        super().open()
        self.levels = self.folds.features
        self.handler = UpdateFeatures(
            features=FEATURES, levels=self.levels, node_id=NODE_ID, durability=self.durability
        )

    async def update(
        self, *updates: Update, version: int = 1, is_dry: bool = False
    ) -> UpdateFeaturesResponse:
        request = UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type_)
                for name, level, type_ in updates
            ],
            validate_only=is_dry,
        )
        response: UpdateFeaturesResponse = await seen(
            self.handler.handle(reread(request, version), call(version)), version
        )
        return response

    async def finalized(self) -> tuple[int, dict[str, int]]:
        served = {key: Versions(0, 1) for key in ApiKey}
        answer = ApiVersions(served, self.levels).handle(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), call(4)
        )
        response: ApiVersionsResponse = await seen(answer, 4)
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        return response.finalized_features_epoch, levels


def reread(request: UpdateFeaturesRequest, version: int) -> UpdateFeaturesRequest:
    """The request as the server reads it in a version."""
    return decode(UpdateFeaturesRequest, version, encode(request, version))


@pytest.mark.row("FEAT-1")
@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (("transaction.version", 1, UP), WITHOUT_TYPE),
        (("nosuch", 1, UP), "Local controller 7 does not support this feature."),
        (("", 1, UP), "Local controller 7 does not support this feature."),
        (("transaction.version", 9, UP), "Local controller 7 only supports versions 0-2."),
        (("transaction.version", -1, UP), "A feature version cannot be less than 0."),
        (("metadata.version", 31, UP), "Local controller 7 only supports versions 7-30."),
        (("metadata.version", 6, UNSAFE), "Local controller 7 only supports versions 7-30."),
        (("metadata.version", 0, UNSAFE), "Local controller 7 only supports versions 7-30."),
        (("metadata.version", 29, UP), WITHOUT_TYPE),
    ],
)
async def test_what_cannot_be_is_refused_for_the_reason_that_kafka_gives(
    version: int, update: Update, reason: str
) -> None:
    world = Features()
    response = await world.update(("transaction.version", 2, UP), update, version=version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (response.error_message or "").endswith(reason)
    assert response.results == []


@pytest.mark.parametrize("type_", [0, 7])
async def test_an_unknown_type_of_update_is_refused(type_: int) -> None:
    response = await Features().update(("transaction.version", 1, type_))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (response.error_message or "").endswith("does not support the given upgrade type.")


async def test_before_v1_nothing_is_lowered_whatever_is_allowed() -> None:
    response = await Features().update(("transaction.version", 1, SAFE), version=0)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (SAFE, "Refusing to perform the requested downgrade because it might delete metadata"),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
async def test_the_metadata_version_is_never_lowered(type_: int, reason: str) -> None:
    world = Features()
    response = await world.update(("metadata.version", 29, type_))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    text = f"Unsupported metadata.version downgrade from 30 to 29. {reason}"
    assert text in (response.error_message or "")
    assert (await world.update(("metadata.version", 30, type_))).error_code == 0


@pytest.mark.row("FEAT-1")
@pytest.mark.parametrize(
    "name", ["group.version", "share.version", "streams.version", "transaction.version"]
)
@pytest.mark.parametrize("type_", [SAFE, UNSAFE])
async def test_a_level_goes_down_to_0_and_up_again(name: str, type_: int) -> None:
    world, high = Features(), FEATURES[name].high
    assert (await world.update((name, 0, type_), is_dry=True)).error_code == 0
    assert await world.finalized() == (0, {**INITIAL})
    assert (await world.update((name, 0, type_))).error_code == 0
    epoch, levels = await world.finalized()
    assert (epoch, name in levels) == (1, False)
    refused = await world.update((name, high, type_))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (refused.error_message or "").endswith(NEWER)
    assert (await world.update((name, 0, type_))).error_code == 0
    assert (await world.finalized())[0] == 1, "what is so already is no change"
    assert (await world.update((name, high, UP))).error_code == 0
    assert await world.finalized() == (2, {**INITIAL})


INITIAL = {name: each.initial for name, each in FEATURES.items() if each.initial}


async def test_kraft_version_goes_up_and_never_down() -> None:
    world = Features()
    assert (await world.update(("kraft.version", 1, UP))).error_code == 0
    assert (await world.finalized())[1]["kraft.version"] == 1
    refused = await world.update(("kraft.version", 0, SAFE))
    text = "feature kraft.version. Can't downgrade the version of this feature."
    assert (refused.error_message or "").endswith(text)


@pytest.mark.row("FEAT-1")
@pytest.mark.parametrize("version", [1, 2])
async def test_one_that_is_refused_changes_none(version: int) -> None:
    world = Features()
    response = await world.update(
        ("share.version", 0, SAFE), ("nosuch", 1, UP), ("group.version", 0, SAFE), version=version
    )
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert await world.finalized() == (0, {**INITIAL})


@pytest.mark.parametrize("version", range(3))
async def test_what_is_so_already_is_done(version: int) -> None:
    world = Features()
    response = await world.update(("transaction.version", 2, UP), version=version)
    assert (response.error_code, response.error_message) == (0, None)
    found = [(each.feature, each.error_code) for each in response.results]
    assert found == ([("transaction.version", 0)] if version < 2 else [])
    assert (await world.update(version=version)).error_code == 0


@pytest.mark.parametrize("is_killed", [False, True])
async def test_levels_outlast_a_restart(*, is_killed: bool) -> None:
    world = Features()
    await world.update(("share.version", 0, SAFE), ("transaction.version", 1, SAFE))
    world.kill() if is_killed else world.reopen()
    epoch, levels = await world.finalized()
    assert epoch == 1
    assert "share.version" not in levels and levels["transaction.version"] == 1


async def test_what_cannot_be_written_is_not_changed() -> None:
    world = Features()
    world.store.appender.state_refusal = StoreFull("no room")
    response = await world.update(("share.version", 0, SAFE))
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert await world.finalized() == (0, {**INITIAL})
