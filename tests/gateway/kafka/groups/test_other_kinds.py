"""Groups of further protocols in the registry of all groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import Commit, GroupState
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.consumer.surroundings import ClassicSide
from rockgate.gateway.kafka.groups.other_kinds import KINDS, OtherKinds
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.protocol.kafka.errors import ErrorCode


class Shared:
    """Groups of one kind, each with a member."""

    kind = GroupType.SHARE

    def __init__(self, *names: str) -> None:
        self.active = list(names)
        self.gone: list[str] = []
        self.calls: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.active

    def __len__(self) -> int:
        return len(self.active)

    def names(self) -> Iterable[str]:
        return self.active

    def attach(self, registry: ClassicSide) -> None:
        self.calls.append("attach")

    def load(self) -> None:
        self.calls.append("load")

    def finish(self) -> None:
        self.calls.append("finish")

    def view(self, name: str) -> GroupView:
        return GroupView(self.kind, GroupState.STABLE, "share", "", ())

    def member_count(self, name: str) -> int:
        return 1

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    ) -> ErrorCode:
        return ErrorCode.STALE_MEMBER_EPOCH

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        return ErrorCode.STALE_MEMBER_EPOCH

    def forget(self, names: Iterable[str]) -> None:
        self.gone += names


@pytest.fixture
def shared() -> Shared:
    return Shared("g")


@pytest.fixture
def world(shared: Shared) -> Coordinator:
    world = Coordinator()
    world.topic("orders", 2)
    world.others = (shared,)
    world.reopen()
    return world


def test_a_group_of_another_kind_is_seen_by_administrators(world: Coordinator) -> None:
    groups = world.groups
    view = groups.describe("g")
    assert view is not None and view.kind is GroupType.SHARE
    assert list(groups.names()) == ["g"] and groups.active_count == 1
    assert groups.member_count("g") == 1 and groups.is_active("g")
    assert groups.holder("g") is GroupType.SHARE
    assert groups.has_others("g", GroupType.ROCKETMQ)
    assert not groups.has_others("g", GroupType.SHARE)
    assert groups.delete(["g"]) == [ErrorCode.NON_EMPTY_GROUP]
    assert not groups.hold("g", GroupType.ROCKETMQ)


def test_its_coordinator_decides_about_offsets(world: Coordinator) -> None:
    assert world.groups.check_fetch("g", "m", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert world.commit(7, "g", version=9).topics[0].partitions[0].error_code == (
        ErrorCode.STALE_MEMBER_EPOCH
    )


def test_no_classic_member_joins_it(world: Coordinator) -> None:
    joined: Any = world.send_join("g")
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_without_members_it_stays_of_its_kind_until_a_classic_member_joins(
    world: Coordinator, shared: Shared
) -> None:
    shared.active.clear()
    world.groups.save("g", SavedGroup("share", 4, "share"))
    view = world.groups.describe("g")
    assert view is not None
    assert (view.kind, view.state) == (GroupType.SHARE, GroupState.EMPTY)
    assert world.groups.holder("g") is GroupType.SHARE and shared.gone == []
    await world.member("g")
    view = world.groups.describe("g")
    assert view is not None and view.kind is GroupType.CLASSIC
    assert world.groups.holder("g") is None and shared.gone == ["g"]


def test_what_is_kept_of_it_goes_when_it_is_deleted_or_expires(
    world: Coordinator, shared: Shared
) -> None:
    shared.active.clear()
    for name in ("one", "two"):
        world.groups.save(name, SavedGroup("share", 4, "share"))
    assert world.groups.delete(["one"]) == [ErrorCode.NONE]
    assert shared.gone == ["one"]
    while world.expiry.step():
        pass
    assert shared.gone == ["one", "two"] and world.groups.describe("two") is None


def test_all_kinds_start_and_stop_together(world: Coordinator, shared: Shared) -> None:
    world.groups.finish()
    assert shared.calls == ["attach", "load", "finish"]
    assert OtherKinds((shared, Shared("h"))).find("h") is not None
    assert sorted(OtherKinds((shared, Shared("h"))).names()) == ["g", "h"]
    assert set(KINDS) == {"consumer", "share", "streams"}
