"""What answers at a wrong port is named in the error."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.errors import ClientError, NotKafka, NotRocketMQ
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.gateway.net.address import Address
from rockgate.protocol.remoting.bodies.admin import DeadLetterQueues
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.admin import ListDeadLettersHeader

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[Address]:
    """A server that treats each connection so."""
    writers: list[asyncio.StreamWriter] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(noted, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for writer in writers:
            # Whoever says nothing has not closed it, and the loop ends with the test.
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def saying(data: bytes, *, is_first: bool = False) -> Serve:
    """Send something, when asked or before, and close the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            if not is_first:
                await reader.read(1)
            writer.write(data)
            await writer.drain()
            writer.close()

    return serve


async def kafka_error(address: Address) -> ClientError:
    broker = Broker(address, client_id="test", timeout_s=5)
    with pytest.raises(ClientError) as raised:
        await broker.connect()
    return raised.value


async def rocketmq_error(address: Address) -> ClientError:
    async with RemotingConnection(address, timeout_s=5) as remoting:
        with pytest.raises(ClientError) as raised:
            code = RequestCode.LIST_DEAD_LETTER_QUEUES
            await remoting.ask(code, ListDeadLettersHeader(), DeadLetterQueues)
        return raised.value


@pytest.mark.parametrize(
    ("data", "is_first", "who"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "an HTTP server answers there"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", True, "an SSH server answers there"),
        (b"\x15\x03\x03\x00\x02\x02\x0a", False, "it requires TLS"),
        (b"\xff\xff\xff\xffnonsense", False, "is not a"),
        (b"", False, "closed the connection before responding"),
    ],
)
async def test_what_is_there_instead_is_said(data: bytes, is_first: bool, who: str) -> None:
    async with listening(saying(data, is_first=is_first)) as address:
        told = await kafka_error(address)
        assert isinstance(told, NotKafka)
        assert f"{address} is not a Kafka port" in str(told)
        assert who in str(told)
        told = await rocketmq_error(address)
        assert isinstance(told, NotRocketMQ)
        assert f"{address} is not a RocketMQ port" in str(told)
        assert who in str(told)


async def test_a_port_that_takes_connections_and_says_nothing_is_reported_too() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with listening(serve) as address:
        broker = Broker(address, client_id="test", timeout_s=0.05)
        with pytest.raises(NotKafka, match="it is busy, or not a Kafka port"):
            await broker.connect()
        broker.close()
        async with RemotingConnection(address, timeout_s=0.05) as remoting:
            with pytest.raises(NotRocketMQ, match="it is busy, or not a RocketMQ port"):
                code = RequestCode.LIST_DEAD_LETTER_QUEUES
                await remoting.ask(code, ListDeadLettersHeader(), DeadLetterQueues)


async def test_no_one_at_a_port_is_the_same_sentence_on_both_wires() -> None:
    async with listening(saying(b"")) as address:
        pass
    sentence = f"Cannot connect to {address}: connection refused."
    assert str(await kafka_error(address)) == sentence
    assert str(await rocketmq_error(address)) == sentence


async def test_a_connection_that_failed_is_not_tried_again() -> None:
    failures = []
    async with (
        listening(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address,
        RemotingConnection(address, timeout_s=5) as remoting,
    ):
        for _ in range(2):
            with pytest.raises(NotRocketMQ) as raised:
                code = RequestCode.LIST_DEAD_LETTER_QUEUES
                await remoting.ask(code, ListDeadLettersHeader(), DeadLetterQueues)
            failures.append(str(raised.value))
    assert failures == [f"{address} is not a RocketMQ port: an HTTP server answers there."] * 2
