"""Bytes and requests on RocketMQ's ports that mean harm: an answer or a closed connection.

A well-behaved client of each port continues the whole time; afterwards there is no traceback in the
log, and the server has not retained what it was sent.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest
from tests.budget import budget
from tests.gateway.fakes import LIMITS
from tests.gateway.remoting.client import BINARY, JSON, Client
from tests.gateway.remoting.fakes import Line
from tests.gateway.server import RunningServer
from tests.hostile.bystander import Bystander
from tests.hostile.target import GROWTH_BYTES_MAX
from tests.protocol.remoting.golden import FRAMES
from tests.seeds import seeded
from tests.waiting import wait_until

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.message import encode_batch

REQUESTS = [each.frame for each in FRAMES if not each.is_answer]
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(192)
TOPIC = "alive"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.frame_ms_max=500"]
    folder = tmp_path_factory.mktemp("hostile")
    with RunningServer(folder, settings=settings, rocketmq=True) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(params=["remoting", "namesrv"])
def address(server: RunningServer, request: pytest.FixtureRequest) -> tuple[str, int]:
    return server.address(request.param)


def is_alive(server: RunningServer) -> None:
    """Others are served as before."""
    broker = Client(server.address("remoting"))
    assert broker.publish("alive").code == 0
    broker.socket.close()
    namesrv = Client(server.address("namesrv"))
    assert namesrv.ask(105, {"topic": "alive"}).code == 0
    namesrv.socket.close()


class RocketMQBystander(Bystander):
    """Sends, pulls and asks for a route, one after the other."""

    def __init__(self, server: RunningServer) -> None:
        self._broker = Client(server.address("remoting"))
        self._namesrv = Client(server.address("namesrv"))
        super().__init__()

    def do_round(self) -> None:
        sent = self._broker.publish("bystander", b"mine", queue=1)
        assert sent.code == 0, sent.remark
        found = self._broker.pull("bystander", int(sent.fields["queueOffset"]), queue=1)
        assert found.code == 0, found.remark
        assert self._namesrv.ask(105, {"topic": "bystander"}).code == 0

    def close(self) -> None:
        self._broker.socket.close()
        self._namesrv.socket.close()


@contextlib.contextmanager
def under_watch(
    server: RunningServer, *, growth_bytes_max: int = GROWTH_BYTES_MAX
) -> Iterator[None]:
    """Whatever happens inside leaves others, the log and the memory as they should be."""
    mark, before = len(server.log), server.resident_bytes
    bystander = RocketMQBystander(server)
    try:
        bystander.go_round()
        yield
        bystander.go_round()
    finally:
        bystander.stop()
    log = server.log[mark:]
    assert "Traceback" not in log and "Z error " not in log, log[-5000:]
    growth = server.resident_bytes - before
    assert growth < growth_bytes_max, f"{growth >> 20} MiB more than before"


def spit(address: tuple[str, int], data: bytes) -> None:
    """Send bytes, read whatever comes for a moment, and go."""
    with socket.create_connection(address, timeout=60) as sock:
        sock.settimeout(0.02)
        try:
            sock.sendall(data)
            while sock.recv(65_536):
                pass
        except (TimeoutError, ConnectionError):
            return


def mangled(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(data))
        data[at] = chance.randrange(256)
    if chance.random() < 0.3:
        del data[chance.randrange(4, len(data)) :]
    return struct.pack(">i", len(data) - 4) + data[4:]


def test_mangled_requests_harm_no_one(server: RunningServer, address: tuple[str, int]) -> None:
    chance = seeded()
    with under_watch(server):
        for _ in range(budget("hostile_rounds_each")):
            spit(address, b"".join(mangled(chance.choice(REQUESTS), chance) for _ in range(10)))


def test_recorded_requests_out_of_their_place_harm_no_one(
    server: RunningServer, address: tuple[str, int]
) -> None:
    chance = seeded()
    with under_watch(server):
        for _ in range(budget("hostile_rounds_each")):
            spit(address, b"".join(chance.choice(REQUESTS) for _ in range(20)))


def test_random_bytes_harm_no_one(server: RunningServer, address: tuple[str, int]) -> None:
    chance = seeded()
    with under_watch(server):
        for _ in range(budget("hostile_rounds_each")):
            data = chance.randbytes(chance.choice((1, 3, 4, 5, 14, 200, 70_000)))
            if chance.random() < 0.5:
                data = struct.pack(">i", len(data)) + data
            spit(address, data)


def test_recorded_requests_cut_short_harm_no_one(
    server: RunningServer, address: tuple[str, int]
) -> None:
    chance = seeded()
    with under_watch(server):
        for _ in range(budget("hostile_rounds_each")):
            data = chance.choice(REQUESTS)[4:]
            data = data[: chance.randrange(len(data))]
            # Half of them say so, half promise more than ever comes.
            size = len(data) if chance.random() < 0.5 else len(data) + chance.randrange(1, 1 << 20)
            spit(address, struct.pack(">i", size) + data)


# Well-formed requests with absurd values

NUMBERS = (0, 1, -1, -2, 7, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**64)
TEXTS = (
    *(
        "",
        ".",
        "..",
        "%RETRY%",
        "%RETRY%x",
        "%DLQ%x",
        "a|b",
        "a b",
        "\0",
        "\x01",
        "\x02",
        "x" * 128,
    ),
    *(
        "x" * 40_000,
        "\U0001f600",
        "null",
        "true",
        "NaN",
        "DefaultCluster",
        "TBW102",
        "%",
        "*",
        "||",
    ),
)
PACKED = ("DELAY\x0199\x02", "TIMER_DELIVER_MS\x01-1\x02", "UNIQ_KEY\x01", "\x01\x02\x01", "KEYS")


def absurd_fields(code: int, chance: random.Random) -> dict[str, object]:
    """A value from the edge of what it can carry for each field, or none; a few make sense."""
    fields: dict[str, object] = {}
    for each in msgspec.structs.fields(headers.REQUESTS[code]):
        if chance.random() < 0.1:
            continue
        sense: tuple[object, ...] = (TOPIC, 0, 1, 4, "false")
        choices = sense if chance.random() < 0.6 else (*NUMBERS, *TEXTS, *PACKED)
        fields[each.encode_name] = chance.choice(choices)
    return fields


def absurd_body(chance: random.Random) -> bytes:
    deep = 5_000
    return chance.choice(
        (
            b"",
            b"{}",
            b"[]",
            b"null",
            b'{"clientID":1}',
            b'{"clientID":"c","consumerDataSet":[{}],"producerDataSet":[null]}',
            b'{"consumerGroup":"g","clientId":"c","mqSet":[{"topic":"t","queueId":-1}]}',
            b"[" * deep + b"]" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            b"a=b\n=\n",
            chance.randbytes(300),
            encode_batch([(0, b"x", b"")] * 3)[:-1],
            struct.pack(">iIIii", 2**31 - 1, 0, 0, 0, 2**31 - 1) + bytes(100),
            struct.pack(">iIIii", -1, 0, 0, 0, -1) + bytes(100),
            struct.pack(">iIIii", 22, 0, 0, 0, 0) + b"\xff\xff",
        )
    )


def test_any_values_in_any_request_get_an_answer_or_an_end(
    server: RunningServer, address: tuple[str, int]
) -> None:
    chance = seeded()
    is_alive(server)
    with under_watch(server):
        for code in headers.REQUESTS:
            for _ in range(-(-budget("hostile_rounds_each") // 10)):
                attacker = Client(address)
                attacker.socket.settimeout(0.05)
                attacker.send(code, absurd_fields(code, chance), absurd_body(chance))
                with contextlib.suppress(TimeoutError, ConnectionError):
                    attacker.receive()
                attacker.socket.close()


@pytest.mark.parametrize("code", [-(2**31), -1, 0, 9, 999_999, 2**31 - 1])
def test_a_code_that_no_one_knows_is_answered_with_its_number(
    server: RunningServer, address: tuple[str, int], code: int
) -> None:
    asker = Client(address)
    answer = asker.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert f" request type {code} not supported" in (answer.remark or "")
    asker.socket.close()


# Too much of everything


def test_a_batch_of_many_empty_messages_is_refused_while_others_continue(
    server: RunningServer,
) -> None:
    with under_watch(server, growth_bytes_max=128 << 20):
        attacker = Client(server.address("remoting"))
        body = struct.pack(">iIIii", 22, 0, 0, 0, 0) + bytes(2)
        answer = attacker.publish("many", body * 150_000, batch=True)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert "Batch has more than 4,096 messages." in (answer.remark or "")
        attacker.socket.close()


def test_a_heartbeat_with_very_many_groups_is_answered_while_others_continue(
    server: RunningServer,
) -> None:
    groups = [{"groupName": f"g{number}", "subscriptionDataSet": []} for number in range(20_000)]
    beat = {"clientID": "c", "consumerDataSet": groups, "producerDataSet": []}
    with under_watch(server, growth_bytes_max=256 << 20):
        attacker = Client(server.address("remoting"))
        attacker.ask(34, {}, json.dumps(beat).encode())
        attacker.socket.close()


def test_a_lock_of_very_many_queues_is_answered_while_others_continue(
    server: RunningServer,
) -> None:
    queues = [{"topic": "t", "brokerName": "b", "queueId": number} for number in range(50_000)]
    wanted = {"consumerGroup": "g", "clientId": "c", "mqSet": queues}
    with under_watch(server, growth_bytes_max=256 << 20):
        attacker = Client(server.address("remoting"))
        attacker.ask(41, {}, json.dumps(wanted).encode())
        attacker.socket.close()


def test_a_large_malformed_heartbeat_is_refused_unread(server: RunningServer) -> None:
    body = b'{"clientID":"c","consumerDataSet":[' + b'{"groupName":"g"},' * 860_000
    assert len(body) > 14 << 20
    with under_watch(server, growth_bytes_max=128 << 20):
        attacker = Client(server.address("remoting"))
        answer = attacker.ask(34, {}, body)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert "the maximum of 262,144" in (answer.remark or "")
        attacker.socket.close()


@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_a_large_header_closes_the_connection_unread(
    server: RunningServer, address: tuple[str, int], encoding: int
) -> None:
    with under_watch(server):
        attacker = Client(address, encoding)
        attacker.send(105, {"topic": "x" * (15 << 20)})
        with pytest.raises(ConnectionError):
            attacker.receive()
        attacker.socket.close()


def test_a_header_of_very_many_fields_closes_the_connection(
    server: RunningServer, address: tuple[str, int]
) -> None:
    with under_watch(server):
        attacker = Client(address, BINARY)
        attacker.send(105, {str(number): "" for number in range(40_000)})
        with pytest.raises(ConnectionError):
            attacker.receive()
        attacker.socket.close()


# What is no frame


@pytest.mark.parametrize(
    ("data", "hint"),
    [(HELLO, "looks like TLS"), (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP")],
    ids=["a TLS hello", "HTTP"],
)
def test_what_speaks_another_protocol_is_closed_with_one_line(
    server: RunningServer, address: tuple[str, int], data: bytes, hint: str
) -> None:
    mark = len(server.log)
    with socket.create_connection(address, timeout=60) as sock:
        sock.sendall(data)
        assert sock.recv(100) == b""
    wait_until(lambda: hint in server.log[mark:], "the line is logged")
    (line,) = server.log[mark:].splitlines()
    assert " info " in line and " closed on error " in line


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\0\0\0\4\0\xff\xff\xff",
        b"\0\0\0\6\0\0\0\2{}",
        b"\0\0\0\4\2\0\0\0",
    ],
)
def test_what_is_no_frame_closes_the_connection(
    server: RunningServer, address: tuple[str, int], data: bytes
) -> None:
    with socket.create_connection(address, timeout=60) as sock:
        sock.sendall(data)
        assert sock.recv(100) == b""
    is_alive(server)


def test_a_frame_that_does_not_arrive_in_time_closes_the_connection(
    server: RunningServer,
) -> None:
    with socket.create_connection(server.address("remoting"), timeout=60) as sock:
        sock.sendall(REQUESTS[0][:-5])
        assert sock.recv(100) == b""
    is_alive(server)


def test_requests_before_a_broken_one_are_answered(server: RunningServer) -> None:
    client = Client(server.address("remoting"))
    client.connection.request(28)
    good = b"".join(client.connection.data_to_send())
    client.socket.sendall(good + b"\0\0\0\1x")
    assert client.answer(0).code == 0
    with pytest.raises(ConnectionError):
        client.answer(1)
    client.socket.close()


def test_a_thousand_waiting_pulls_of_one_client_end_with_it(server: RunningServer) -> None:
    client = Client(server.address("remoting"))
    client.publish("crowded")
    for _ in range(1000):
        client.begin_pull("crowded", 1, sysFlag=6, suspendTimeoutMillis=60_000)
    assert client.ask(28).code == 0
    client.socket.close()
    is_alive(server)


# Slowness


async def test_one_byte_a_second_is_cut_off_when_its_request_is_overdue() -> None:
    line = Line().open()
    sent = 0
    for byte in struct.pack(">i", 5000) + bytes(5000):
        if line.transport.is_lost:
            break
        line.receive(bytes([byte]))
        line.clock.advance(1.0)
        sent += 1
    assert sent <= 2 * LIMITS.frame_seconds_max
    assert line.budget.used == 0 and line.clock.timers == []


async def test_answers_read_at_one_byte_a_second_do_not_pile_up() -> None:
    line = Line().open()
    line.script.answer = lambda body: body * 600
    line.send(b"1", b"2", b"3", b"4", b"5", b"6")
    for _ in range(300):
        line.transport.read(1)
        line.clock.advance(1.0)
        assert len(line.transport.unread) <= 2 * LIMITS.unread_bytes_max
    assert len(line.script.started) <= 3


def test_many_requests_that_never_end_hold_up_no_one(
    server: RunningServer, address: tuple[str, int]
) -> None:
    with under_watch(server), contextlib.ExitStack() as stack:
        for _ in range(budget("hostile_rounds_each")):
            sock = stack.enter_context(socket.create_connection(address, timeout=60))
            sock.sendall(struct.pack(">ii", 10 << 20, 100) + b'{"code":28,' + bytes(500))
