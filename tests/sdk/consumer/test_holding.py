"""How queues are taken up, locked and given up: what is asked of brokers, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.delivery.order import Verdict
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement, SettleContext, SettleCounts
from rockgate.sdk.consumer.holding import Holding, HoldingContext
from rockgate.sdk.consumer.offsets.store import BrokerOffsets
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.queues.puller import PullCounts
from rockgate.sdk.consumer.settings import ConsumerSettings, Model, Start
from rockgate.sdk.consumer.subscription import Subscription, by_tags
from rockgate.sdk.errors import TimedOut
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

A0, A1, B0 = Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0)
ORDERLY = ConsumerSettings(is_orderly=True, start=Start.BEGINNING)


class Brokers:
    """Two brokers that remember what they were asked, and a holding over them."""

    group = "g"

    def __init__(self, settings: ConsumerSettings = ORDERLY) -> None:
        self.asked: list[tuple[str, object]] = []
        self.refused: set[Queue] = set()
        self.silent: set[str] = set()
        self.begun, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        self.round_count = 0
        self.progress: dict[Queue, int | None] = {}
        """How far the group is, where it is not at 5."""
        calls = cast("BrokerCalls", self)
        self.offsets = OffsetTable()
        self.holding = Holding(
            HoldingContext(
                calls=calls,
                settings=settings,
                store=BrokerOffsets(calls),
                dispatch=self,
                settling=SettleContext(
                    calls=calls,
                    settings=settings,
                    offsets=self.offsets,
                    counts=SettleCounts(),
                    resend=self._resend,
                ),
                pull_counts=PullCounts(),
                subscription=self._subscription,
                is_paused=lambda _: False,
                announce=self._announce,
                changed=self._changed,
            )
        )

    # What brokers are asked

    async def lock(self, queues: Iterable[Queue]) -> set[Queue]:
        part = list(queues)
        self.asked.append(("lock", part))
        if part[0].broker in self.silent:
            raise TimedOut("no answer")
        return set(part) - self.refused

    async def unlock(self, queues: Iterable[Queue]) -> None:
        self.asked.append(("unlock", list(queues)))

    async def committed(self, queue: Queue) -> int | None:
        self.asked.append(("committed", queue))
        if queue.broker in self.silent:
            raise TimedOut("no answer")
        return self.progress.get(queue, 5)

    async def commit(self, queue: Queue, offset: int, *, is_awaited: bool = False) -> None:
        self.asked.append(("commit", (queue, offset, is_awaited)))
        self.begun.set()
        await self.may_answer.wait()

    async def begin(self, queue: Queue) -> int:
        raise AssertionError("a broker corrects what is too small")

    async def end(self, queue: Queue) -> int:
        self.asked.append(("end", queue))
        return 77

    async def search(self, queue: Queue, timestamp_ms: int) -> int:
        self.asked.append(("search", (queue, timestamp_ms)))
        return 33

    async def pull(self, *args: object, **kwargs: object) -> None:
        await asyncio.Event().wait()

    # What a member lends

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        raise AssertionError("nothing is pulled here")

    async def _resend(self, message: Received, level: int, retry_count_max: int) -> None:
        raise AssertionError("nothing is sent back here")

    def _subscription(self, topic: str) -> tuple[Subscription, int]:
        return by_tags(topic), 1

    async def _announce(self) -> None:
        """There is no one to notify."""

    def _changed(self) -> None:
        self.round_count += 1

    async def close(self) -> None:
        tasks = [held.task for held in self.holding.held.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.row("REB-12", "PULL-8")
async def test_a_queue_is_locked_before_its_offset_is_read() -> None:
    brokers = Brokers()
    assert await brokers.holding.take_up([A0, A1]) == [A0, A1]
    assert brokers.asked == [("lock", [A0, A1]), ("committed", A0), ("committed", A1)]
    await brokers.close()


# Where a queue starts


TIME = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.mark.row("REB-17", "U-05")
@pytest.mark.parametrize(
    ("start", "progress", "offset", "asked"),
    [
        pytest.param(Start.END, 0, 0, [], marks=pytest.mark.row("CFW-1")),
        pytest.param(Start.BEGINNING, 9, 9, [], marks=pytest.mark.row("CFW-1")),
        pytest.param(TIME, 9, 9, [], marks=pytest.mark.row("CFW-1")),
        pytest.param(Start.END, -1, 77, ["end"], marks=pytest.mark.row("CFW-1")),
        pytest.param(Start.END, None, 77, ["end"], marks=pytest.mark.row("CFW-2")),
        (Start.BEGINNING, None, 0, []),
        pytest.param(TIME, None, 33, ["search"], marks=pytest.mark.row("CFW-4")),
    ],
)
async def test_saved_progress_decides_where_a_queue_starts_and_the_policy_where_there_is_none(
    start: Start | datetime, progress: int | None, offset: int, asked: list[str]
) -> None:
    brokers = Brokers(ConsumerSettings(start=start))
    brokers.progress = {A0: progress}
    assert await brokers.holding.take_up([A0]) == [A0]
    assert brokers.holding.held[A0].puller.next_offset == offset
    assert [what for what, _ in brokers.asked] == ["committed", *asked]
    if asked == ["search"]:
        assert brokers.asked[-1] == ("search", (A0, 1767323045678))
    await brokers.close()


@pytest.mark.row("CFW-2", "CFW-4", "U-05")
@pytest.mark.parametrize("start", [Start.END, Start.BEGINNING, TIME])
async def test_a_retry_topic_starts_at_its_beginning_whatever_the_policy(
    start: Start | datetime,
) -> None:
    retry = Queue("%RETRY%g", "a", 0)
    brokers = Brokers(ConsumerSettings(start=start))
    brokers.progress = {retry: None}
    assert await brokers.holding.take_up([retry]) == [retry]
    assert brokers.holding.held[retry].puller.next_offset == 0
    assert [what for what, _ in brokers.asked] == ["committed"]
    await brokers.close()


@pytest.mark.row("CFW-5", "U-05")
async def test_a_queue_whose_progress_cannot_be_read_waits_for_the_next_round() -> None:
    brokers = Brokers(ConsumerSettings())
    brokers.silent = {"a"}
    # It keeps no other queue away, and its own start is not guessed.
    assert await brokers.holding.take_up([A0, B0]) == [B0]
    assert A0 not in brokers.holding.assignment
    assert "end" not in [what for what, _ in brokers.asked]
    brokers.silent = set()
    missing = brokers.holding.assignment.missing([A0, B0])
    assert await brokers.holding.take_up(missing) == [A0]
    assert brokers.holding.held[A0].puller.next_offset == 5
    await brokers.close()


@pytest.mark.row("REB-12")
async def test_a_queue_that_is_taken_on_again_has_no_progress_of_before() -> None:
    brokers = Brokers(ConsumerSettings())
    await brokers.holding.take_up([A0])
    brokers.offsets.update(A0, 900, increase_only=True)
    old = brokers.holding.held[A0]
    brokers.holding.assignment.drop(A0)
    assert await brokers.holding.release(A0)
    brokers.progress = {A0: 40}
    await brokers.holding.take_up([A0])
    # What still ends of the time before changes nothing of the time after.
    old.settlement.committed(1, 901)
    assert brokers.offsets.get(A0) is None
    assert brokers.holding.held[A0].puller.next_offset == 40
    await brokers.close()


@pytest.mark.row("CB-4")
async def test_an_illegal_offset_drops_its_queue_and_sets_progress_for_the_next_round() -> None:
    brokers = Brokers(ConsumerSettings())
    await brokers.holding.take_up([A0])
    held = brokers.holding.held[A0]
    brokers.offsets.update(A0, 900, increase_only=True)
    brokers.asked.clear()
    await brokers.holding.reset(A0, 40)
    assert held.cached.is_dropped
    assert A0 not in brokers.holding.assignment
    assert brokers.asked == [("commit", (A0, 40, False))]
    assert brokers.round_count == 1
    await brokers.close()


# Locks


@pytest.mark.row("REB-12")
async def test_a_queue_whose_lock_is_refused_waits_for_the_next_round() -> None:
    brokers = Brokers()
    brokers.refused = {A1}
    assert await brokers.holding.take_up([A0, A1]) == [A0]
    assert A1 not in brokers.holding.assignment
    await brokers.close()


@pytest.mark.row("REB-16")
async def test_a_broker_that_does_not_answer_keeps_no_queue_of_another_away() -> None:
    brokers = Brokers()
    brokers.silent = {"a"}
    assert await brokers.holding.take_up([A0, B0]) == [B0]
    await brokers.close()


@pytest.mark.parametrize(
    "settings", [ConsumerSettings(), ConsumerSettings(is_orderly=True, model=Model.BROADCASTING)]
)
async def test_only_an_orderly_member_of_a_sharing_group_locks(settings: ConsumerSettings) -> None:
    brokers = Brokers(settings)
    await brokers.holding.take_up([A0])
    assert [what for what, _ in brokers.asked] == ["committed"]
    await brokers.close()


@pytest.mark.row("ORD-1")
async def test_locks_are_renewed_all_of_a_broker_in_one_request() -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0, A1, B0])
    brokers.asked.clear()
    began_s = asyncio.get_running_loop().time()
    await brokers.holding.renew_locks()
    assert brokers.asked == [("lock", [A0, A1]), ("lock", [B0])]
    assert all((held.cached.locked_at_s or 0) >= began_s for held in brokers.holding.held.values())
    await brokers.close()


@pytest.mark.row("ORD-1")
async def test_a_queue_that_another_has_locked_is_dropped_without_a_commit() -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0, A1])
    brokers.offsets.update(A0, 9, increase_only=True)
    brokers.refused = {A0}
    await brokers.holding.renew_locks()
    cached = brokers.holding.assignment.get(A0)
    assert cached is not None
    assert cached.is_dropped
    assert brokers.round_count == 1
    assert await brokers.holding.release(A0)
    assert "commit" not in [what for what, _ in brokers.asked]
    other = brokers.holding.assignment.get(A1)
    assert other is not None
    assert not other.is_dropped
    await brokers.close()


@pytest.mark.row("ORD-1")
@pytest.mark.parametrize("is_moving", [False, True], ids=["kept", "moving"])
@pytest.mark.parametrize(("known", "is_lost"), [(5, False), (6, True)])
async def test_a_lock_is_not_trusted_while_a_listener_outlasts_it(
    known: int, is_lost: bool, is_moving: bool
) -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0])
    cached = brokers.holding.held[A0].cached
    cached.put([Received.of("t", b"slow")])
    began_s = asyncio.get_running_loop().time()
    cached.take(1, began_s - cached.lock_s_max - 1)
    if is_moving:
        brokers.holding.assignment.drop(A0)
    # Its broker has restarted without the lock: another member had the queue, and released it.
    brokers.progress[A0] = known
    await brokers.holding.renew_locks()
    assert cached.is_lost == is_lost
    assert is_lost or (cached.locked_at_s or 0) >= began_s
    await brokers.close()


@pytest.mark.row("ORD-1", "PQ-2")
async def test_a_broker_that_does_not_answer_leaves_locks_until_they_are_stale() -> None:
    brokers = Brokers(ConsumerSettings(is_orderly=True, lock_renew_s=1.0, lock_s_max=2.0))
    await brokers.holding.take_up([A0])
    cached = brokers.holding.held[A0].cached
    locked_at_s = cached.locked_at_s
    brokers.silent = {"a"}
    await brokers.holding.renew_locks()
    assert cached.locked_at_s == locked_at_s
    assert locked_at_s is not None
    assert cached.is_locked(locked_at_s + 2.0)
    assert not cached.is_locked(locked_at_s + 2.1)
    await brokers.close()


@pytest.mark.row("PQ-2")
def test_a_lock_must_be_renewed_before_it_is_stale() -> None:
    with pytest.raises(ValueError, match="lock_renew_s"):
        ConsumerSettings(lock_renew_s=30.0)


class Busy:
    """A queue whose listener runs until it is released."""

    def __init__(self) -> None:
        self.is_free = False

    async def settle(self, message: Received, verdict: Verdict) -> None:
        """Nothing is settled here."""

    async def is_at_rest(self, timeout_s: float) -> bool:
        return self.is_free


@pytest.mark.row("REB-15", "REB-10")
async def test_a_queue_is_given_up_when_its_listener_has_ended_and_its_offset_is_known() -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0])
    busy = brokers.holding.held[A0].settlement.order = Busy()
    brokers.offsets.update(A0, 9, increase_only=True)
    brokers.asked.clear()
    brokers.holding.assignment.drop(A0)
    assert not await brokers.holding.release(A0)
    assert A0 in brokers.holding.assignment
    assert brokers.asked == []
    busy.is_free = True
    assert await brokers.holding.release(A0)
    assert A0 not in brokers.holding.assignment
    # Awaited: a lock that is free before the offset is there would repeat messages elsewhere.
    assert brokers.asked == [("commit", (A0, 9, True)), ("unlock", [A0])]


@pytest.mark.row("ORD-11")
async def test_leaving_commits_everything_and_then_unlocks_it_at_once() -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0, A1, B0])
    brokers.offsets.update(A1, 7, increase_only=True)
    brokers.asked.clear()
    await brokers.holding.leave()
    assert brokers.asked == [
        ("commit", (A1, 7, True)),
        ("unlock", [A0, A1]),
        ("unlock", [B0]),
    ]
    assert all(cached.is_dropped for _, cached in brokers.holding.assignment.items())
    await brokers.close()
