"""Which half messages are asked about, after a restart and beside others that fail."""

import pytest
from tests.gateway.remoting.halfworld import SYSTEM, HalfWorld
from tests.world import SECOND

from rockgate.gateway.remoting.messages.check_back import RETRY_MS
from rockgate.gateway.remoting.messages.halves import StoredHalf


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
