"""One queue is pulled: what precedes a request, and what follows each answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tests.sdk.memorynet import now, pass_time, run, settle
from tests.sdk.stored import stored

from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.sdk.consumer.broker_calls import BrokerCalls, Pulled, PullStatus
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import Limit, ProcessQueue
from rockgate.sdk.consumer.queues.puller import FLOW_S, PullContext, PullCounts, Puller
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Model
from rockgate.sdk.consumer.subscription import Subscription, by_tags
from rockgate.sdk.errors import Closed, Refused, SdkError, TimedOut, Unreachable
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

QUEUE = Queue("t", "a", 0)
RETRY = Queue("%RETRY%g", "a", 0)
BROADCASTING = ConsumerSettings(model=Model.BROADCASTING)


@dataclass(frozen=True, slots=True)
class Asked:
    at_s: float
    offset: int
    commit_offset: int | None


@dataclass(frozen=True)
class Cached:
    """A message with the fields that a queue reads."""

    offset: int
    body_size: int


class Pulling:
    """A puller over a broker that answers one after the other what it is given, and then holds."""

    group = "g"
    namespace = ""

    def __init__(
        self,
        *answers: Pulled | Exception,
        queue: Queue = QUEUE,
        tags: str = "*",
        settings: ConsumerSettings | None = None,
        hooks: tuple[ConsumeHook, ...] = (),
    ) -> None:
        self.began_s = now()
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.under_way = 0
        self.handed: list[list[int]] = []
        self.corrected: list[int] = []
        self.announced = 0
        self.is_paused = False
        self.counts = PullCounts()
        self.offsets = OffsetTable()
        self.wanted: Subscription | None = by_tags(queue.topic, tags)
        self.cached: ProcessQueue[Received] = ProcessQueue(now())
        settings = settings or ConsumerSettings()
        context = PullContext(
            calls=cast("BrokerCalls", self),
            settings=settings,
            offsets=self.offsets,
            counts=self.counts,
            subscription=lambda _: None if self.wanted is None else (self.wanted, 7),
            limits=lambda _: settings.flow,
            is_paused=lambda _: self.is_paused,
            hand_over=self._hand_over,
            announce=self._announce,
            offset_illegal=self._correct,
            hooks=hooks,
        )
        self.puller = Puller(context, queue, self.cached, 100, None)
        self.task = asyncio.get_running_loop().create_task(self.puller.run())

    async def pull(
        self,
        queue: Queue,
        offset: int,
        subscription: Subscription,
        *,
        count_max: int,
        sub_version: int,
        commit_offset: int | None,
        with_expression: bool,
    ) -> Pulled:
        assert (subscription, count_max, sub_version) == (self.wanted, 32, 7)
        self.asked.append(Asked(now() - self.began_s, offset, commit_offset))
        self.under_way += 1
        assert self.under_way == 1
        try:
            await asyncio.sleep(0)
            if not self.answers:
                await asyncio.Event().wait()
            answer = self.answers.pop(0)
        finally:
            self.under_way -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def fill(self, *messages: Cached) -> None:
        self.cached.put(cast("list[Received]", list(messages)))

    @property
    def offsets_asked(self) -> list[int]:
        return [asked.offset for asked in self.asked]

    @property
    def times_asked(self) -> list[float]:
        return [round(asked.at_s, 3) for asked in self.asked]

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError, Closed):
            await self.task

    def _hand_over(
        self, queue: Queue, cached: ProcessQueue[Received], messages: list[Received]
    ) -> None:
        assert cached is self.cached
        self.handed.append([message.offset for message in messages])

    async def _announce(self) -> None:
        self.announced += 1

    async def _correct(self, queue: Queue, offset: int) -> None:
        self.corrected.append(offset)


def found(*offsets: int, tag: str = "", next_offset: int | None = None) -> Pulled:
    return Pulled(
        status=PullStatus.FOUND,
        next_offset=offsets[-1] + 1 if next_offset is None else next_offset,
        min_offset=0,
        max_offset=1000,
        body=b"".join(stored("t", offset, tag=tag) for offset in offsets),
    )


def nothing(status: PullStatus, next_offset: int) -> Pulled:
    return Pulled(status=status, next_offset=next_offset, min_offset=0, max_offset=1000)


def virtual(scenario: Coroutine[Any, Any, None]) -> None:
    run(scenario)


# Before a request


@pytest.mark.row("PULL-1")
def test_a_queue_that_is_dropped_is_not_pulled_and_what_a_pull_still_brings_is_discarded() -> None:
    async def scenario() -> None:
        before = Pulling(found(100))
        before.cached.is_dropped = True
        await before.task
        assert before.asked == []

        meanwhile = Pulling(found(100))
        await asyncio.sleep(0)
        meanwhile.cached.is_dropped = True
        await meanwhile.task
        assert meanwhile.offsets_asked == [100]
        assert meanwhile.handed == []
        assert meanwhile.cached.is_empty
        assert meanwhile.offsets.all() == {}

    virtual(scenario())


@pytest.mark.row("PULL-2")
def test_a_queue_that_is_held_back_is_stamped_in_every_turn_and_does_not_count_as_idle() -> None:
    async def scenario() -> None:
        pulling = Pulling(settings=ConsumerSettings(flow=FlowLimits(count_max=1)))
        pulling.fill(Cached(1, 1), Cached(2, 1))
        await pass_time(500.0)
        assert pulling.asked == []
        assert now() - pulling.cached.pulled_at_s <= FLOW_S
        assert not pulling.cached.is_pull_expired(now())
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("TRAP-4")
@pytest.mark.parametrize(
    ("fill", "limit"),
    [
        pytest.param(
            [Cached(n, 1) for n in range(1001)], Limit.COUNT, marks=pytest.mark.row("PULL-5")
        ),
        pytest.param(
            [Cached(0, 100 << 20), Cached(1, 1)], Limit.SIZE, marks=pytest.mark.row("PULL-6")
        ),
        pytest.param([Cached(0, 1), Cached(2001, 1)], Limit.SPAN, marks=pytest.mark.row("PULL-7")),
    ],
)
def test_a_queue_over_a_limit_is_looked_at_every_50_ms_and_pulled_when_it_is_under_it(
    fill: list[Cached], limit: Limit, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        pulling = Pulling()
        pulling.fill(*fill[:-1])
        await settle()
        assert pulling.times_asked == [0.0], "what reaches a limit does not exceed it"
        await pulling.end()

        pulling = Pulling()
        pulling.fill(*fill)
        await pass_time(10.01)
        assert pulling.asked == []
        assert pulling.counts.held_back == {**dict.fromkeys(Limit, 0), limit: 201}
        pulling.cached.finish(cast("list[Received]", fill[-1:]), now())
        await pass_time(0.05)
        assert pulling.times_asked == [10.05]
        await pulling.end()

    with caplog.at_level(logging.WARNING):
        virtual(scenario())


@pytest.mark.row("PULL-5", "TRAP-7")
@pytest.mark.parametrize("count_max", [1000, 7], ids=["by default", "whatever the limit is"])
def test_a_queue_that_is_held_back_is_warned_of_every_thousandth_time(
    count_max: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        pulling = Pulling(settings=ConsumerSettings(flow=FlowLimits(count_max=count_max)))
        pulling.fill(*(Cached(n, 1) for n in range(1001)))
        await pass_time(50.01)
        assert pulling.counts.held_back[Limit.COUNT] == 1001
        await pulling.end()

    with caplog.at_level(logging.WARNING):
        virtual(scenario())
    assert len([each for each in caplog.records if "holds 1001 messages" in each.message]) == 2


@pytest.mark.row("PULL-7")
def test_the_span_of_a_queue_in_order_does_not_hold_it_back() -> None:
    async def scenario() -> None:
        pulling = Pulling(settings=ConsumerSettings(is_orderly=True))
        pulling.cached.locked_at_s = now()
        pulling.fill(Cached(0, 1), Cached(5000, 1))
        await settle()
        assert pulling.times_asked == [0.0]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("PULL-4")
def test_a_queue_that_is_paused_is_looked_at_every_second() -> None:
    async def scenario() -> None:
        pulling = Pulling(found(100))
        pulling.is_paused = True
        await pass_time(2.5)
        assert pulling.asked == []
        assert now() - pulling.cached.pulled_at_s == pytest.approx(0.5)
        pulling.is_paused = False
        await pass_time(1.0)
        assert pulling.times_asked == [3.0, 3.0]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("PULL-8")
def test_a_queue_in_order_is_not_pulled_without_its_lock() -> None:
    async def scenario() -> None:
        pulling = Pulling(found(100), settings=ConsumerSettings(is_orderly=True))
        await pass_time(2.5)
        assert pulling.asked == []
        pulling.cached.locked_at_s = now()
        await pass_time(1.0)
        assert pulling.times_asked == [3.0, 3.0]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("PULL-9", "SUB-10")
def test_a_queue_whose_subscription_is_missing_is_pulled_when_it_is_there_again() -> None:
    async def scenario() -> None:
        pulling = Pulling()
        wanted, pulling.wanted = pulling.wanted, None
        await pass_time(2.5)
        assert pulling.asked == []
        pulling.wanted = wanted
        await pass_time(1.0)
        assert [(asked.at_s, asked.offset) for asked in pulling.asked] == [(3.0, 100)]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("PULL-10")
@pytest.mark.parametrize(
    ("settings", "known", "carried"),
    [
        (ConsumerSettings(), None, None),
        (ConsumerSettings(), 0, None),
        (ConsumerSettings(), 42, 42),
        (BROADCASTING, 42, None),
    ],
)
def test_a_pull_carries_the_progress_of_a_clustering_group_when_it_is_above_0(
    settings: ConsumerSettings, known: int | None, carried: int | None
) -> None:
    async def scenario() -> None:
        pulling = Pulling(settings=settings)
        if known is not None:
            pulling.offsets.update(QUEUE, known, increase_only=True)
        await settle()
        assert pulling.asked == [Asked(0.0, 100, carried)]
        await pulling.end()

    virtual(scenario())


# Answers


@pytest.mark.row("CB-1", "PMS-2", "PMS-5")
def test_what_is_found_is_handed_over_and_the_next_pull_follows_at_once() -> None:
    async def scenario() -> None:
        pulling = Pulling(found(100, 101), found(102, next_offset=110), found(110))
        await settle()
        # Nothing of it is finished yet, and one pull is under way all the time.
        assert pulling.offsets_asked == [100, 102, 110, 111]
        assert pulling.times_asked == [0.0] * 4
        assert pulling.under_way == 1
        assert pulling.handed == [[100, 101], [102], [110]]
        assert pulling.cached.bounds == (100, 110)
        assert pulling.offsets.all() == {}, "nothing is finished"
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("CB-1")
@pytest.mark.parametrize("answer", [found(100, next_offset=50), found(60, 61, next_offset=200)])
def test_an_answer_that_goes_backwards_is_logged(
    answer: Pulled, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        pulling = Pulling(found(100, next_offset=100), answer)
        await settle()
        assert pulling.offsets_asked == [100, 100, answer.next_offset], "and followed all the same"
        await pulling.end()

    with caplog.at_level(logging.WARNING):
        virtual(scenario())
    (record,) = caplog.records
    assert "t/a/0 was pulled from 100 on, and the broker returned" in record.message


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(PullStatus.NO_NEW_MESSAGE, marks=pytest.mark.row("CB-2")),
        pytest.param(PullStatus.NO_MATCHED_MESSAGE, marks=pytest.mark.row("CB-3")),
    ],
)
def test_nothing_found_moves_the_offset_and_progress_and_the_next_pull_follows(
    status: PullStatus,
) -> None:
    async def scenario() -> None:
        pulling = Pulling(nothing(status, 120), found(120), nothing(status, 150))
        await settle()
        assert pulling.offsets_asked == [100, 120, 121, 150]
        assert pulling.times_asked == [0.0] * 4
        # 120 is not finished: progress may not pass it.
        assert pulling.offsets.get(QUEUE) == 120
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("SUB-11")
def test_progress_moves_over_what_does_not_match_but_not_back_nor_over_what_is_cached() -> None:
    async def scenario() -> None:
        none = PullStatus.NO_MATCHED_MESSAGE
        pulling = Pulling(nothing(none, 400), found(400, 401, tag="other"), tags="mine")
        await settle()
        assert pulling.offsets.get(QUEUE) == 402
        pulling.offsets.update(QUEUE, 500, increase_only=True)
        await pulling.end()

        pulling = Pulling(nothing(none, 400))
        pulling.offsets.update(QUEUE, 500, increase_only=True)
        await settle()
        assert pulling.offsets.get(QUEUE) == 500
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("SUB-7")
def test_a_tag_that_only_hashes_alike_is_not_delivered_and_pulled_past_at_once() -> None:
    async def scenario() -> None:
        # Java gives both tags one hash, so a broker sends both.
        pulling = Pulling(found(100, 101, tag="BBBB"), found(102, tag="AaAa"), tags="AaAa")
        await settle()
        assert pulling.times_asked == [0.0] * 3
        assert pulling.offsets_asked == [100, 102, 103]
        assert pulling.handed == [[102]]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("CB-4")
def test_an_illegal_offset_is_corrected_at_once_and_ends_the_puller() -> None:
    async def scenario() -> None:
        pulling = Pulling(nothing(PullStatus.OFFSET_ILLEGAL, 700))
        await pulling.task
        assert pulling.corrected == [700]
        assert now() == pulling.began_s
        assert pulling.handed == []

    virtual(scenario())


@pytest.mark.row("CB-5")
@pytest.mark.parametrize(
    "failed", [TimedOut("late"), Unreachable("gone"), Refused("pull", 1, "no"), SdkError("odd")]
)
@pytest.mark.parametrize("queue", [QUEUE, RETRY])
def test_a_pull_that_fails_is_warned_of_and_made_again_later(
    failed: SdkError, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        pulling = Pulling(failed, queue=queue)
        await pass_time(1.5)
        assert pulling.times_asked == [0.0, 1.0]
        assert pulling.offsets_asked == [100, 100]
        assert pulling.counts.failed == 1
        await pulling.end()

    with caplog.at_level(logging.WARNING):
        virtual(scenario())
    assert [each.levelname for each in caplog.records] == (["WARNING"] if queue is QUEUE else [])


def test_a_broker_that_does_not_know_the_group_is_told_of_it() -> None:
    async def scenario() -> None:
        unknown = Refused("pull", ResponseCode.SUBSCRIPTION_NOT_EXIST, "who?")
        pulling = Pulling(unknown)
        await pass_time(1.5)
        assert pulling.times_asked == [0.0, 1.0]
        assert (pulling.announced, pulling.counts.failed) == (1, 0)
        await pulling.end()

    virtual(scenario())


# The loop


@pytest.mark.row("PMS-1")
@pytest.mark.parametrize(
    "failed",
    [
        TimedOut("late"),
        ZeroDivisionError(),
        Pulled(
            status=PullStatus.FOUND, next_offset=9, min_offset=0, max_offset=9, body=b"\0\0\0\x07"
        ),
    ],
    ids=["of the SDK", "of a hook", "unreadable"],
)
def test_pulling_survives_any_error_of_a_pull(failed: Pulled | Exception) -> None:
    async def scenario() -> None:
        pulling = Pulling(failed, found(100))
        await pass_time(1.5)
        assert pulling.offsets_asked == [100, 100, 101]
        assert pulling.handed == [[100]]
        assert pulling.counts.failed == 1
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("PMS-1", "PMS-4")
@pytest.mark.parametrize("way", ["cancelled", "client closed"])
def test_pulling_for_a_group_that_is_gone_ends_with_a_log_line(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        pulling = Pulling(*([Closed("over")] if way == "client closed" else []))
        await settle()
        assert pulling.task.done() is (way == "client closed")
        await pulling.end()
        await pass_time(5.0)
        assert pulling.offsets_asked == [100]

    with caplog.at_level(logging.INFO):
        virtual(scenario())
    assert [each.message for each in caplog.records] == ["group g pulls t/a/0 no more"]


@pytest.mark.row("PMS-3")
def test_a_pull_that_waits_for_its_time_is_dropped_when_pulling_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        settings = ConsumerSettings(retry_s=3.0)
        pulling = Pulling(TimedOut("late"), TimedOut("late"), settings=settings)
        await pass_time(4.0)
        assert pulling.times_asked == [0.0, 3.0]
        await pulling.end()
        await pass_time(10.0)
        assert pulling.times_asked == [0.0, 3.0]

    with caplog.at_level(logging.INFO):
        virtual(scenario())
    assert caplog.records[-1].message == "group g pulls t/a/0 no more"


# Hooks


class Picking(ConsumeHook):
    """Wants even offsets alone, and remembers what it saw."""

    def __init__(self, *, fails: bool = False) -> None:
        self.seen: list[list[int]] = []
        self.fails = fails

    def filter(self, messages: Any) -> Any:
        self.seen.append([message.offset for message in messages])
        if self.fails:
            raise ZeroDivisionError
        return [message for message in messages if message.offset % 2 == 0]


@pytest.mark.row("SUB-8")
def test_filter_hooks_see_what_a_pull_brought_before_it_is_handed_over() -> None:
    async def scenario() -> None:
        first, second = Picking(), Picking()
        answers = found(100, 101, 102), found(103), found(104, tag="x")
        pulling = Pulling(*answers, hooks=(first, second))
        await settle()
        assert first.seen == [[100, 101, 102], [103], [104]]
        assert second.seen == [[100, 102], [104]], "what the one before it wants"
        assert pulling.handed == [[100, 102], [104]]
        assert pulling.offsets_asked == [100, 103, 104, 105]
        await pulling.end()

    virtual(scenario())


@pytest.mark.row("SUB-8")
def test_a_filter_hook_that_fails_takes_nothing_away() -> None:
    async def scenario() -> None:
        pulling = Pulling(found(100, 101), hooks=(Picking(fails=True),))
        await settle()
        assert pulling.handed == [[100, 101]]
        await pulling.end()

    virtual(scenario())
