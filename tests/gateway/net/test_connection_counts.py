import pytest
from tests.gateway.kafka.server.test_listener import Room

from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.net.connection_counts import ConnectionCounts


def test_an_address_has_so_many_and_others_have_theirs(caplog: pytest.LogCaptureFixture) -> None:
    counts = ConnectionCounts(2)
    assert [counts.take("a") for _ in range(4)] == [True, True, False, False]
    assert counts.take("b")
    assert len(caplog.records) == 1
    counts.give("a")
    assert counts.take("a") and not counts.take("a")
    assert len(caplog.records) == 2


def test_users_are_counted_apart_from_addresses(caplog: pytest.LogCaptureFixture) -> None:
    counts = ConnectionCounts(1, 2)
    assert counts.take("alice")
    assert [counts.enter("alice") for _ in range(3)] == [True, True, False]
    assert "user=alice" in caplog.text
    counts.leave("alice")
    assert counts.enter("alice")


async def test_a_user_has_so_many_connections_over_all_listeners() -> None:
    one, other = Room(KafkaConfig()), Room(KafkaConfig())
    one.listener.counts = other.listener.counts = ConnectionCounts(10, 2)
    lines = [room.connect() for room in (one, other, one)]
    rooms = (one, other, one)
    found = [
        room.listener.entered(line.session, "alice")
        for room, line in zip(rooms, lines, strict=True)
    ]
    assert found == [True, True, False]
    assert one.listener.entered(lines[0].session, "alice"), "counted already"
    lines[0].transport.lose()
    assert one.listener.entered(lines[2].session, "alice")
    assert one.listener.entered(lines[2].session, "bob"), "it counts for the last one"
    assert other.listener.entered(other.connect().session, "alice")


async def test_listeners_share_the_limit_and_closed_connections_make_room() -> None:
    one, other = Room(KafkaConfig()), Room(KafkaConfig())
    one.listener.counts = other.listener.counts = ConnectionCounts(2)
    first, second, third = one.connect(), other.connect(), other.connect()
    assert [line.transport.is_lost for line in (first, second, third)] == [False, False, True]
    first.transport.lose()
    assert not other.connect().transport.is_lost
    assert other.connect().transport.is_lost
