"""Where the SDK is as Apache's clients are, number by number, and where it is not."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest
from tests.sdk.memorynet import run, settle
from tests.sdk.producer.test_producer import ProducerWorld, refusing, stored
from tests.sdk.producer.test_transaction import CHECK, half

from rockgate.sdk import Client, Message, Outcome, Received
from rockgate.sdk.client.checks import CHECKS_MAX
from rockgate.sdk.errors import ErrorCode


@pytest.mark.row("U-08")
def test_a_send_is_tried_twice_more_each_time_with_a_new_number() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[310] = refusing(1)
        async with world.producer() as producer:
            sending = asyncio.create_task(producer.send(Message("t", b"x")))
            await asyncio.gather(sending, return_exceptions=True)
            assert sending.exception() is not None
        tries = [request for _, request in world.sent()]
        assert len(tries) == 3
        assert len({request.opaque for request in tries}) == 3

    run(scenario())


@pytest.mark.row("U-08")
def test_bodies_of_4096_bytes_and_more_are_compressed_and_batches_are_not() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            for size in (4095, 4096, 4097):
                await producer.send(Message("t", b"x" * size))
            await producer.send_batch([Message("t", b"x" * 5000)] * 2)
        *singles, batch = (request for _, request in world.sent())
        assert [int(request.fields["f"]) & 1 for request in singles] == [0, 1, 1]
        assert (int(batch.fields["f"]) & 1, b"x" * 5000 in bytes(batch.body)) == (0, True)

    run(scenario())


@pytest.mark.row("U-08")
def test_the_codes_of_the_clients_own_errors_are_rocketmqs() -> None:
    assert [code.value for code in ErrorCode] == [10001, 10002, 10003, 10004, 10005]


@pytest.mark.row("U-14")
def test_checks_run_side_by_side_up_to_a_bound_and_a_further_one_is_left_to_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        asked: list[Received] = []
        known = asyncio.Event()

        async def slowly(message: Received) -> Outcome:
            asked.append(message)
            await known.wait()
            return Outcome.COMMIT

        async with world.producer(checker=slowly) as producer:
            world.brokers["a"].script[310] = stored
            await producer.send(Message("t", b"x"))
            for _ in range(CHECKS_MAX + 1):
                world.brokers["a"].ask(39, CHECK, half())
            await settle()
            assert len(asked) == CHECKS_MAX
            known.set()
            await settle()
            assert len(world.brokers["a"].of(37)) == CHECKS_MAX

    run(scenario())
    assert f"{CHECKS_MAX} checks are in progress; ignoring another one" in caplog.text


@pytest.mark.row("TRAP-15")
def test_an_instance_that_is_not_named_is_the_process_and_a_number() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        here = socket.gethostname()
        one, other = (Client("n:1", dial=world.net.dial) for _ in range(2))
        for client in (one, other):
            host, instance = client.id.split("@")
            assert (host, instance.split("#")[0]) == (here, str(os.getpid()))
        assert one.id != other.id
        assert Client("n:1", dial=world.net.dial, instance="till-3").id == f"{here}@till-3"

    run(scenario())
