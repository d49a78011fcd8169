"""Incomplete requests, for `bench.requests`: many large ones at once without their last byte.

All connections send concurrently, as fast as the server reads, until each has sent all but one byte
or was closed; then all of them disconnect together. There are no responses: what counts is how long
others wait while this much is received, aborted and freed.
"""

import contextlib
import selectors
import socket

from bench.peers.answers import Address
from bench.requests.world import Loaded, Request, kafka_frame
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import join_group as joining

COUNT = 24
SIZE = 94 << 20
PIECE_SIZE = 1 << 18


def send_half(address: Address, frame: bytes, count: int) -> int:
    """Send all but the last byte on many connections; return how many the server closed."""
    whole = memoryview(frame)[:-1]
    closed = 0
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as ready:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(address))
            connection.setblocking(False)
            ready.register(connection, selectors.EVENT_WRITE, whole)
        while ready.get_map():
            for key, _ in ready.select():
                assert isinstance(key.fileobj, socket.socket)
                try:
                    left = key.data[key.fileobj.send(key.data[:PIECE_SIZE]) :]
                except (BrokenPipeError, ConnectionResetError):
                    closed += 1
                    left = b""
                if len(left):
                    ready.modify(key.fileobj, selectors.EVENT_WRITE, left)
                else:
                    ready.unregister(key.fileobj)
    return closed


def _frame(world: Loaded) -> list[bytes]:
    """A JoinGroup frame of the maximum size on a server of full size."""
    size = SIZE * world.size.items // 100_000
    protocol = joining.JoinGroupRequestProtocol(name="range", metadata=bytes(size))
    request = joining.JoinGroupRequest(
        group_id="half",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return [kafka_frame(ApiKey.JOIN_GROUP, request)]


REQUESTS: tuple[Request, ...] = (
    Request(
        name=f"JoinGroup v9, half sent by {COUNT} connections, 94 MB each",
        listener="kafka",
        make=_frame,
        half_sent_by=COUNT,
    ),
)
