import asyncio
import re
from collections.abc import Awaitable, Generator, Sequence
from pathlib import Path

import pytest
from tests.gateway.kafka.admin import answered, seen
from tests.waiting import until

from rockgate.gateway.kafka import handlers
from rockgate.gateway.kafka.request import chunked
from rockgate.gateway.kafka.request.chunked import (
    ANSWER_SIZE_MAX,
    PARTS_MAX,
    SLICE_COST,
    SLICE_SECONDS,
    SURE_STEPS,
    Each,
    Growing,
    Room,
    Slicing,
    Steps,
    Turn,
    at_once,
    in_slices,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from rockgate.protocol.kafka.schema import Encoded, decode, encode

VERSION = 6


class Ticks:
    """Time that passes a little with every look."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.at = 0.0

    def __call__(self) -> float:
        self.at += self.step
        return self.at


class Counting:
    """A slice that remembers what it was given."""

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self.taken: list[str] = []

    def take(self, item: str, /) -> int:
        self.taken.append(item)
        return self.cost

    def finish(self) -> Sequence[DeletableTopicResult]:
        return [DeletableTopicResult(name=name) for name in self.taken]


class Work:
    """A request of some items, and how it was cut."""

    def __init__(self, count: int, *, cost: int = 0, tick: float = 0.0) -> None:
        self.items = [f"t{index}" for index in range(count)]
        self.slices: list[Counting] = []
        self.cost = cost
        self.slicing = Slicing(DeleteTopicsResponse, DeletableTopicResult, now=Ticks(tick))

    def begin(self) -> Counting:
        self.slices.append(Counting(self.cost))
        return self.slices[-1]

    def run(self) -> DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]:
        return self.slicing.work(self.items, self.begin, respond, VERSION)

    @property
    def counts(self) -> list[int]:
        return [len(each.taken) for each in self.slices]


def respond(parts: list[DeletableTopicResult | Encoded]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=parts)


async def named(response: DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]) -> list[str]:
    return [each.name for each in (await seen(response, VERSION)).responses]


@pytest.mark.parametrize("count", [0, 1, 100])
async def test_what_fits_into_one_slice_is_answered_at_once(count: int) -> None:
    work = Work(count)
    response = work.run()
    assert isinstance(response, DeleteTopicsResponse)
    assert await named(response) == work.items
    assert work.counts == [count]


async def test_what_costs_more_is_cut_and_answered_in_order() -> None:
    work = Work(1000, cost=SLICE_COST // 100)
    response = work.run()
    assert isinstance(response, Awaitable)
    assert work.counts == [100], "the first slice is worked on at once"
    assert await named(response) == work.items
    assert work.counts[:-1] == [100] * 10


async def test_what_takes_longer_is_cut() -> None:
    work = Work(100, tick=SLICE_SECONDS / 10)
    assert await named(work.run()) == work.items
    assert 8 <= work.counts[0] <= 11 and max(work.counts) <= 11


async def test_others_get_their_turn_between_two_slices() -> None:
    work = Work(10, cost=SLICE_COST)
    response = asyncio.ensure_future(answered(work.run()))
    turns = 0
    while not response.done():
        await asyncio.sleep(0)
        turns += 1
        assert len(work.slices) <= turns + 1
    assert work.counts == [1] * 10 + [0]


async def test_a_response_that_must_wait_is_waited_for() -> None:
    work = Work(10, cost=SLICE_COST)
    ready: asyncio.Future[DeleteTopicsResponse] = asyncio.get_running_loop().create_future()

    def wait(
        parts: list[DeletableTopicResult | Encoded],
    ) -> DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]:
        return ready

    working = work.slicing.work(work.items, work.begin, wait, VERSION)
    response = asyncio.ensure_future(answered(working))
    await until(lambda: len(work.slices) == 11, "every slice was worked on")
    assert not response.done()
    ready.set_result(DeleteTopicsResponse())
    assert await response == DeleteTopicsResponse()


async def test_items_that_change_nothing_are_answered_one_by_one() -> None:
    slicing = Slicing(DeleteTopicsResponse, DeletableTopicResult)
    response = slicing.work(
        ["a", "b"],
        lambda: Each[str, DeletableTopicResult](lambda name: DeletableTopicResult(name=name)),
        respond,
        VERSION,
    )
    assert await named(response) == ["a", "b"]


async def test_a_failure_in_a_later_slice_is_the_request_s() -> None:
    def begin() -> Each[str, DeletableTopicResult]:
        def fail(name: str) -> DeletableTopicResult:
            raise ValueError(name)

        return Each(fail)

    slicing = Slicing(DeleteTopicsResponse, DeletableTopicResult)
    with pytest.raises(ValueError, match="a"):
        slicing.work(["a"], begin, respond, VERSION)


# Work in steps


def _steps(count: int, log: list[int]) -> Steps[int]:
    for number in range(count):
        log.append(number)
        yield None
    return count


def test_work_of_a_few_steps_is_done_at_once() -> None:
    assert in_slices(_steps(SURE_STEPS - 1, [])) == SURE_STEPS - 1


async def test_long_work_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "Turn", lambda: OverAtOnce())
    log: list[int] = []
    outcome = in_slices(_steps(100, log))
    assert isinstance(outcome, Awaitable)
    assert SURE_STEPS <= len(log) <= SURE_STEPS + 1
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count())
    assert await outcome == 100
    counting.cancel()
    assert turns >= 40


class OverAtOnce(Turn):
    """A turn that has time for one step."""

    def __init__(self) -> None:
        super().__init__(Ticks(SLICE_SECONDS / 1.5))


async def test_an_answer_that_grows_too_large_is_refused_and_says_so() -> None:
    room = Room(10)
    room.take(10)
    with pytest.raises(RequestError, match="split the request"):
        room.take(1)


def test_elements_are_encoded_as_they_come() -> None:
    growing = Growing(DeleteTopicsResponse, DeletableTopicResult, VERSION, Room())
    for name in ("a", "b"):
        growing.add(DeletableTopicResult(name=name))
    [both] = growing.take()
    assert isinstance(both, Encoded) and both.count == 2
    assert growing.take() == []


def test_many_elements_are_put_together_as_they_come_and_stay_in_order() -> None:
    growing = Growing(DeleteTopicsResponse, DeletableTopicResult, VERSION, Room())
    count = 2 * PARTS_MAX + 3
    names = [f"topic-{number}" for number in range(count)]
    for name in names:
        growing.add(DeletableTopicResult(name=name))
        assert len(growing._parts) < PARTS_MAX
    [whole] = growing.take()
    assert whole.count == count
    response = encode(DeleteTopicsResponse(responses=[whole]), VERSION)
    told = decode(DeleteTopicsResponse, VERSION, response, memory_max=1 << 30).responses
    assert [each.name for each in told if isinstance(each, DeletableTopicResult)] == names


def test_all_steps_at_once_give_what_steps_give() -> None:
    def work() -> Generator[None, None, int]:
        yield
        yield
        return 3

    assert at_once(work()) == 3


HANDLERS_FOLDER = Path(handlers.__file__).parent


def test_each_handler_whose_answer_may_be_refused_for_its_size_says_so() -> None:
    silent, said = [], 0
    for path in sorted(HANDLERS_FOLDER.glob("*.py")):
        source = path.read_text("utf-8")
        made = re.findall(r"Slicing\((.*?)\)", source, re.DOTALL)
        is_bounded = "Room()" in source or any("is_changing=True" not in each for each in made)
        said += is_bounded
        if is_bounded and "would exceed 90 MiB is rejected" not in source:
            silent.append(path.name)
    assert said and silent == []
    assert ANSWER_SIZE_MAX == 90 << 20
