"""Transactions and check-backs on an in-memory network: docs/reference/sdk.md, "Transactions"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.sdk.memorynet import pass_time, run, settle
from tests.sdk.producer.test_producer import SENT, ProducerWorld, stored

from rockgate.protocol.entry import pack_host, pack_properties, parse_properties
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.message import encode
from rockgate.sdk import (
    Client,
    InvalidMessage,
    Message,
    Outcome,
    Producer,
    Received,
    Refused,
    Rollback,
    SendFailed,
    SendStatus,
    Transaction,
)
from rockgate.sdk.client import checks

HOST = pack_host(b"\x7f\0\0\1", 1)


class Checked:
    """A checker that records its calls and returns a fixed decision."""

    def __init__(self, outcome: Outcome | Exception = Outcome.UNKNOWN) -> None:
        self.outcome = outcome
        self.asked: list[Received] = []

    async def __call__(self, message: Received) -> Outcome:
        self.asked.append(message)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@asynccontextmanager
async def producing(
    world: ProducerWorld, checker: Checked | None = None
) -> AsyncIterator[Producer]:
    async with world.producer(checker=checker or Checked()) as producer:
        yield producer


def ends(world: ProducerWorld) -> list[Command]:
    return world.brokers["a"].of(37)


@pytest.mark.row("P-31")
@pytest.mark.row("P-35")
def test_leaving_the_block_commits_and_the_half_message_went_before() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with producing(world) as producer:
            message = Message("t", b"x")
            async with producer.transaction(message, check_after=timedelta(seconds=9)) as tx:
                [(_, half)] = world.sent()
                assert half.fields["f"] == "4"
                properties = parse_properties(half.fields["i"].encode())
                assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "shop")
                assert properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "9"
                assert ends(world) == []
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, True)
            [end] = ends(world)
            assert end.fields["commitOrRollback"] == "8"
            assert end.fields["tranStateTableOffset"] == SENT["queueOffset"]
            assert end.fields["commitLogOffset"] == "255"
            assert end.fields["producerGroup"] == "shop"
            assert end.fields["msgId"] == tx.result.message_id

    run(scenario())


@pytest.mark.parametrize("how", ["raised", "called", "called and raised"])
def test_rolling_back(how: str) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with producing(world) as producer:
            with suppress(ZeroDivisionError):
                async with producer.transaction(Message("t", b"x")) as tx:
                    if how == "raised":
                        raise Rollback
                    tx.rollback()
                    if how == "called and raised":
                        raise ZeroDivisionError
            assert tx.outcome is Outcome.ROLLBACK
            assert [end.fields["commitOrRollback"] for end in ends(world)] == ["12"]

    run(scenario())


def test_any_other_exception_leaves_it_unknown_and_continues() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with producing(world) as producer:
            tx: Transaction | None = None
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(Message("t", b"x")) as tx:
                    raise ZeroDivisionError
            assert tx is not None
            assert tx.outcome is Outcome.UNKNOWN
            await settle()
            assert ends(world) == []

    run(scenario())


def test_a_cancellation_leaves_it_unknown() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with producing(world) as producer:

            async def work() -> None:
                async with producer.transaction(Message("t", b"x")):
                    await pass_time(100)

            task = asyncio.create_task(work())
            await settle()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(world.sent()) == 1
            assert ends(world) == []

    run(scenario())


@pytest.mark.row("P-33")
def test_a_half_message_that_is_not_safe_is_rolled_back_and_the_block_does_not_run() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[310] = lambda _: Command(10, SENT)
        ran = False
        async with producing(world) as producer:
            with pytest.raises(SendFailed, match="FLUSH_DISK_TIMEOUT and rolled back"):
                async with producer.transaction(Message("t", b"x")):
                    ran = True
            assert not ran
            assert [end.fields["commitOrRollback"] for end in ends(world)] == ["12"]

    run(scenario())


@pytest.mark.row("P-34")
def test_an_end_that_is_not_heard_is_no_error_of_the_block_and_a_later_check_settles_it() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[37] = lambda _: None
        checker = Checked(Outcome.COMMIT)
        async with producing(world, checker) as producer:
            async with producer.transaction(Message("t", b"x")) as tx:
                pass
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, False)
            unheard = len(ends(world))
            # The broker was silent long enough for the connection to be another one now.
            await producer.send(Message("t", b"x"))
            world.brokers["a"].ask(39, CHECK, half())
            await settle()
            assert [message.body for message in checker.asked] == [b"which?"]
            *_, settled = ends(world)
            assert len(ends(world)) == unheard + 1
            assert settled.fields["commitOrRollback"] == str(Outcome.COMMIT.value)
            assert settled.fields["fromTransactionCheck"] == "true"

    run(scenario())


@pytest.mark.row("P-34")
def test_the_result_of_a_transaction_says_where_its_half_lies_and_how_it_ended() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        told = {**SENT, "transactionId": "of the broker"}
        world.brokers["a"].script[310] = lambda request: Command(
            0, {**told, "queueId": request.fields["e"]}
        )
        async with producing(world) as producer:
            async with producer.transaction(Message("t", b"x")) as tx:
                assert tx.outcome is Outcome.UNKNOWN
            [(_, sent)] = world.sent()
            unique = parse_properties(sent.fields["i"].encode())["UNIQ_KEY"]
            result = tx.result
            assert result.status is SendStatus.OK
            assert (result.queue.topic, result.queue.broker) == ("t", "a")
            assert result.queue.id == int(sent.fields["e"])
            assert result.offset == int(SENT["queueOffset"])
            assert (result.message_id, result.offset_message_id) == (unique, SENT["msgId"])
            assert result.transaction_id == "of the broker"
            assert tx.outcome is Outcome.COMMIT

    run(scenario())


def test_a_transaction_needs_a_checker() -> None:
    async def scenario() -> None:
        async with ProducerWorld().producer() as producer:
            with pytest.raises(InvalidMessage, match="a producer with a checker"):
                producer.transaction(Message("t", b"x"))

    run(scenario())


def check_for(world: ProducerWorld, group: str, topic: str = "t") -> None:
    """The broker asks how a transaction of this group ended."""
    world.brokers["a"].ask(39, CHECK, half(group, topic))


def half(group: str = "shop", topic: str = "t", message_id: str = "u") -> bytes:
    return encode(
        topic=topic.encode(),
        body=b"which?",
        properties=pack_properties({"PGROUP": group, "UNIQ_KEY": message_id}.items()),
        queue_id=1,
        queue_offset=0,
        position=255,
        born_ms=1,
        born_host=HOST,
        store_ms=2,
        store_host=HOST,
    )


CHECK = {"tranStateTableOffset": "5", "commitLogOffset": "255", "msgId": "u", "transactionId": "v"}


@pytest.mark.row("P-36")
@pytest.mark.row("P-38")
@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.ROLLBACK])
def test_a_check_is_answered_by_the_checker(outcome: Outcome) -> None:
    async def scenario() -> None:
        world, checker = ProducerWorld(), Checked(outcome)
        async with producing(world, checker) as producer:
            await producer.send(Message("t", b"x"))
            world.brokers["a"].ask(39, CHECK, half())
            await settle()
            assert [message.body for message in checker.asked] == [b"which?"]
            [end] = ends(world)
            assert end.is_oneway
            assert end.fields["commitOrRollback"] == str(outcome.value)
            assert end.fields["fromTransactionCheck"] == "true"
            assert {name: end.fields[name] for name in CHECK} == CHECK

    run(scenario())


@pytest.mark.row("P-37")
def test_a_check_that_finds_nothing_out_is_not_answered_and_sending_continues() -> None:
    async def scenario() -> None:
        world, checker = ProducerWorld(), Checked()
        async with producing(world, checker) as producer:
            await producer.send(Message("t", b"x"))
            broker = world.brokers["a"]
            broker.ask(39, CHECK, half())
            checker.outcome = ZeroDivisionError("the database is away")
            broker.ask(39, CHECK, half())
            broker.ask(39, CHECK, half("strangers"))
            broker.ask(39, CHECK, b"no message")
            broker.ask(39, {}, half())
            await settle()
            assert len(checker.asked) == 2
            assert ends(world) == []
            await producer.send(Message("t", b"x"))

    run(scenario())


def check_of(world: ProducerWorld, tx: Transaction) -> None:
    """The broker asks for this transaction's message."""
    world.brokers["a"].ask(39, CHECK, half(message_id=tx.result.message_id))


