"""Our own Python client, against the server and against Apache RocketMQ: one suite for all.

Apache RocketMQ 5.5.0 and 4.9.7 are asked in the long run. What a broker does otherwise is a value
of its class, and a line in FINDINGS.md.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from behaviours.sdk_suites import asked
from bench.peers import jars, rocketmq
from tests.gateway.remoting.client import Client as Reader
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk import (
    Client,
    Message,
    NotSupported,
    Outcome,
    Producer,
    Queue,
    Received,
    Refused,
    Rollback,
    SendFailed,
    SendResult,
)
from rockgate.sdk.client.connection import Link

pytestmark = [
    pytest.mark.timeout(240),
    asked("sending: one by one, many, in batches, later, in transactions; request and reply"),
]
SOON = timedelta(seconds=2)


async def unknown(_: Received) -> Outcome:
    return Outcome.UNKNOWN


class Behaviours:
    """What a broker does for the client, whoever wrote it."""

    knows_times = True
    """Delays of any length, and recall: since 5.0."""
    first_decides = True
    """The decision about a half message is final; another decision is rejected."""

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with cls.run(tmp_path_factory) as found:
            yield found

    @pytest.fixture
    def producer_of(self, broker: Broker) -> Callable[..., Producer]:
        # A real broker takes a while for its first messages.
        return lambda group, **more: Producer(broker.namesrv, group=group, timeout_s=15, **more)

    @pytest.mark.row("P-07")
    @pytest.mark.row("P-20")
    async def test_messages_are_stored_as_they_were_sent(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        large = b"0123456789" * 1000
        async with producer_of("plain") as producer:
            first = await producer.send(
                Message("plain", b"one", tag="T", keys=["a", "b"], properties={"c": "d"}, flag=3)
            )
            await producer.send(Message("plain", large))
            await producer.send_oneway(Message("plain", b"three"))
            found = {message.body: message for message in await broker.when("plain", 3)}
        assert found.keys() == {b"one", large, b"three"}
        one = found[b"one"]
        assert (one.properties["TAGS"], one.properties["KEYS"], one.flag) == ("T", "a b", 3)
        assert one.properties["c"] == "d"
        assert one.message_id == first.message_id
        assert (one.queue_id, one.queue_offset) == (first.queue.id, first.offset)
        assert one.offset_message_id == first.offset_message_id

    async def test_many_sends_at_once_share_one_connection(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        bodies = [b"%d" % number for number in range(500)]
        async with producer_of("many") as producer:
            await producer.send(Message("many", b"makes the topic"))
            results = await asyncio.gather(
                *(producer.send(Message("many", body)) for body in bodies)
            )
        found = {message.body for message in await broker.when("many", 501)}
        assert found == {*bodies, b"makes the topic"}
        assert len({(result.queue, result.offset) for result in results}) == 500

    @pytest.mark.row("P-13")
    async def test_messages_of_one_key_lie_in_one_queue_in_order(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("keys") as producer:
            await producer.send(Message("keys", b"first"), key="k")
            for number in range(9):
                await producer.send(Message("keys", b"%d" % number), key="o-1")
        found = [each for each in await broker.when("keys", 10) if each.body != b"first"]
        assert len({message.queue_id for message in found}) == 1
        assert [message.body for message in found] == [b"%d" % number for number in range(9)]

    @pytest.mark.row("P-12")
    async def test_a_topic_of_one_queue_keeps_one_order(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        broker.make_topic("one-queue", 1)
        async with producer_of("ordered") as producer:
            for number in range(20):
                await producer.send(Message("one-queue", b"%d" % number))
        found = await broker.when("one-queue", 20)
        assert [message.body for message in found] == [b"%d" % number for number in range(20)]

    async def test_a_batch_is_stored_in_one_queue_with_its_ids(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("batches", body_size_max=4096) as producer:
            await producer.send(Message("batch", b"makes the topic"))
            results = await producer.send_batch(
                [Message("batch", b"%04d" % number * 50, tag="T") for number in range(100)]
            )
        found = [m for m in await broker.when("batch", 101) if m.body != b"makes the topic"]
        assert [m.body[:4] for m in found] == [b"%04d" % number for number in range(100)]
        assert [m.message_id for m in found] == [result.message_id for result in results]
        assert [m.queue_offset for m in found] == [result.offset for result in results]
        assert [m.offset_message_id for m in found] == [r.offset_message_id for r in results]

    @pytest.mark.row("P-26")
    async def test_a_message_waits_for_its_level(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("levels") as producer:
            await producer.send(Message("level", b"at once"))
            began_ms = int(datetime.now(UTC).timestamp() * 1000)
            await producer.send(Message("level", b"later", delay=1))
            found = await broker.when("level", 2)
        [late] = [message for message in found if message.body == b"later"]
        assert late.store_ms >= began_ms + 1000

    async def test_a_message_waits_for_its_time_or_is_not_sent(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("times") as producer:
            await producer.send(Message("time", b"at once"))
            when = datetime.now(UTC) + SOON
            if not self.knows_times:
                for delay in (SOON, when):
                    with pytest.raises(NotSupported, match="older than 5"):
                        await producer.send(Message("time", b"later", delay=delay))
                assert len(broker.read("time")) == 1
                return
            for delay in (SOON, when):
                await producer.send(Message("time", b"later", delay=delay))
            late = [m for m in await broker.when("time", 3) if m.body == b"later"]
        assert min(message.store_ms for message in late) >= int(when.timestamp() * 1000) - 1

    async def test_a_delayed_message_is_taken_back_once(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        if not self.knows_times:
            pytest.skip("recall came with times of delivery, in 5.0")
        async with producer_of("recalls") as producer:
            await producer.send(Message("recall", b"makes the topic"))
            taken = await producer.send(Message("recall", b"taken back", delay=2 * SOON))
            assert await producer.recall(taken) == taken.message_id
            await producer.send(Message("recall", b"stays", delay=3 * SOON))
            found = await broker.when("recall", 2)
        assert {message.body for message in found} == {b"makes the topic", b"stays"}

    async def test_a_request_gets_the_reply_of_whoever_read_it(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("askers") as asker, producer_of("answerers") as answerer:
            await asker.send(Message("asked", b"makes the topic"))
            asking = asyncio.create_task(asker.request(Message("asked", b"?"), timeout_s=30))
            found = await broker.when("asked", 2)
            [request] = [message for message in found if message.body == b"?"]
            await answerer.reply(request, b"yes")
            assert (await asking).body == b"yes"

    async def test_what_the_broker_refuses_says_why(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("wrong") as producer:
            await producer.send(Message("refused", b"x"))
            [queue, *_] = await producer.queues("refused")
            wrong = Queue("refused", queue.broker, 99)
            with pytest.raises(Refused, match="queue"):
                await producer.send(Message("refused", b"x"), queue=wrong)

    @pytest.mark.row("P-21")
    async def test_a_namespace_is_before_the_topic_there(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("spaced", namespace="ns") as producer:
            result = await producer.send(Message("spaced", b"x"))
            assert result.queue.topic == "spaced"
        [found] = await broker.when("ns%spaced", 1)
        assert found.properties["INSTANCE_ID"] == "ns"

    async def test_the_message_trace_is_written(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("traced", trace=True) as producer:
            result = await producer.send(Message("traced", b"x", keys=["o-1"]))
        [found] = await broker.when("RMQ_SYS_TRACE_TOPIC", 1)
        kind, *fields = found.body.decode().rstrip("\x02").split("\x01")
        assert (kind, fields[2:5]) == ("Pub", ["traced", "traced", result.message_id])
        assert (fields[7], fields[-1]) == ("{}:{}".format(*broker.address), "true")
        assert found.properties["KEYS"].split() == [result.message_id, "o-1"]
        self.check_trace(broker, result.message_id)

    def check_trace(self, broker: Broker, message_id: str) -> None:
        """Whatever else can read a trace there."""

    @pytest.mark.row("P-31")
    @pytest.mark.row("PRD-15")
    async def test_a_transaction_shows_its_message_when_it_commits(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("payers", checker=unknown) as producer:
            await producer.send(Message("paid", b"makes the topic"))
            async with producer.transaction(Message("paid", b"paid", tag="T")) as tx:
                assert len(await broker.when("paid", 1)) == 1
            assert tx.is_confirmed
            async with producer.transaction(Message("paid", b"never")) as tx:
                raise Rollback
            assert tx.is_confirmed
            async with producer.transaction(Message("paid", b"the last")):
                pass
            found = await broker.when("paid", 3)
        assert {m.body for m in found} == {b"makes the topic", b"paid", b"the last"}

    @pytest.mark.row("P-36")
    async def test_an_unknown_outcome_is_settled_by_another_producer_of_the_group(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        asked: list[Received] = []

        async def checker(message: Received) -> Outcome:
            asked.append(message)
            return Outcome.COMMIT if message.body == b"kept" else Outcome.ROLLBACK

        async with producer_of("settlers", checker=unknown) as producer:
            await producer.send(Message("settled", b"makes the topic"))
            for body in (b"kept", b"dropped"):
                with pytest.raises(ZeroDivisionError):
                    async with producer.transaction(
                        Message("settled", body), check_after=timedelta(seconds=1)
                    ):
                        raise ZeroDivisionError
        async with producer_of("settlers", checker=checker) as other:
            await other.send(Message("settled", b"from the other"))
            await until(lambda: len({m.body for m in asked}) == 2, "both were asked for", 60)
            found = await broker.when("settled", 3)
        assert {m.topic for m in asked} == {"settled"}
        assert {m.body for m in found} == {b"makes the topic", b"from the other", b"kept"}

    async def test_a_block_that_outlasts_the_checks_is_delivered_however_it_is_asked_about(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        """The checker would roll it back, and is not asked while the block runs."""
        checks: list[Command] = []

        async def checker(_: Received) -> Outcome:
            return Outcome.ROLLBACK

        async with (
            Client(broker.namesrv) as client,
            Producer(client=client, group="slow", timeout_s=15, checker=checker) as producer,
        ):
            answer = client.handlers[RequestCode.CHECK_TRANSACTION_STATE]

            def noting(link: Link, command: Command) -> None:
                checks.append(command)
                answer(link, command)

            client.handlers[RequestCode.CHECK_TRANSACTION_STATE] = noting
            await producer.send(Message("slow", b"makes the topic"))
            soon = timedelta(seconds=1)
            async with producer.transaction(Message("slow", b"paid"), check_after=soon) as tx:
                await until(lambda: checks, "the broker has asked", 60)
            assert tx.is_confirmed
            found = await broker.when("slow", 2)
        assert b"paid" in {message.body for message in found}

    async def test_what_is_known_of_a_decision_after_the_opposite_one(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        """rockgate says no, and keeps to the first; Apache says yes, and a commit is delivered."""
        async with producer_of("outrun", checker=unknown) as producer:
            await producer.send(Message("outrun", b"makes the topic"))
            async with producer.transaction(Message("outrun", b"late commit")) as late_commit:
                self.decide(broker, late_commit.result, Outcome.ROLLBACK)
            async with producer.transaction(Message("outrun", b"late rollback")) as late_rollback:
                self.decide(broker, late_rollback.result, Outcome.COMMIT)
                late_rollback.rollback()
            async with producer.transaction(Message("outrun", b"the last")) as last:
                pass
            assert last.is_confirmed
            confirmed = (late_commit.is_confirmed, late_rollback.is_confirmed)
            assert confirmed == (not self.first_decides, not self.first_decides)
            found = await broker.when("outrun", 3 if self.first_decides else 4)
        bodies = {message.body for message in found}
        assert b"late rollback" in bodies, "a commit is not taken back by anybody"
        assert (b"late commit" in bodies) is not self.first_decides

    @staticmethod
    def decide(broker: Broker, result: SendResult, outcome: Outcome) -> None:
        """Another member of the group answers a check."""
        other = Reader(broker.address)
        header = {
            "producerGroup": "outrun",
            "tranStateTableOffset": result.offset,
            "commitLogOffset": parse_offset_message_id(result.offset_message_id)[2],
            "commitOrRollback": outcome.value,
            "fromTransactionCheck": "true",
        }
        try:
            assert other.ask(37, header).code == 0
        finally:
            other.socket.close()


class TestRockgate(Behaviours):
    client = "rockgate-sdk with rockgate"

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with rockgate_broker(
            tmp_path_factory.mktemp("sdk"), "remoting.check_interval_ms=1000"
        ) as found:
            yield found

    @pytest.mark.row("P-32")
    async def test_the_delay_of_a_transaction_begins_with_its_commit(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("late-payers", checker=unknown) as producer:
            await producer.send(Message("late", b"makes the topic"))
            async with producer.transaction(Message("late", b"later", delay=1)):
                committed_ms = int(datetime.now(UTC).timestamp() * 1000)
            found = await broker.when("late", 2)
        [late] = [message for message in found if message.body == b"later"]
        assert late.store_ms >= committed_ms + 1000

    async def test_a_message_that_was_taken_back_cannot_be_again(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("recallers") as producer:
            taken = await producer.send(Message("recalled", b"x", delay=timedelta(hours=1)))
            await producer.recall(taken)
            with pytest.raises((Refused, SendFailed), match="Recall from recalled"):
                await producer.recall(taken)


class Apache(Behaviours):
    """Apache RocketMQ itself."""

    line = ""
    first_decides = False

    async def test_a_delayed_transaction_is_not_sent_for_it_would_be_lost(
        self, broker: Broker, producer_of: Callable[..., Producer]
    ) -> None:
        async with producer_of("losers", checker=unknown) as producer:
            with pytest.raises(NotSupported, match="is Apache RocketMQ, which loses"):
                async with producer.transaction(Message("lost", b"x", delay=1)):
                    raise AssertionError("the block does not run")

    @pytest.mark.row("P-25")
    async def test_the_second_port_is_there_for_who_asks_for_it(self, broker: Broker) -> None:
        async with (
            Client(broker.namesrv, vip_channel=True) as client,
            Producer(client=client, group="important") as producer,
        ):
            await producer.send(Message("important", b"x"))
            host, port = broker.address
            assert client.broker(f"{host}:{port}").address == f"{host}:{port - 2}"
        assert [message.body for message in await broker.when("important", 1)] == [b"x"]

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with apache_broker(cls.line) as found:
            yield found


@pytest.mark.long
@pytest.mark.java
class TestRocketMQ5(Apache):
    line = rocketmq.NAME
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.NAME)}"

    def check_trace(self, broker: Broker, message_id: str) -> None:
        """RocketMQ's own tool finds it by the message's id."""
        with TemporaryDirectory() as folder:
            words = ["queryMsgTraceById", "-i", message_id]
            done = subprocess.run(
                rocketmq.tool_command(words, Path(folder), broker.namesrv),
                capture_output=True,
                text=True,
                timeout=60,
            )
        assert re.search(r"Pub\s+traced\s.*127\.0\.0\.1.*success", done.stdout), done


@pytest.mark.long
@pytest.mark.java
class TestRocketMQ4(Apache):
    line = rocketmq.OLD
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.OLD)}"
    knows_times = False
