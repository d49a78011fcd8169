"""Groups that are too far behind, where that is switched on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gateway.remoting.pullworld import PullWorld
from tests.gateway.remoting.world import Everybody, FakeCaller

from rockgate.gateway.remoting.groups import slow_groups
from rockgate.gateway.remoting.groups.clients import Client, Clients
from rockgate.gateway.remoting.groups.slow_groups import SlowGroups
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.progress.records import Commit

BYTES_MAX = 4_000
THREE_MINUTES_MS = 180_000


class Behind(PullWorld):
    """The groups `quick` and `slow`, and two queues that they read."""

    def open(self) -> None:
        super().open()
        self.clients = Clients(Everybody(), 10**9)
        self.watch = SlowGroups(
            clients=self.clients,
            settings=self.settings,
            progress=self.store.progress,
            queues=self.store.queues,
            commit_log=self.store.log,
            clock=self.clock,
            config=OverloadConfig(slow_groups=True, slow_group_bytes_max=BYTES_MAX),
        )

    def join(self, *groups: str) -> None:
        for number, group in enumerate(groups):
            client = Client(f"client-{group}", FakeCaller(number), "JAVA", 1, 0)  # type: ignore[arg-type]
            self.clients.consume(ConsumerData(group_name=group), client, notifies=False)

    def commit(self, group: str, offset: int) -> None:
        topic = self.store.topics.get("orders")
        self.store.progress.commit(group, [Commit(topic.id, 0, offset)])

    def pass_three_minutes(self) -> int:
        """Let the time pass until it looks; returns how many turns that took."""
        self.clock.advance(THREE_MINUTES_MS)
        turns = 1
        while self.watch.step():
            turns += 1
        return turns

    def is_allowed(self, group: str) -> bool:
        return self.settings.of(group).consume_enable


@pytest.fixture
def world() -> Behind:
    made = Behind()
    for _ in range(20):
        made.put(bytes(300))
    made.join("quick", "slow")
    made.commit("quick", 20)
    made.commit("slow", 0)
    return made


@pytest.mark.row("G-01")
@pytest.mark.row("U-17")
def test_every_three_minutes_a_group_too_far_behind_is_stopped_with_one_line(
    world: Behind, caplog: pytest.LogCaptureFixture
) -> None:
    world.clock.advance(THREE_MINUTES_MS - 1)
    assert not world.watch.step()
    assert world.is_allowed("slow")
    world.clock.advance(1)
    assert not world.watch.step()
    assert not world.is_allowed("slow")
    assert world.is_allowed("quick")
    world.pass_three_minutes()
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "[PROTECT_BROKER] consumption disabled group=slow topic=orders queue=0 behind_bytes="
    )
    assert int(line.rpartition("=")[2]) > BYTES_MAX


@pytest.mark.row("G-01")
async def test_its_pulls_are_refused_with_rocketmqs_code_and_what_to_do(world: Behind) -> None:
    world.pass_three_minutes()
    refused = await (await world.begin(0, consumerGroup="slow"))
    assert refused.code == ResponseCode.NO_PERMISSION
    assert (refused.remark or "").startswith("subscription group no permission, slow. ")
    assert "updateSubGroup" in (refused.remark or "")
    assert (await (await world.begin(0, consumerGroup="quick"))).code == ResponseCode.SUCCESS


def test_what_was_decided_outlives_a_restart(world: Behind) -> None:
    world.pass_three_minutes()
    world.kill()
    assert not world.is_allowed("slow")


@pytest.mark.parametrize(("offset", "is_allowed"), [(0, False), (19, True), (20, True), (99, True)])
def test_only_what_is_left_to_read_counts(world: Behind, offset: int, is_allowed: bool) -> None:
    world.join("group")
    world.commit("group", offset)
    world.pass_three_minutes()
    assert world.is_allowed("group") is is_allowed


def test_a_group_without_rocketmq_members_is_left_alone(world: Behind) -> None:
    """It reads nothing now, or is one of Kafka's."""
    world.commit("kafka", 0)
    world.pass_three_minutes()
    assert world.is_allowed("kafka")


def test_deleted_topics_and_groups_without_offsets_are_passed_over(world: Behind) -> None:
    world.join("new")
    world.store.topics.delete([world.store.topics.get("orders")])
    world.pass_three_minutes()
    assert world.is_allowed("slow")
    assert world.is_allowed("new")


def test_many_groups_are_looked_at_over_several_turns(
    world: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_groups, "SLICE_SECONDS", 0.0)
    assert world.pass_three_minutes() > 4
    assert not world.is_allowed("slow")


def test_a_look_that_failed_is_begun_anew_later(
    world: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Iterator[None]:
        raise OSError(5, "Input/output error")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(world.watch, "_look", fail)
        world.clock.advance(THREE_MINUTES_MS)
        with pytest.raises(OSError, match="Input/output"):
            world.watch.step()
    assert not world.watch.step()
    world.pass_three_minutes()
    assert not world.is_allowed("slow")


@pytest.mark.row("G-01")
def test_it_is_switched_on_and_off_while_the_server_runs(world: Behind) -> None:
    world.watch.configure(OverloadConfig(slow_group_bytes_max=BYTES_MAX))
    world.pass_three_minutes()
    assert world.is_allowed("slow")
    world.watch.configure(OverloadConfig(slow_groups=True, slow_group_bytes_max=BYTES_MAX))
    world.pass_three_minutes()
    assert not world.is_allowed("slow")
    assert world.is_allowed("quick")


@pytest.mark.row("G-01")
def test_it_is_off_by_default_and_the_bound_is_16_gib() -> None:
    config = OverloadConfig()
    assert (config.slow_groups, config.slow_group_bytes_max) == (False, 16 << 30)