def test_a_block_that_runs_is_not_asked_of_a_checker_and_one_that_ended_unknown_is() -> None:
    async def scenario() -> None:
        world, checker = ProducerWorld(), Checked(Outcome.ROLLBACK)
        async with producing(world, checker) as producer:
            async with producer.transaction(Message("t", b"x")) as tx:
                check_of(world, tx)
                await settle()
                assert (checker.asked, ends(world)) == ([], [])
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, True)
            assert [end.fields["commitOrRollback"] for end in ends(world)] == ["8"]
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(Message("t", b"y")) as tx:
                    raise ZeroDivisionError
            check_of(world, tx)
            await settle()
            assert len(checker.asked) == 1
        assert set(checks.running_blocks()) == set()

    run(scenario())


def test_a_block_is_known_before_its_half_message_leaves_and_by_every_client() -> None:
    """A check may come before the send's answer, and to another client of the group."""

    async def scenario() -> None:
        world, checker, other = (
            ProducerWorld(),
            Checked(Outcome.ROLLBACK),
            Checked(Outcome.ROLLBACK),
        )
        broker = world.brokers["a"]
        held: list[Command] = []
        async with (
            producing(world, checker) as producer,
            Client("n:1", dial=world.net.dial) as second,
            Producer(client=second, group="shop", checker=other) as elsewhere,
        ):
            await elsewhere.send(Message("t", b"x"))
            [ours, theirs] = broker.transports
            broker.script[310] = lambda request: held.append(request)

            async def work() -> Transaction:
                async with producer.transaction(Message("t", b"y")) as tx:
                    pass
                return tx

            working = asyncio.create_task(work())
            await settle()
            [asked] = held
            its_id = parse_properties(asked.fields["i"].encode())["UNIQ_KEY"]
            for transport in (ours, theirs):
                transport.connection.request(39, CHECK, half(message_id=its_id))
                transport.flush()
            await settle()
            ours.connection.respond(asked, stored(asked))
            ours.flush()
            tx = await working
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, True)
            assert checker.asked == other.asked == []

    run(scenario())


