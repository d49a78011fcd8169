"""Hooks around sends and requests: docs/reference/sdk.md, "Hooks"."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.sdk.memorynet import run, settle
from tests.sdk.producer.test_producer import ProducerWorld, refusing
from tests.sdk.producer.test_transaction import Checked, check_for

from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Client,
    Ended,
    Message,
    Outcome,
    Producer,
    Refused,
    SendHook,
    Sending,
    SendKind,
)


class Noting(SendHook):
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.told: list[tuple[str, SendKind, Any]] = []
        self.ended: list[Ended] = []

    def before_send(self, sending: Sending) -> None:
        sending.properties[f"seen-by{self.name}"] = sending.group
        self.told.append(("before", sending.kind, None))

    def after_send(self, sending: Sending) -> None:
        came = type(sending.error) if sending.error else len(sending.results)
        self.told.append(("after", sending.kind, came))

    def after_end(self, ended: Ended) -> None:
        self.ended.append(ended)


@pytest.mark.row("P-24")
def test_hooks_see_every_send_before_and_after_with_its_kind() -> None:
    async def scenario() -> None:
        world, hook = ProducerWorld(), Noting()
        async with world.producer(hooks=[hook], checker=Checked()) as producer:
            await producer.send(Message("t", b"x"))
            await producer.send(Message("t", b"x", delay=3))
            await producer.send_batch([Message("t", b"x"), Message("t", b"y")])
            await producer.send_oneway(Message("t", b"x"))
            async with producer.transaction(Message("t", b"x", tag="T", keys=["k"])):
                pass
            async with producer.transaction(Message("t", b"x", delay=timedelta(0))) as tx:
                tx.rollback()
        kinds = [kind for when, kind, _ in hook.told if when == "before"]
        normal = SendKind.NORMAL
        assert kinds == [
            *(normal, SendKind.DELAYED, normal, normal),
            *(SendKind.HALF, SendKind.DELAYED),
        ]
        assert [came for when, _, came in hook.told if when == "after"] == [1, 1, 2, 0, 1, 1]
        assert [(end.outcome, end.tag, end.keys, end.is_from_check) for end in hook.ended] == [
            (Outcome.COMMIT, "T", "k", False),
            (Outcome.ROLLBACK, None, None, False),
        ]
        first = parse_properties(world.sent()[0][1].fields["i"].encode())
        assert first["seen-by"] == "shop"

    run(scenario())


@pytest.mark.row("P-24")
@pytest.mark.parametrize("how", ["refused", "cancelled", "invalid"])
def test_hooks_are_told_of_what_failed(how: str) -> None:
    async def scenario() -> None:
        world, hook = ProducerWorld(), Noting()
        world.brokers["a"].script[310] = refusing(13) if how == "refused" else lambda _: None
        async with world.producer(hooks=[hook]) as producer:
            message = Message("t", b"" if how == "invalid" else b"x")
            sending = asyncio.create_task(producer.send(message))
            await settle()
            if how == "cancelled":
                sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        [_, (when, _, came)] = hook.told
        assert when == "after"
        assert (
            came.__name__
            == {
                "refused": "Refused",
                "cancelled": "CancelledError",
                "invalid": "InvalidMessage",
            }[how]
        )

    run(scenario())


def test_a_hook_may_forbid_a_send_and_those_before_it_are_notified() -> None:
    class Forbidding(SendHook):
        def before_send(self, sending: Sending) -> None:
            raise PermissionError("not today")

    async def scenario() -> None:
        world, before, behind = ProducerWorld(), Noting(), Noting()
        async with world.producer(hooks=[before, Forbidding(), behind]) as producer:
            with pytest.raises(PermissionError, match="not today"):
                await producer.send(Message("t", b"x"))
        assert world.sent() == []
        assert before.told[-1] == ("after", SendKind.NORMAL, PermissionError)
        assert behind.told == []

    run(scenario())


def test_a_hook_that_fails_behind_a_send_is_logged_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(SendHook):
        def after_send(self, sending: Sending) -> None:
            raise ZeroDivisionError

        def after_end(self, ended: Ended) -> None:
            raise ZeroDivisionError

    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer(hooks=[Failing()], checker=Checked()) as producer:
            async with producer.transaction(Message("t", b"x")) as tx:
                pass
            assert tx.is_confirmed

    run(scenario())
    first, _ = (record.message for record in caplog.records)
    assert first == "hook failed after a send to t"


def test_the_answer_to_a_check_is_reported_too() -> None:
    async def scenario() -> None:
        world, hook = ProducerWorld(), Noting()
        async with world.producer(hooks=[hook], checker=Checked(Outcome.COMMIT)) as producer:
            await producer.send(Message("t", b"x"))
            check_for(world, "shop")
            await settle()
            [ended] = hook.ended
            assert (ended.outcome, ended.is_from_check, ended.topic) == (Outcome.COMMIT, True, "t")

    run(scenario())


class Signing:
    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.bodies: list[bytes] = []
        self.answered: list[tuple[str, int, int]] = []

    def before_request(
        self, address: str, code: int, fields: dict[str, str], body: bytes | bytearray | memoryview
    ) -> None:
        self.asked.append((address, code))
        self.bodies.append(bytes(body))
        fields["Signature"] = "s"

    def after_response(self, address: str, code: int, answer: Command) -> None:
        self.answered.append((address, code, answer.code))


@pytest.mark.row("OBS-1")
@pytest.mark.row("M-01")
@pytest.mark.row("D-09")
def test_an_rpc_hook_sees_every_request_and_adds_to_it() -> None:
    async def scenario() -> None:
        world, hook = ProducerWorld(), Signing()
        async with (
            Client("n:1", dial=world.net.dial, rpc_hooks=[hook]) as client,
            Producer(client=client, group="shop") as producer,
        ):
            await producer.send(Message("t", b"x"))
            world.brokers["a"].script[310] = refusing(13)
            with pytest.raises(Refused):
                await producer.send(Message("t", b"x"))
        assert hook.asked[:4] == [("n:1", 105), ("a:1", 310), ("a:1", 34), ("a:1", 310)]
        assert hook.answered == [("n:1", 105, 0), ("a:1", 310, 0), ("a:1", 310, 13)]
        assert hook.bodies[1] == b"x"
        # The tests' brokers read sends by a codec that passes over what it does not know.
        assert world.name_server.of(105)[0].fields["Signature"] == "s"
        assert world.brokers["a"].of(34)[0].fields["Signature"] == "s"

    run(scenario())
