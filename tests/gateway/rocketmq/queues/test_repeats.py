"""What is sent again to another gateway, or after a lost answer: each rule, and what breaks less.

A producer has five batches in flight. The gateway that stored some of them dies, or hears no answer
of the broker, and the producer sends all again, to whoever leads the queue then.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from tests.gateway.fakes import HandClock
from tests.gateway.rocketmq.fake_brokers import LOST, FakeBrokers, NoFence, settle
from tests.gateway.rocketmq.queues.writing import Writing, code_of

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.cluster.fence import PROBES, STEP_S, BrokerFence
from rockgate.gateway.rocketmq.queues import history, refused
from rockgate.protocol.kafka.errors import ErrorCode


async def stored(brokers: FakeBrokers, *sequences: int, count: int = 1, epoch: int = 0) -> None:
    """Another gateway stores batches of producer 7."""
    other = Writing(brokers)
    for sequence in sequences:
        await other.append(count, producer=7, sequence=sequence, epoch=epoch)


async def test_a_first_batch_is_looked_up_too() -> None:
    # The simpler rule: sequence 0 is new for certain.
    world = Writing()
    await stored(world.brokers, 0)
    assert await world.append(producer=7, sequence=0) == 0
    assert len(world.brokers.messages) == 1


async def test_every_batch_is_looked_up_until_one_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The simpler rule: only the first batch of a producer that is new here.
    monkeypatch.setattr(history, "TAIL_COUNT", 0)
    world = Writing()
    await stored(world.brokers, 0, 2, 4, count=2)
    world.brokers.lookups.clear()
    again = [world.append(2, producer=7, sequence=at) for at in (0, 2, 4, 6, 8)]
    assert [await each for each in again] == [0, 2, 4, 6, 8]
    assert len(world.brokers.messages) == 10
    # The fourth was not found, so the fifth cannot be there either.
    assert len(world.brokers.lookups) == 4


async def test_a_batch_that_overtakes_the_one_before_is_refused_by_the_queues_tail() -> None:
    # The simpler rule: what is not found is appended. A Java producer sends the next batch to the
    # new leader while the one before it is still on its way back from the old one.
    world = Writing()
    await stored(world.brokers, 0, 2, count=2)
    assert await code_of(world.append(2, producer=7, sequence=6)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert await world.append(2, producer=7, sequence=4) == 4
    assert await world.append(2, producer=7, sequence=6) == 6


async def test_a_batch_from_before_the_tail_is_found_though_it_is_no_next_one() -> None:
    world = Writing()
    await stored(world.brokers, *range(8))
    assert await world.append(producer=7, sequence=1) == 1
    assert await world.append(producer=7, sequence=8) == 8
    assert len(world.brokers.messages) == 9


async def test_an_epoch_of_before_is_refused_by_the_tail_and_a_new_one_begins_with_0() -> None:
    world = Writing()
    await stored(world.brokers, 5, epoch=3)
    again = world.append(producer=7, sequence=6, epoch=2)
    assert await code_of(again) is ErrorCode.INVALID_PRODUCER_EPOCH
    later = world.append(producer=7, sequence=6, epoch=4)
    assert await code_of(later) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await world.append(producer=7, sequence=0, epoch=4) == 1


async def test_batches_of_the_gateway_before_whose_size_is_not_written_are_continued_by_any() -> (
    None
):
    world = Writing()
    await stored(world.brokers, 0, count=3)
    first, packed = world.brokers.messages[0]
    world.brokers.messages[0] = (first, packed.replace(b"__KAFKA_COUNT\x013\x02", b""))
    assert await world.append(producer=7, sequence=3) == 3


async def test_a_producer_that_is_known_nowhere_may_begin_with_any_sequence() -> None:
    world = Writing()
    assert await world.append(producer=7, sequence=41) == 0
    with pytest.raises(RequestError):
        world.append(producer=7, sequence=44)


async def test_a_producer_that_is_known_nowhere_does_not_begin_behind_what_was_refused() -> None:
    # The simpler rule: one that is known nowhere begins with any sequence. The term begins between
    # two of its first batches, and the one that was refused would come after the other.
    world = Writing()
    world.is_served = False
    with pytest.raises(RequestError) as raised:
        world.append(2, producer=7, sequence=0)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.is_served = True
    behind = [world.append(2, producer=7, sequence=at) for at in (2, 4)]
    for outcome in behind:
        assert await code_of(outcome) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    again = [world.append(2, producer=7, sequence=at) for at in (0, 2, 4)]
    assert [await each for each in again] == [0, 2, 4]
    assert len(world.brokers.messages) == 6


@pytest.mark.parametrize("is_read", [True, False], ids=["tail read", "tail not read"])
async def test_what_was_in_flight_behind_a_first_batch_without_an_outcome_waits_for_it(
    is_read: bool,
) -> None:
    # The simpler rule: what is forgotten is new again. The broker refuses the first batch, and the
    # second was on its way to this gateway.
    world = Writing()
    if is_read:
        await world.append(producer=8, sequence=0)
    begin = len(world.brokers.messages)
    world.brokers.script = [LOST]
    assert await code_of(world.append(producer=7, sequence=0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    if is_read:
        await world.append(producer=8, sequence=1)
        begin += 1
    behind = world.append(producer=7, sequence=1)
    again = world.append(producer=7, sequence=0)
    after = world.append(producer=7, sequence=1)
    assert await code_of(behind) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await again, await after) == (begin, begin + 1)


async def test_what_is_behind_a_refused_batch_that_was_stored_is_continued() -> None:
    world = Writing()
    world.brokers.answers_lost = 1
    await code_of(world.append(producer=7, sequence=0))
    behind = world.append(producer=7, sequence=1)
    again = world.append(producer=7, sequence=0)
    assert (await again, await behind) == (0, 1)
    assert len(world.brokers.messages) == 2


async def test_a_batch_that_was_refused_and_given_up_is_waited_for_only_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Writing()
    world.brokers.script = [LOST]
    await code_of(world.append(producer=7, sequence=0))
    assert await code_of(world.append(producer=7, sequence=1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    # In a new epoch it begins anew, and at once.
    assert await world.append(producer=7, sequence=0, epoch=1) == 0
    world.brokers.script = [LOST]
    await code_of(world.append(producer=9, sequence=0))
    monkeypatch.setattr(refused, "AGE_S", -1.0)
    assert await world.append(producer=9, sequence=1) == 1


async def test_messages_of_others_and_of_other_queues_are_no_repeats() -> None:
    world = Writing()
    await stored(world.brokers, 0)
    body, packed = world.brokers.messages[0]
    world.brokers.messages[0] = (body, packed.replace(b"UNIQ_KEY\x01K", b"KEYS\x01K"))
    assert await world.append(producer=7, sequence=0) == 1


async def test_after_a_lost_answer_the_same_gateway_looks_up_what_it_sent() -> None:
    # The simpler rule: what this gateway wrote it knows.
    world = Writing()
    first = world.append(producer=7, sequence=0)
    await first
    world.brokers.answers_lost = 1
    lost = world.append(producer=7, sequence=1)
    assert await code_of(lost) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await world.append(producer=7, sequence=1) == 1
    assert await world.append(producer=7, sequence=2) == 2
    assert len(world.brokers.messages) == 3


async def test_a_request_without_an_answer_yet_keeps_its_place() -> None:
    # The simpler rule: after some seconds it is lost, and looked up. It may still come.
    world = Writing()
    world.brokers.is_paused = True
    first = world.append(producer=7, sequence=0)
    await settle(lambda: world.brokers.sends)
    again = world.append(producer=7, sequence=0)
    behind = world.append(producer=7, sequence=1)
    world.brokers.go.set()
    assert (await first, await again, await behind) == (0, 0, 1)
    assert world.brokers.sends == [1, 1]


async def test_what_a_term_left_under_way_is_open_and_nothing_is_sent_after_it() -> None:
    world = Writing()
    await world.append(producer=7, sequence=0)
    world.brokers.is_paused = True
    under_way = world.append(producer=7, sequence=1)
    await settle(lambda: len(world.brokers.sends) == 2)
    waiting = world.append(producer=7, sequence=2)
    world.writer.lose("Another gateway leads it.")
    for outcome in (under_way, waiting):
        assert await code_of(outcome) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    # Led again: the request of the term before is answered first, and then found.
    again = world.append(producer=7, sequence=1)
    world.brokers.go.set()
    assert await again == 1
    assert len(world.brokers.messages) == 2


async def test_the_tail_is_not_read_before_the_broker_has_caught_up_with_the_term() -> None:
    fence = NoFence()
    world = Writing(fence=fence)
    assert await world.append(producer=7, sequence=0) == 0
    assert fence.asked == [0.0]
    before = asyncio.get_running_loop().time()
    world.brokers.answers_lost = 1
    await code_of(world.append(producer=7, sequence=1))
    assert await world.append(producer=7, sequence=1) == 1
    assert fence.asked[1] >= before


async def test_producers_without_sequences_wait_for_nothing() -> None:
    fence = NoFence()
    world = Writing(fence=fence)
    assert await world.append() == 0
    assert (fence.asked, world.brokers.lookups) == ([], [])


# Stored, but not as durably as acks=all asks for


async def test_repeats_are_refused_until_a_later_request_was_confirmed_as_a_whole() -> None:
    # The simpler rule: a repeat has the outcome of the first, always.
    world = Writing()
    world.brokers.script = [12]
    late = world.append(producer=7, sequence=0)
    assert await code_of(late) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    again = world.append(producer=7, sequence=0)
    assert await code_of(again) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert await world.append() == 1
    assert await world.append(producer=7, sequence=0) == 0
    assert len(world.brokers.messages) == 2


async def test_repeats_are_refused_until_the_broker_says_that_a_slave_has_them() -> None:
    # The simpler rule: wait for another request. There may be none: the producer waits for this.
    world = Writing()
    world.brokers.script = [11]
    late = world.append(producer=7, sequence=0)
    assert await code_of(late) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    for replicas in ([], [0], [0, 1]):
        world.brokers.replicas = replicas
        count = world.brokers.ha_count
        again = world.append(producer=7, sequence=0)
        assert await code_of(again) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        await settle(partial(_is_asked_more, world.brokers, count))
        for _ in range(9):
            await asyncio.sleep(0)
    assert await world.append(producer=7, sequence=0) == 0
    assert len(world.brokers.messages) == 1


def _is_asked_more(brokers: FakeBrokers, count: int) -> bool:
    return brokers.ha_count > count


async def test_no_slave_says_that_the_masters_disk_has_it() -> None:
    world = Writing()
    world.brokers.script = [10]
    await code_of(world.append(producer=7, sequence=0))
    world.brokers.replicas = [1]
    for _ in range(3):
        again = world.append(producer=7, sequence=0)
        assert await code_of(again) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        await settle(lambda: world.brokers.ha_count, 50)
        await asyncio.sleep(0)


# A broker that was stopped


class Stopped:
    """A broker with a dead gateway's request in its socket, and the next gateway with a clock."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.world = Writing(fence=None)
        self.brokers = self.world.brokers

    async def begin(self) -> None:
        """The dead gateway's last request is in the socket of the stopped broker."""
        other = Writing()
        await other.append(producer=7, sequence=0)
        self.brokers.socket = other.brokers.messages
        self.brokers.running.clear()
        self.world = Writing(self.brokers, BrokerFence(self.brokers, self.clock))

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.clock.advance(STEP_S)
            for _ in range(20):
                await asyncio.sleep(0)


