"""No bytes end in anything but a value or a refusal, and none cost more than they weigh."""

import contextlib
import random
import tracemalloc

import msgspec
import pytest
from tests.budget import budget
from tests.protocol.remoting.golden import FRAMES, Golden
from tests.protocol.remoting.test_golden import BODIES
from tests.seeds import seeded

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.command import JSON, Command, decode, encode, lead
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest
from rockgate.protocol.remoting.hot import requests
from rockgate.protocol.remoting.message import decode_all, decode_batch

MIB = 1024 * 1024


def read_everything(frame: bytes) -> None:
    """Everything a server would do with a frame before it acts."""
    try:
        command = requests.decode(memoryview(frame)[4:])
        for table in (headers.REQUESTS, headers.ANSWERS):
            if kind := table.get(command.code):
                headers.read(command, kind)
        for is_answer in (False, True):
            if kind := BODIES.get((command.code, is_answer)):
                javajson.decode(command.body, kind, "body")
        list(decode_all(command.body, size_max=MIB))
        decode_batch(command.body)
    except (ProtocolError, MalformedRequest, MalformedContent):
        pass


def mutated(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(data))
        match chance.randrange(4):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, 8)]
            case 2:
                data[at:at] = chance.randbytes(chance.randint(1, 8))
            case 3:
                data[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff"))
        if len(data) < 9:
            break
    return bytes(data)


@pytest.mark.parametrize("golden", FRAMES[::7], ids=str)
def test_a_frame_cut_anywhere_is_read_or_refused(golden: Golden) -> None:
    step = max(1, len(golden.frame) // budget("wire_mutations"))
    for end in range(4, len(golden.frame), step):
        read_everything(golden.frame[:end])


def test_mutated_frames_are_read_or_refused() -> None:
    chance = seeded()
    for _ in range(budget("wire_mutations") * 20):
        read_everything(mutated(chance.choice(FRAMES).frame, chance))


def test_noise_on_a_connection_ends_in_a_refusal() -> None:
    chance = seeded()
    for _ in range(budget("wire_mutations")):
        connection = Connection(frame_bytes_max=MIB)
        try:
            for _ in range(10):
                connection.receive_data(chance.randbytes(chance.randint(1, 100)))
        except ProtocolError:
            assert connection.is_broken


@pytest.mark.parametrize(
    "head",
    [
        b'{"code":1,"extFields":{' + b",".join(b'"%d":""' % n for n in range(100_000)) + b"}}",
        b'{"code":310,"extFields":{' + b",".join(b'"%d":""' % n for n in range(100_000)) + b"}}",
        b'{"code":1,"x":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
    ],
)
def test_a_crowded_header_costs_a_small_multiple_of_its_bytes(head: bytes) -> None:
    frame = memoryview(lead(JSON, head, 0))[4:]
    tracemalloc.start()
    with contextlib.suppress(ProtocolError):
        requests.decode(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(head) + MIB


def test_a_header_length_that_lies_takes_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        decode(memoryview(b"\0\xff\xff\xff{}"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


def test_a_name_given_twice_counts_once() -> None:
    head = b'{"code":35,"extFields":{"clientID":"a","clientID":"b"}}'
    read = decode(memoryview(lead(JSON, head, 0))[4:])
    assert read.fields == {"clientID": "b"}


def test_numbers_that_only_python_would_take_are_refused() -> None:
    for text in ("0x10", "1_0", "--1", "True", "NaN", "\u0661"):
        with pytest.raises(MalformedRequest):
            headers.read(Command(31, {"topic": "t", "queueId": text}), headers.offsets.QueueHeader)


def test_texts_of_any_kind_travel_in_a_remark() -> None:
    for remark in ("\x00\x01", "日本", "\u2028", '"}', "\\"):
        frame = encode(Command(1, remark=remark))
        assert decode(memoryview(frame)[4:]).remark == remark
        assert msgspec.json.decode(frame[8:])["remark"] == remark
