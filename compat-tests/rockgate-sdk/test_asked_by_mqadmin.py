"""Apache's mqadmin asks a running consumer of our own Python client, through every broker.

Apache RocketMQ is asked by the tool of its own version, rockgate by the newest one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from types import MappingProxyType

import pytest
import pytest_asyncio
from behaviours.bringing import CannotRun, leave_out
from behaviours.mqadmin import MqAdmin, rows
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker
from behaviours.sdk_suites import (
    READ_S,
    Listening,
    OnBroker,
    OnRocketMQ4,
    OnRocketMQ5,
    OnRockgate,
    asked,
    has,
    is_committed,
    numbered,
    send,
)
from bench.peers import PeerError, rocketmq
from tests.waiting import until

from rockgate.sdk import Client, Received, Retry

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
STATUS = asked("mqadmin asks our consumer: consumerStatus (307), consumerConnection")
DIRECTLY = asked("mqadmin has our consumer consume one message (309)")
RESET = asked("mqadmin resets our running consumer (220, or by the broker itself)")


class Member:
    """A consumer that has read eight messages, two of each queue, and whoever asks about it."""

    def __init__(self, broker: Broker, name: str, mqadmin: MqAdmin) -> None:
        self.broker, self.name = broker, name
        self._mqadmin = mqadmin
        self.client = Client(broker.namesrv, instance=name)
        self.listening = Listening(broker, name, client=self.client)

    async def ask(self, command: str, *words: str) -> str:
        return await asyncio.to_thread(self._mqadmin, command, *words)


class Reset(OnBroker):
    """A running consumer whose group an operator resets."""

    @pytest.fixture(scope="class")
    @classmethod
    def mqadmin(cls, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqAdmin]:
        folder = tmp_path_factory.mktemp("mqadmin")
        try:
            tool = MqAdmin(broker.namesrv, folder, cls.line or rocketmq.NAME)
        except (CannotRun, PeerError) as reason:
            leave_out(CannotRun(str(reason)))
            raise
        # The first command loads the client's classes, and may time out for that on a busy machine.
        tool("clusterList")
        yield tool
        tool.end()

    @pytest_asyncio.fixture
    async def member(self, broker: Broker, mqadmin: MqAdmin, topic: str) -> AsyncIterator[Member]:
        await send(broker, topic, *numbered(8))
        member = Member(broker, topic, mqadmin)
        member.listening.consumer.on(topic)(member.listening.listen)
        async with member.client, member.listening:
            await member.listening.expect(*numbered(8))
            # RocketMQ 4 resets no queue of which it has no offset yet.
            await until(partial(is_committed, broker, topic, 2), "offsets are committed", READ_S)
            yield member

    @RESET
    async def test_it_begins_again_at_the_time_that_it_is_reset_to(self, member: Member) -> None:
        name, listening = member.name, member.listening
        said = await member.ask("resetOffsetByTime", "-g", name, "-t", name, "-s", "0")
        assert "Exception" not in said, said
        again = sorted(numbered(8) * 2)
        await until(partial(has, listening, again), "all of them again", READ_S)
        await send(member.broker, name, b"and on")
        await listening.expect(b"and on")

    @RESET
    async def test_it_passes_over_what_lies_before_the_end(self, member: Member) -> None:
        """It is paused meanwhile: what it has not read is what it is to pass over."""
        name, listening = member.name, member.listening
        listening.consumer.pause(name)
        # A pull that is under way may still bring one message for each queue.
        await send(member.broker, name, *numbered(12, 8))
        await listening.expect(*numbered(12, 8))
        await send(member.broker, name, *numbered(20, 12))
        await member.broker.when(name, 20)
        said = await member.ask("resetOffsetByTime", "-g", name, "-t", name, "-s", "-1")
        assert "Exception" not in said, said
        listening.consumer.resume(name)
        await send(member.broker, name, b"and on")
        await listening.expect(b"and on")
        assert not set(numbered(20, 12)) & set(listening.bodies)


class Asked(Reset):
    """What an operator asks a consumer by way of a broker, whoever wrote it."""

    def topic_words(self, topic: str) -> tuple[str, ...]:
        """How the topic of an offset is passed to the tool."""
        return "-t", topic

    @STATUS
    async def test_its_offsets_are_reported_by_itself(self, member: Member) -> None:
        """221: a broker asks the members."""
        said = await member.ask("getConsumerStatus", "-g", member.name, "-t", member.name)
        offsets = [line.split()[-2:] for line in said.splitlines() if member.client.id[:20] in line]
        assert sorted(offsets) == [[str(queue), "2"] for queue in range(QUEUE_COUNT)], said

    @STATUS
    @pytest.mark.row("PQ-16")
    async def test_a_consumer_tells_how_it_runs(self, member: Member) -> None:
        name = member.name
        overview = await member.ask("consumerStatus", "-g", name)
        assert member.client.id in overview
        assert "Rebalance OK" in overview
        assert "Same subscription in the same group" in overview
        status = await member.ask("consumerStatus", "-g", name, "-i", member.client.id, "-s")
        assert re.search(r"PROP_CONSUME_TYPE +: CONSUME_PASSIVELY", status)
        assert re.search(r"messageModel +: CLUSTERING", status)
        assert re.search(rf"Topic: {name} +ClassFilter: false +SubExpression: \*", status)
        of_topic = rows(status, name)
        offsets = [each[2:] for each in of_topic if len(each) == 4]
        assert offsets == [[str(queue), "2"] for queue in range(QUEUE_COUNT)]
        queues = [" ".join(each) for each in of_topic if "ProcessQueueInfo" in each]
        assert len(queues) == QUEUE_COUNT
        assert all("commitOffset=2" in each and "droped=false" in each for each in queues)
        [rates] = [each for each in of_topic if len(each) == 7]
        assert rates[-1] == "0", "it has failed with nothing"
        assert "Puller.run" in status

    @STATUS
    async def test_who_it_is_and_how_far_it_is_are_reported(self, member: Member) -> None:
        name = member.name
        said = await member.ask("consumerConnection", "-g", name)
        assert member.client.id in said and "PYTHON" in said
        assert "ConsumeType: CONSUME_PASSIVELY" in said
        assert "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET" in said
        progress = rows(await member.ask("consumerProgress", "-g", name), name)
        assert [each[2:6] for each in progress] == [
            [str(queue), "2", "2", "0"] for queue in range(QUEUE_COUNT)
        ]

    @DIRECTLY
    @pytest.mark.parametrize(
        ("body", "result"),
        [(b"good", "CR_SUCCESS"), (b"later", "CR_LATER"), (b"bad", "CR_THROW_EXCEPTION")],
    )
    async def test_it_consumes_one_message_now(
        self, broker: Broker, mqadmin: MqAdmin, topic: str, body: bytes, result: str
    ) -> None:
        (sent,) = await send(broker, topic, body)
        seen: list[bytes] = []
        member = Member(broker, topic, mqadmin)

        @member.listening.consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.append(message.body)
            if len(seen) > 1 and message.body == b"later":
                raise Retry
            if len(seen) > 1 and message.body == b"bad":
                raise ZeroDivisionError("on purpose")

        async with member.client, member.listening:
            await until(lambda: seen, "it was consumed in its turn", READ_S)
            words = (*self.topic_words(topic), "-g", topic, "-d", member.client.id)
            said = await member.ask("queryMsgById", "-i", sent.offset_message_id, *words)
        assert seen == [body] * 2
        assert f"order=false, autoCommit=true, consumeResult={result}" in said
        assert ("on purpose" in said) is (body == b"bad")

    @DIRECTLY
    async def test_it_consumes_now_what_is_found_by_its_unique_key(self, member: Member) -> None:
        """In one test only: the tool keeps what it has shut down, and asks nothing again."""
        found = member.listening.messages[0]
        words = ("-t", member.name, "-g", member.name, "-d", member.client.id)
        said = await member.ask("queryMsgByUniqueKey", "-i", found.message_id, *words)
        assert "consumeResult=CR_SUCCESS" in said
        assert member.listening.bodies.count(found.body) == 2


class TestRockgate(OnRockgate, Asked):
    pass


class TestRocketMQ5(OnRocketMQ5, Asked):
    pass


class TestRocketMQ4(OnRocketMQ4, Asked):
    def topic_words(self, topic: str) -> tuple[str, ...]:
        """It needs none, and has no option for it."""
        return ()


class TestRockgateSends(OnRockgate, Reset):
    """Members are sent their new offsets (220), and do not learn of them by their pulls."""

    rockgate_settings = (*OnRockgate.rockgate_settings, "remoting.server_side_reset=false")


class TestRocketMQ5Sends(OnRocketMQ5, Reset):
    """Set as the server above."""

    apache_settings: Mapping[str, str] = MappingProxyType(
        {**OnRocketMQ5.apache_settings, "useServerSideResetOffset": "false"}
    )
