"""What is counted of reads, and what every answer to a pull has."""

import pytest
from tests.gateway.remoting.pullworld import PullWorld

from rockgate.protocol.remoting.codes import ResponseCode

CASES = [
    pytest.param(0, {}, ResponseCode.SUCCESS, "FOUND", 2, id="found"),
    pytest.param(
        0, {"subscription": "Z"}, ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", 2
    ),
    pytest.param(2, {}, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 2, id="at the end"),
    pytest.param(9, {}, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 2, id="beyond"),
    pytest.param(-1, {}, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0, id="before"),
]


@pytest.mark.row("STORE-17")
@pytest.mark.parametrize(("offset", "changes", "code", "remark", "following"), CASES)
async def test_every_answer_has_status_next_lowest_and_highest_and_is_counted(
    offset: int, changes: dict[str, str], code: ResponseCode, remark: str, following: int
) -> None:
    world = PullWorld()
    world.put(b"one", "A")
    world.put(b"two", "B")
    answer = (await world.begin(offset, **changes)).result()
    assert (answer.code, answer.remark) == (code, remark)
    told = [answer.fields[name] for name in ("nextBeginOffset", "minOffset", "maxOffset")]
    assert told == [str(following), "0", "2"]
    is_hit = code == ResponseCode.SUCCESS
    assert (world.puller.hit_count, world.puller.miss_count) == (is_hit, not is_hit)


@pytest.mark.row("STORE-17")
async def test_the_longest_read_is_kept() -> None:
    times = iter((10.0, 10.5, 20.0, 22.0, 30.0, 30.1))
    world = PullWorld(now=lambda: next(times))
    world.put(b"one")
    longest = []
    for offset in (0, 1, 0):
        await world.begin(offset)
        longest.append(world.puller.longest_seconds)
    assert longest == [0.5, 2.0, 2.0]
