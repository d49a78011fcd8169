"""Share sessions whose members have left."""

from __future__ import annotations

from tests.gateway.kafka.share.world import ACCEPT, Shares, joined

from rockgate.gateway.kafka.share.sessions import ShareSessions


async def test_what_a_member_acknowledges_while_it_leaves_counts() -> None:
    """librdkafka leaves the group before its last ShareAcknowledge has come."""
    world = Shares()
    world.topic("orders", 1)
    world.configure(auto_offset_reset="earliest")
    a, b = joined(world, "a", "b")
    world.produce(b"1", b"2")
    await a.take(max_records=1)
    assert a.leave() == 0
    world.share_sessions.close_ended()
    assert a.code((0, 0, [ACCEPT]), share_session_epoch=-1) == 0
    assert [(each.offset, each.deliveries) for each in await b.take()] == [(1, 1)]


def test_a_member_without_a_session_gives_back_what_it_holds_when_it_leaves() -> None:
    released: list[tuple[str, str]] = []
    sessions = ShareSessions(
        sessions_max=1,
        partitions_max=1,
        release=lambda group, member: released.append((group, member)),
        monotonic_ms=lambda: 0,
    )
    sessions.leave("g", "a")
    assert released == [("g", "a")]
