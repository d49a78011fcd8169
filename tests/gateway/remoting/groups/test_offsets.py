"""Progress of groups by RocketMQ's names, over a store that may be killed."""

import pytest
from tests.gateway.remoting.world import Everybody, RemotingWorld

from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets, Resets


class OffsetWorld(RemotingWorld):
    """A store with two topics of two queues."""

    def open(self) -> None:
        super().open()
        self.ensure("bills", 2)
        self.offsets = ConsumerOffsets(self.store.progress, Everybody(), Resets(lambda queue: None))

    def commit(self, group: str, offset: int, *, topic: str = "orders", queue: int = 0) -> None:
        found = self.queue(topic, queue)
        self.offsets.commit(group, found, offset, acknowledged=True)

    def committed(self, group: str, *, topic: str = "orders", queue: int = 0) -> int | None:
        return self.offsets.committed(group, self.store.topics.get(topic), queue)


@pytest.mark.row("OFF-8")
def test_progress_is_kept_by_group_topic_and_queue_and_outlives_a_kill() -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    world.commit("g", 6, queue=1)
    world.commit("g", 7, topic="bills")
    world.commit("h", 8)
    for _ in range(2):
        assert world.committed("g") == 5
        assert world.committed("g", queue=1) == 6
        assert world.committed("g", topic="bills") == 7
        assert world.committed("h") == 8
        assert world.committed("h", queue=1) is None
        world.kill()


@pytest.mark.row("OFF-8")
def test_a_lower_offset_is_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    world.commit("g", 6)
    assert caplog.text == ""
    world.commit("g", 2)
    assert world.committed("g") == 2
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert (
        "committed offset moved back group=g topic=orders queue=0 from=6 to=2"
        in record.getMessage()
    )
