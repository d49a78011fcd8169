"""Which half messages are asked about, after a restart and beside others that fail."""

import pytest
from tests.gateway.remoting.halfworld import SECOND, SYSTEM, HalfWorld


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