def test_a_decision_that_comes_after_the_opposite_one_is_not_confirmed() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[37] = lambda _: Command(1, remark="rolled back before")
        async with producing(world) as producer:
            async with producer.transaction(Message("t", b"x")) as tx:
                assert tx.failure is None
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, False)
            assert isinstance(tx.failure, Refused)
            assert "rolled back before" in str(tx.failure)

    run(scenario())


@pytest.mark.parametrize("place", ["", "no hex", "00", "7F00000100002A9FFFFFFFFFFFFFFFFF"])
def test_a_half_message_whose_place_cannot_be_read_ends_before_the_local_work(place: str) -> None:
    async def scenario() -> None:
        world, is_done = ProducerWorld(), False
        world.brokers["a"].script[310] = lambda _: Command(0, {**SENT, "msgId": place})
        async with producing(world) as producer:
            with pytest.raises(SendFailed, match="was stored but cannot be resolved"):
                async with producer.transaction(Message("t", b"x")):
                    is_done = True
            assert not is_done
            assert ends(world) == []
        assert set(checks.running_blocks()) == set()

    run(scenario())


def test_nothing_is_raised_after_the_local_work() -> None:
    class Forbidding:
        def before_request(self, address: str, code: int, fields: Any, body: Any) -> None:
            if code == 37:
                raise LookupError("no key to sign with")

        def after_response(self, address: str, code: int, answer: Command) -> None:
            pass

    async def scenario() -> None:
        world = ProducerWorld()
        async with (
            Client("n:1", dial=world.net.dial, rpc_hooks=[Forbidding()]) as client,
            Producer(client=client, group="shop", checker=Checked()) as producer,
        ):
            async with producer.transaction(Message("t", b"x")) as tx:
                pass
            assert (tx.outcome, tx.is_confirmed) == (Outcome.COMMIT, False)
            assert isinstance(tx.failure, LookupError)

    run(scenario())


def test_an_outcome_prints_its_name() -> None:
    assert [str(outcome) for outcome in Outcome] == ["UNKNOWN", "COMMIT", "ROLLBACK"]
    assert f"it ended in {Outcome.COMMIT}" == "it ended in COMMIT"
