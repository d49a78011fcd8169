"""Load on the RocketMQ listener by prebuilt frames: sends and pulls over one connection.

A client library would cost more than the server that it measures. Requests are sent in bursts of a
fixed number, the next one after all responses; the code of every response is checked.
"""

import socket
import time
from collections.abc import Callable, Iterator

from bench.load.rdkafka import Load, LoadFailed
from bench.peers.answers import Address
from rockgate.protocol.frames import FrameReader
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command, encode
from rockgate.protocol.remoting.hot.sends import SendHead

GROUP = "bench"
BROKER = "broker-a"
SEND_BURST = 64
PULL_BURST = 8
PULL_COUNT = 32
WITH_SUBSCRIPTION = 4
ANSWER_SIZE_MAX = 64 << 20
SECONDS_MAX = 60.0
_SUCCESS = b'"code":0'
_HEADER_MAX = 1 << 12


def send(address: Address, topic: str, size: int, count: int) -> Load:
    """Send messages of one size to queue 0, in whole bursts."""
    frame = send_frames(topic, size)

    def bursts() -> Iterator[list[bytes]]:
        for start in range(0, count, SEND_BURST):
            now_ms = int(time.time() * 1000)
            numbers = range(start, min(start + SEND_BURST, count))
            yield [frame(number, now_ms) for number in numbers]

    seconds = _exchange(address, bursts)
    return Load(count=count, payload_bytes=count * size, seconds=seconds)


def pull(address: Address, topic: str, size: int, count: int) -> Load:
    """Pull the first messages of queue 0, in whole pulls."""
    pulls = count // PULL_COUNT

    def bursts() -> Iterator[list[bytes]]:
        for start in range(0, pulls, PULL_BURST):
            numbers = range(start, min(start + PULL_BURST, pulls))
            yield [pull_frame(topic, number) for number in numbers]

    seconds = _exchange(address, bursts)
    messages = pulls * PULL_COUNT
    return Load(count=messages, payload_bytes=messages * size, seconds=seconds)


def send_frames(topic: str, size: int) -> Callable[[int, int], bytes]:
    """Return a function that makes sends to queue 0, given a request number and a time."""
    body = bytes(size)
    head = SendHead(
        RequestCode.SEND_MESSAGE_V2,
        group=GROUP,
        topic=topic,
        default_topic="TBW102",
        default_queue_count=4,
        queue_id=0,
        broker=BROKER,
        is_batch=False,
    )
    return lambda number, now_ms: head.write(number, 0, size, 0, now_ms, 0, "") + body


def pull_frame(topic: str, number: int, count: int = PULL_COUNT) -> bytes:
    """Make a pull of messages of queue 0, which starts `number` pulls after its beginning."""
    fields = {
        "consumerGroup": GROUP,
        "topic": topic,
        "queueId": "0",
        "queueOffset": str(number * count),
        "maxMsgNums": str(count),
        "sysFlag": str(WITH_SUBSCRIPTION),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    return encode(Command(code=RequestCode.PULL_MESSAGE, opaque=number, fields=fields))


def _exchange(address: Address, bursts: Callable[[], Iterator[list[bytes]]]) -> float:
    """Send one burst after the other, and return the time until the last response."""
    with socket.create_connection(address, timeout=SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = FrameReader(ANSWER_SIZE_MAX)
        began = time.perf_counter()
        for burst in bursts():
            connection.sendall(b"".join(burst))
            missing = len(burst)
            while missing:
                data = connection.recv(1 << 18)
                if not data:
                    raise LoadFailed("the server closed the connection")
                for answer in reader.feed(data):
                    _check(answer)
                    missing -= 1
        return time.perf_counter() - began


def _check(answer: memoryview) -> None:
    header = bytes(answer[:_HEADER_MAX])
    if _SUCCESS not in header:
        raise LoadFailed(f"a request was refused: {header[4:300]!r}")
