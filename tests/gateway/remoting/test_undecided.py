"""Which half messages are asked about, after a restart and beside others that fail."""

import pytest
from tests.gateway.remoting.halfworld import SYSTEM, HalfWorld
from tests.gateway.remoting.world import FakeCaller
from tests.world import SECOND

from rockgate.gateway.remoting.messages.check_back import CHECKS_PER_STEP, RETRY_MS
from rockgate.gateway.remoting.messages.halves import StoredHalf
from rockgate.gateway.remoting.server.errors import code_of
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.errors import OffsetOutOfRange, StoreFull
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.read.slices import Slice


@pytest.mark.row("T-16")
@pytest.mark.parametrize("how", ["committed", "rolled back", "given up"])
def test_what_was_finished_before_a_restart_is_not_asked_about_again(how: str) -> None:
    world = HalfWorld(check_times_max=1)
    world.producer()
    done = world.prepare(b"done")
    if how == "committed":
        world.halves.commit(done.offset, "payers")
    elif how == "rolled back":
        world.halves.roll_back(done.offset, "payers")
    else:
        world.pass_time(6 * SECOND)
        world.pass_time(30 * SECOND)
        assert len(world.delivered(SYSTEM[1])) == 1
    left = world.prepare(b"left")
    world.kill()
    caller = world.producer()
    world.pass_time(60 * SECOND)
    asked = [fields["tranStateTableOffset"] for _, fields, _ in caller.told]
    assert asked == [str(left.offset)]


@pytest.mark.row("T-06", "D-16")
def test_a_check_that_fails_waits_before_the_next_try_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = HalfWorld()
    caller = world.producer()
    bad, *good = (world.prepare(b"%d" % number).offset for number in range(3))
    tries = 0
    read = world.halves.read

    def reading(offset: int) -> StoredHalf:
        nonlocal tries
        if offset == bad:
            tries += 1
            raise OSError("it cannot be read")
        return read(offset)

    monkeypatch.setattr(world.halves, "read", reading)
    world.clock.advance(6 * SECOND)
    with pytest.raises(OSError, match="cannot be read"):
        world.check_backs.step()
    asked = [fields["tranStateTableOffset"] for _, fields, _ in caller.told]
    assert (asked, tries) == ([str(offset) for offset in good], 1)
    assert not world.check_backs.step()
    world.pass_time(RETRY_MS - 1)
    assert tries == 1, "it waits"
    world.clock.advance(1)
    with pytest.raises(OSError, match="cannot be read"):
        world.check_backs.step()
    assert tries == 2
    monkeypatch.undo()
    world.pass_time(RETRY_MS)
    assert caller.told[-1][1]["tranStateTableOffset"] == str(bad)


def asked(caller: FakeCaller) -> list[int]:
    """Which half messages a producer was asked about, in order."""
    return [int(fields["tranStateTableOffset"]) for _, fields, _ in caller.told]


@pytest.mark.row("T-07")
def test_however_many_are_due_a_round_asks_about_some_and_the_next_goes_on_there() -> None:
    """Rounds of upkeep have other steps, which get their turn in between."""
    assert CHECKS_PER_STEP <= 100
    world = HalfWorld()
    caller = world.producer()
    flood = [world.prepare(queue=0).offset for _ in range(3 * CHECKS_PER_STEP)]
    behind = world.prepare(queue=1).offset
    world.clock.advance(6 * SECOND)
    for rounds in (1, 2, 3):
        assert world.check_backs.step(), "there are more"
        assert len(caller.told) == rounds * CHECKS_PER_STEP
    assert not world.check_backs.step()
    assert asked(caller) == [*flood, behind], "each once, the first first"


@pytest.mark.row("T-09")
def test_one_whose_entry_is_gone_ends_its_own_check_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = HalfWorld()
    caller = world.producer()
    gone, *others = (world.prepare(b"%d" % number) for number in range(4))
    entry = world.store.reader.entry

    def reading(queue: Queue, unit: Unit) -> Slice:
        if unit.position == gone.position:
            raise OffsetOutOfRange(0, 1, 4)
        return entry(queue, unit)

    monkeypatch.setattr(world.store.reader, "entry", reading)
    for _ in range(2):
        world.clock.advance(30 * SECOND)
        with pytest.raises(OffsetOutOfRange):
            world.check_backs.step()
    assert asked(caller) == [each.offset for each in others] * 2
    assert world.halves.roll_back(gone.offset, "payers"), "who knows can still end it"
    world.pass_time(30 * SECOND)
    assert asked(caller) == [each.offset for each in others] * 3


@pytest.mark.row("D-15")
@pytest.mark.parametrize("decision", ["commit", "roll back"])
def test_a_decision_that_cannot_be_written_is_refused_and_the_half_message_is_checked(
    decision: str,
) -> None:
    world = HalfWorld()
    caller = world.producer()
    half = world.prepare(b"payment")

    def decide() -> object:
        if decision == "commit":
            return world.halves.commit(half.offset, "payers")
        return world.halves.roll_back(half.offset, "payers")

    world.store.appender.refusal = world.store.appender.state_refusal = StoreFull("no room")
    with pytest.raises(StoreFull) as refused:
        decide()
    assert code_of(refused.value) == ResponseCode.SERVICE_NOT_AVAILABLE
    assert [each.offset for each in world.undecided.all()] == [half.offset]
    assert world.delivered() == []
    world.store.appender.refusal = world.store.appender.state_refusal = None
    world.pass_time(6 * SECOND)
    assert asked(caller) == [half.offset], "its producer is asked"
    assert decide()
    assert [message.body for message in world.delivered()] == (
        [b"payment"] if decision == "commit" else []
    )
    world.pass_time(60 * SECOND)
    assert len(caller.told) == 1, "it is decided"
