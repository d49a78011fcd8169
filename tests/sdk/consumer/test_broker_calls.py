"""What a member's calls are on the wire, and whom they are made to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import fields as fields_of
from typing import Any

import msgspec
import pytest
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle
from tests.sdk.stored import stored

from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import pull as pull_flags
from rockgate.sdk import Client, PullConsumer
from rockgate.sdk.client.connection import Link, LinkSettings
from rockgate.sdk.consumer.broker_calls import BrokerCalls, PullStatus
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.pull.pull_consumer import PullResult
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.queues.puller import PullContext, PullCounts, Puller
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits
from rockgate.sdk.consumer.subscription import by_sql, by_tags
from rockgate.sdk.errors import NoRoute, Refused, SdkError, TimedOut, Unreachable
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

QUEUE = Queue("t", "a", 3)


class Brokers:
    """A broker with a slave, and the calls of group `g` over one client."""

    def __init__(self) -> None:
        self.net = MemoryNet()
        self.addresses = {"0": "m:1", "1": "s:1"}
        self.has_broker = True
        self.name_server = self.net.listen("n:1")
        self.name_server.script[105] = self._route
        self.master, self.slave = self.net.listen("m:1"), self.net.listen("s:1")
        for peer in (self.master, self.slave):
            peer.script[11] = peer.script[361] = lambda _: answered()
        self.client = Client("n:1", instance="one", dial=self.net.dial)
        self.calls = BrokerCalls(self.client, "g")

    def _route(self, request: Command) -> Command:
        brokers = {"a": self.addresses} if self.has_broker else {"b": {"0": "b:1"}}
        body: dict[str, Any] = {
            "brokerDatas": [
                {"brokerName": name, "cluster": "c", "brokerAddrs": addresses}
                for name, addresses in brokers.items()
            ],
            "queueDatas": [
                {"brokerName": name, "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
                for name in brokers
            ],
        }
        return Command(0, body=msgspec.json.encode(body))

    def pulls(self, peer: Peer | None = None) -> list[Command]:
        return (peer or self.master).of(11)


def answered(code: int = 0, *, suggested: int = 0, next_offset: int = 9, body: bytes = b"") -> Any:
    header = {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(next_offset),
        "minOffset": "2",
        "maxOffset": "77",
    }
    return Command(code, header, body)


def in_world(scenario: Callable[[Brokers], Awaitable[None]]) -> None:
    async def opened() -> None:
        world = Brokers()
        async with world.client:
            await scenario(world)

    run(opened())


# The request


@pytest.mark.row("PULL-16")
def test_a_pull_carries_what_to_read_how_long_to_wait_and_what_is_wanted() -> None:
    async def scenario(world: Brokers) -> None:
        await world.calls.pull(
            QUEUE,
            42,
            by_sql("t", "price > 10"),
            count_max=16,
            sub_version=1234,
            commit_offset=40,
            suspend_ms=15_000,
            with_expression=True,
        )
        (request,) = world.pulls()
        assert request.code == 11
        assert request.fields == {
            "consumerGroup": "g",
            "topic": "t",
            "queueId": "3",
            "queueOffset": "42",
            "maxMsgNums": "16",
            "sysFlag": "7",
            "commitOffset": "40",
            "suspendTimeoutMillis": "15000",
            "subscription": "price > 10",
            "expressionType": "SQL92",
            "subVersion": "1234",
            "bname": "a",
        }

    in_world(scenario)


@pytest.mark.row("PULL-12")
@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"suspend_ms": 0}, 0),
        ({"suspend_ms": 0, "commit_offset": 5}, 1),
        ({"suspend_ms": 100}, 2),
        ({"suspend_ms": 0, "with_expression": True}, 4),
        ({"suspend_ms": 0, "is_lite": True}, 16),
        ({"commit_offset": 5, "with_expression": True, "is_lite": True}, 1 | 2 | 4 | 16),
    ],
)
def test_each_flag_of_a_pull_has_its_bit(options: dict[str, Any], flags: int) -> None:
    async def scenario(world: Brokers) -> None:
        await world.calls.pull(QUEUE, 42, by_tags("t"), count_max=1, **options)
        (request,) = [each for each in world.master.asked if each.code in (11, 361)]
        assert request.fields["sysFlag"] == str(flags)

    in_world(scenario)
    # We do not use filter classes; a server has to know the bit nevertheless.
    assert pull_flags.CLASS_FILTER == 8


@pytest.mark.row("PULL-11")
def test_an_expression_travels_only_when_it_is_asked_for_and_no_class_ever_does() -> None:
    async def scenario(world: Brokers) -> None:
        for wanted in (by_tags("t", "red || blue"), by_sql("t", "a = 1")):
            for is_asked_for in (False, True):
                await world.calls.pull(QUEUE, 0, wanted, count_max=1, with_expression=is_asked_for)
                request = world.pulls()[-1]
                flags = int(request.fields["sysFlag"])
                expected = wanted.expression if is_asked_for else None
                assert request.fields.get("subscription") == expected
                assert bool(flags & 4) is is_asked_for
                assert not flags & 8
                assert request.fields["expressionType"] == wanted.kind

    in_world(scenario)


@pytest.mark.row("PULL-17")
def test_a_pull_is_awaited_or_run_as_a_task_and_never_one_way() -> None:
    async def scenario(world: Brokers) -> None:
        awaited = await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1)
        task = asyncio.create_task(world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1))
        assert await task == awaited
        assert [request.is_oneway for request in world.pulls()] == [False, False]

    in_world(scenario)
    for pull in (BrokerCalls.pull, PullConsumer.pull):
        assert not [name for name in inspect.signature(pull).parameters if "way" in name]


# Whom


@pytest.mark.row("PULL-14")
def test_the_broker_to_ask_is_the_one_last_suggested_and_the_master_at_first() -> None:
    async def scenario(world: Brokers) -> None:
        world.master.script[11] = lambda _: answered(suggested=1)

        async def pull(queue: Queue = QUEUE) -> None:
            await world.calls.pull(queue, 0, by_tags("t"), count_max=1)

        await pull()
        assert (len(world.pulls()), len(world.pulls(world.slave))) == (1, 0)
        await pull()
        assert (len(world.pulls()), len(world.pulls(world.slave))) == (1, 1)
        await pull()
        assert (len(world.pulls()), len(world.pulls(world.slave))) == (2, 1), "suggested by slave"
        # Each queue has its own, and a broker that does not exist is not asked.
        await pull(Queue("t", "a", 0))
        assert (len(world.pulls()), len(world.pulls(world.slave))) == (3, 1)
        world.master.script[11] = lambda _: answered(suggested=7)
        await pull(Queue("t", "a", 1))
        await pull(Queue("t", "a", 1))
        assert (len(world.pulls()), len(world.pulls(world.slave))) == (5, 1)

    in_world(scenario)


@pytest.mark.row("PULL-14")
def test_a_broker_that_is_not_in_the_route_is_looked_up_once_more() -> None:
    async def scenario(world: Brokers) -> None:
        world.has_broker = False
        with pytest.raises(NoRoute, match="Topic t has left broker a"):
            await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1)
        assert len(world.name_server.of(105)) == 2
        world.has_broker = True
        await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1)
        assert len(world.name_server.of(105)) == 3
        assert len(world.pulls()) == 1

    in_world(scenario)


@pytest.mark.row("PULL-15")
def test_progress_is_not_sent_to_a_slave() -> None:
    async def scenario(world: Brokers) -> None:
        world.master.script[11] = lambda _: answered(suggested=1)
        for _ in range(2):
            await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1, commit_offset=5)
        (to_master,), (to_slave,) = world.pulls(), world.pulls(world.slave)
        assert (to_master.fields["sysFlag"], to_master.fields["commitOffset"]) == ("3", "5")
        assert (to_slave.fields["sysFlag"], to_slave.fields["commitOffset"]) == ("2", "0")

    in_world(scenario)


# The answer


@pytest.mark.row("CB-6")
@pytest.mark.parametrize(
    ("code", "status", "found"),
    [
        (0, PullStatus.FOUND, [7, 8]),
        (19, PullStatus.NO_NEW_MESSAGE, []),
        (20, PullStatus.NO_MATCHED_MESSAGE, []),
        (21, PullStatus.OFFSET_ILLEGAL, []),
    ],
)
def test_a_result_has_a_status_three_offsets_and_messages(
    code: int, status: PullStatus, found: list[int]
) -> None:
    async def scenario(world: Brokers) -> None:
        body = b"".join(stored("t", offset, queue_id=3) for offset in found)
        world.master.script[11] = lambda _: answered(code, body=body)
        async with PullConsumer(client=world.client, group="g") as consumer:
            result = await consumer.pull(QUEUE, 7)
        assert (result.status, result.next_offset) == (status, 9)
        assert (result.min_offset, result.max_offset) == (2, 77)
        assert [message.offset for message in result.messages] == found

    in_world(scenario)
    names = {each.name for each in fields_of(PullResult)}
    assert names == {"status", "next_offset", "min_offset", "max_offset", "messages"}


@pytest.mark.row("CB-0")
def test_an_answer_is_decoded_and_filtered_and_its_hint_kept_before_anyone_acts_on_it() -> None:
    async def scenario(world: Brokers) -> None:
        body = b"".join(stored("t", n, queue_id=3, tag=tag) for n, tag in enumerate(["x", "y"]))
        world.master.script[11] = lambda _: answered(suggested=1, body=body)
        hints: list[int] = []
        seen: list[tuple[str, bytes, str | None]] = []

        def hand_over(
            queue: Queue, cached: ProcessQueue[Received], messages: list[Received]
        ) -> None:
            seen.extend((message.topic, message.body, message.tag) for message in messages)
            hints.append(world.calls._suggested[QUEUE])

        cached: ProcessQueue[Received] = ProcessQueue(now())
        context = PullContext(
            calls=world.calls,
            settings=ConsumerSettings(),
            offsets=OffsetTable(),
            counts=PullCounts(),
            subscription=lambda _: (by_tags("t", "y"), 1),
            limits=lambda _: FlowLimits(),
            is_paused=lambda _: False,
            hand_over=hand_over,
            announce=world.client.announce,
            offset_illegal=_never,
        )
        world.slave.script[11] = lambda _: None
        task = asyncio.create_task(Puller(context, QUEUE, cached, 0, None).run())
        await settle()
        assert seen == [("t", b"body", "y")]
        assert hints == [1]
        await settle()
        assert len(world.pulls(world.slave)) == 1
        task.cancel()
        await asyncio.wait([task])

    in_world(scenario)


@pytest.mark.row("CB-0")
@pytest.mark.parametrize("code", [19, 20, 21])
def test_a_hint_is_kept_of_an_answer_without_messages_too(code: int) -> None:
    async def scenario(world: Brokers) -> None:
        world.master.script[11] = lambda _: answered(code, suggested=1)
        for _ in range(2):
            await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1)
        assert len(world.pulls(world.slave)) == 1

    in_world(scenario)


@pytest.mark.row("PULL-18")
def test_an_answer_that_is_unreadable_missing_or_not_to_be_had_is_an_error_of_its_own() -> None:
    async def scenario(world: Brokers) -> None:
        async def failed(timeout_s: float = 30.0) -> SdkError:
            with pytest.raises(SdkError) as error:
                await world.calls.pull(QUEUE, 0, by_tags("t"), count_max=1, timeout_s=timeout_s)
            return error.value

        world.master.script[11] = lambda _: Command(0, {"nextBeginOffset": "many"})
        unreadable = await failed()
        world.master.script[11] = lambda _: None
        missing = await failed(2.0)
        world.master.is_down = True
        world.master.transport.lose()
        await pass_time(5.0)
        unreachable = await failed()
        assert [type(each) for each in (unreadable, missing, unreachable)] == [
            Refused,
            TimedOut,
            Unreachable,
        ]
        assert "invalid response" in str(unreadable)
        assert str(missing) == "PULL_MESSAGE to m:1: no response within 2 s."

    in_world(scenario)


@pytest.mark.row("PULL-18")
def test_messages_that_cannot_be_read_are_an_error_of_the_pull() -> None:
    async def scenario(world: Brokers) -> None:
        world.master.script[11] = lambda _: answered(body=stored("t", 7)[:-1])
        async with PullConsumer(client=world.client, group="g") as consumer:
            with pytest.raises(
                SdkError, match="Cannot decode the broker's messages: Message at byte 0"
            ):
                await consumer.pull(QUEUE, 7)

    in_world(scenario)


@pytest.mark.row("PULL-19")
def test_requests_under_way_are_bounded_and_waiting_for_a_place_counts_against_the_time() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = net.listen("m:1")
        peer.script[11] = lambda _: None
        link = Link("m:1", dial=net.dial, settings=LinkSettings(in_flight_max=2, silence_max_s=60))
        first = [asyncio.create_task(link.request(11, timeout_s=5.0)) for _ in range(2)]
        await settle()
        began_s = now()
        with pytest.raises(TimedOut, match="was not sent within 2 s"):
            await link.request(11, timeout_s=2.0)
        assert now() - began_s == pytest.approx(2.0)
        assert len(peer.asked) == 2, "it had no place, so it never left"

        late = asyncio.create_task(link.request(11, timeout_s=4.0))
        outcomes = await asyncio.gather(*first, return_exceptions=True)
        assert [type(each) for each in outcomes] == [TimedOut, TimedOut]
        assert now() - began_s == pytest.approx(5.0)
        # It waited three of its four seconds for a place; one is left for the answer.
        await settle()
        assert len(peer.asked) == 3
        with pytest.raises(TimedOut, match="no response within 4 s"):
            await late
        assert now() - began_s == pytest.approx(6.0)
        # Late answers give no place back a second time.
        for request in peer.asked:
            peer.transport.connection.respond(request, Command(0))
        peer.transport.flush()
        await settle()
        assert link.is_idle
        again = [asyncio.create_task(link.request(11, timeout_s=1.0)) for _ in range(3)]
        await settle()
        assert len(peer.asked) == 5
        await asyncio.gather(*again, return_exceptions=True)
        await link.close()

    run(scenario())


async def _never(queue: Queue, offset: int) -> None:
    raise AssertionError("no offset is illegal here")
