"""A half message that was discarded after its checks is checked again (323)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.remoting.halfworld import HalfWorld

from rockgate.gateway.remoting.processors.halves import HalfRequests
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting.command import Command
from rockgate.store.errors import StoreFull

CHECKED_OUT = "TRANS_CHECK_MAX_TIME_TOPIC"


def message_id(position: int) -> str:
    return f"7F00000100002A9F{position:016X}"


def resume(world: HalfWorld, id_: str) -> Any:
    requests = HalfRequests(
        halves=world.halves,
        lookup=world.lookup,
        durability=Durability(world.store),
        soon=lambda work: work(),
    )
    caller: Any = world.producer("others")
    return requests.resume(Command(323, {"msgId": id_}), caller)


def given_up(world: HalfWorld) -> str:
    """Discard a half message; return the id that it has then."""
    half = world.undecided.find(world.prepare(b"paid", CHECK_IMMUNITY_TIME_IN_SECONDS="5").offset)
    assert half is not None
    world.halves.give_up(half)
    queue = world.store.queues.of(world.store.topics.get(CHECKED_OUT).id)[0]
    unit = queue.find(queue.next_offset - 1)
    assert unit is not None
    return message_id(unit.position)


@pytest.mark.parametrize("is_killed", [False, True])
def test_it_is_a_half_message_again_which_can_be_committed(is_killed: bool) -> None:
    world = HalfWorld()
    assert resume(world, given_up(world)).code == 0
    world.store.flush()
    if is_killed:
        world.kill()
    [half] = world.undecided.all()
    assert (half.group, half.check_count, half.immune_ms) == ("payers", 0, 5_000)
    assert world.halves.commit(half.offset, "payers") is not None
    assert [message.body for message in world.delivered()] == [b"paid"]


def test_its_producer_is_asked_again_when_its_time_has_come() -> None:
    world = HalfWorld()
    producer = world.producer()
    resume(world, given_up(world))
    world.pass_time(4_900)
    assert producer.told == []
    world.pass_time(200)
    assert [each[0] for each in producer.told] == [39]


def test_one_that_is_undecided_stays_as_it_is() -> None:
    world = HalfWorld()
    taken = world.prepare()
    end = world.store.log.end
    assert resume(world, message_id(taken.position)).code == 0
    assert (world.store.log.end, len(world.undecided)) == (end, 1)


@pytest.mark.parametrize("position", [0, 1 << 40])
def test_what_was_never_discarded_is_refused(position: int) -> None:
    world = HalfWorld()
    with pytest.raises(Refused, match="neither undecided nor in TRANS_CHECK_MAX_TIME_TOPIC"):
        resume(world, message_id(position))


def test_an_ordinary_message_and_a_decided_half_are_refused() -> None:
    world = HalfWorld()
    taken = world.prepare()
    world.halves.commit(taken.offset, "payers")
    queue = world.store.queues.of(world.store.topics.get("orders").id)[0]
    unit = queue.find(0)
    assert unit is not None
    for position in (taken.position, unit.position):
        with pytest.raises(Refused, match="neither undecided"):
            resume(world, message_id(position))


def test_an_append_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = HalfWorld()
    id_ = given_up(world)

    def fail(*_: object) -> None:
        raise StoreFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(world.store.appender, "placed_with", fail)
        with pytest.raises(StoreFull):
            resume(world, id_)
    assert len(world.undecided) == 0
    assert resume(world, id_).code == 0