async def test_a_stopped_broker_reads_its_sockets_before_it_is_asked_what_it_has() -> None:
    # The simpler rule: wait for 300 ms, then look up. It answers that before it reads the rest.
    stopped = Stopped()
    await stopped.begin()
    stopped.brokers.reads_after_probes = 2
    again = stopped.world.append(producer=7, sequence=0)
    await stopped.pass_time(5.0)
    assert not again.done()
    stopped.brokers.running.set()
    await stopped.pass_time(1.0)
    assert await again == 0
    assert len(stopped.brokers.messages) == 1
    # The answer to what was asked while it was stopped does not count.
    assert stopped.brokers.probes > PROBES


async def test_an_index_that_lags_is_waited_for() -> None:
    # The simpler rule: what was confirmed is found.
    stopped = Stopped()
    await stopped.begin()
    stopped.brokers.running.set()
    stopped.brokers.shown = 0
    again = stopped.world.append(producer=7, sequence=0)
    await stopped.pass_time(3.0)
    assert not again.done()
    stopped.brokers.shown = None
    await stopped.pass_time(1.0)
    assert await again == 0
    assert len(stopped.brokers.messages) == 1


async def test_one_wait_serves_all_queues_whose_terms_began_before_it() -> None:
    clock, brokers = HandClock(), FakeBrokers()
    fence = BrokerFence(brokers, clock)
    now = clock.time()
    waits = [asyncio.ensure_future(fence.caught_up("a", now - at)) for at in (0, 1, 5)]
    for _ in range(PROBES + 1):
        for _ in range(20):
            await asyncio.sleep(0)
        clock.advance(STEP_S)
    await asyncio.gather(*waits)
    count = brokers.probes
    await fence.caught_up("a", now)
    assert brokers.probes == count
    later = asyncio.ensure_future(fence.caught_up("a", clock.time()))
    await settle(lambda: brokers.probes > count)
    later.cancel()


async def test_a_broker_that_cannot_be_asked_is_not_written_to() -> None:
    world = Writing()
    await stored(world.brokers, 0)
    world.brokers.pull_code = LOST
    again = world.append(producer=7, sequence=1)
    assert await code_of(again) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.brokers.pull_code = None
    assert await world.append(producer=7, sequence=1) == 1
