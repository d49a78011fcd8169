import asyncio
import contextlib
import socket

import pytest

from rockgate.gateway.net.address import CLOSED, Address
from rockgate.gateway.net.listening.listener import Listener
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.runtime.errors import BindError


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def greeting(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_port_0_takes_a_free_port_and_says_which() -> None:
    listener = Listener.bind("kafka", Address("127.0.0.1", 0))
    assert listener.address.host == "127.0.0.1" and listener.address.port > 0
    await listener.listen(Greeter, backlog=8)
    assert await greeting("127.0.0.1", listener.address.port) == b"hello"
    listener.close()


async def test_a_bound_listener_does_not_answer_before_it_listens_nor_after_it_closes() -> None:
    listener = Listener.bind("kafka", Address("127.0.0.1", 0))
    with pytest.raises(ConnectionRefusedError):
        await greeting("127.0.0.1", listener.address.port)
    await listener.listen(Greeter, backlog=8)
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        await greeting("127.0.0.1", listener.address.port)


async def test_a_closed_listener_has_no_socket() -> None:
    listener = Listener.bind("kafka", CLOSED)
    await listener.listen(Greeter, backlog=8)
    assert listener.address is CLOSED
    listener.close()


@pytest.mark.row("M-02")
async def test_a_listener_reuses_its_address_and_its_connections_send_without_delay() -> None:
    assert RemotingConfig().backlog == 1_024
    delays: list[bool] = []

    class Looking(Greeter):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            delays.append(not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            super().connection_made(transport)

    listener = Listener.bind("remoting", Address("127.0.0.1", 0))
    assert listener.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
    await listener.listen(Looking, backlog=RemotingConfig().backlog)
    assert await greeting("127.0.0.1", listener.address.port) == b"hello"
    assert delays == [False]
    listener.close()


@pytest.mark.row("M-02")
def test_an_address_in_use_is_reported_with_the_flag_that_changes_it() -> None:
    taken = Listener.bind("kafka", Address("127.0.0.1", 0))
    # Binding alone does not keep a second binder with SO_REUSEADDR out; listening does.
    taken.sockets[0].listen()
    with pytest.raises(BindError) as caught:
        Listener.bind("kafka", taken.address)
    told = str(caught.value)
    assert f"Cannot listen on {taken.address} for kafka: address already in use" in told
    assert "--kafka HOST:PORT" in told
    taken.close()


@pytest.mark.parametrize(
    ("host", "reason"),
    [("192.0.2.1", "No local interface has this address"), ("no.such.invalid", "unknown host")],
)
def test_a_host_that_is_not_ours_is_reported(host: str, reason: str) -> None:
    with pytest.raises(BindError, match=reason):
        Listener.bind("http", Address(host, 0))


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback")
async def test_the_ipv6_wildcard_takes_ipv4_as_well() -> None:
    listener = Listener.bind("kafka", Address("::", 0))
    await listener.listen(Greeter, backlog=8)
    assert await greeting("127.0.0.1", listener.address.port) == b"hello"
    assert await greeting("::1", listener.address.port) == b"hello"
    listener.close()


async def test_every_address_of_a_name_gets_the_same_port() -> None:
    listener = Listener.bind("kafka", Address("localhost", 0))
    await listener.listen(Greeter, backlog=8)
    ports = {bound.getsockname()[1] for bound in listener.sockets}
    assert ports == {listener.address.port}
    listener.close()
