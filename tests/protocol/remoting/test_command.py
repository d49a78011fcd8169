import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.errors import MalformedFrame
from rockgate.protocol.remoting.codes import VERSION
from rockgate.protocol.remoting.command import BINARY, JSON, Command, decode, encode, lead

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
COMMANDS = st.builds(
    Command,
    st.integers(-(2**15), 2**15 - 1),
    st.dictionaries(TEXTS, TEXTS, max_size=6),
    st.binary(max_size=40),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(0, 3),
    remark=st.none() | TEXTS.filter(bool),
    encoding=st.sampled_from([JSON, BINARY]),
    version=st.integers(0, 600),
    language=st.sampled_from(["JAVA", "PYTHON", "GO", "OTHER"]),
)


def frame_of(command: Command) -> bytes:
    return encode(command) + bytes(command.body)


def inner(frame: bytes) -> memoryview:
    (size,) = struct.unpack_from(">i", frame)
    assert size == len(frame) - 4
    return memoryview(frame)[4:]


def json_frame(head: bytes, body: bytes = b"") -> memoryview:
    return inner(lead(JSON, head, len(body)) + body)


@given(COMMANDS)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_is_written_is_read_in_either_encoding(command: Command) -> None:
    read = decode(inner(frame_of(command)))
    for name in ("code", "fields", "opaque", "flag", "remark", "version", "language", "encoding"):
        assert getattr(read, name) == getattr(command, name), name
    assert bytes(read.body) == command.body
    assert read.size == len(frame_of(command)) - 4


def test_a_json_header_is_what_java_writes() -> None:
    command = Command(0, {"offset": "7"}, opaque=5, flag=1, language="JAVA")
    assert bytes(inner(encode(command))[4:]).decode() == (
        '{"code":0,"extFields":{"offset":"7"},"flag":1,"language":"JAVA","opaque":5,'
        '"serializeTypeCurrentRPC":"JSON","version":513}'
    )


def test_our_version_is_that_of_rocketmq_5_5_0() -> None:
    assert Command(0).version == VERSION == 513


def test_a_json_header_may_have_its_keys_in_any_order_and_others_besides() -> None:
    head = json.dumps({"version": 1, "more": [1, {}], "opaque": 9, "code": 34}).encode()
    read = decode(json_frame(head, b"body"))
    assert (read.code, read.opaque, read.fields, bytes(read.body)) == (34, 9, {}, b"body")


def test_a_code_that_two_bytes_do_not_hold_is_cut_off_as_rocketmq_does() -> None:
    read = decode(inner(encode(Command(200050, encoding=BINARY))))
    assert read.code == 200050 - 3 * 65536


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "Frame of 0 bytes has no header length."),
        (b"\0\0\0", "Frame of 3 bytes has no header length."),
        (b"\0\0\0\5{}", "Header of 5 bytes exceeds the frame of 6."),
        (b"\2\0\0\0", "Unknown header encoding 2."),
        (b"\0\0\0\2{}", "JSON header is invalid: Object missing required field `code`."),
        (b"\0\0\0\1{", "JSON header is invalid: Input data was truncated."),
        (
            b'\0\0\0\x0c{"code":"x"}',
            "JSON header is invalid: Expected `int`, got `str` - at `$.code`.",
        ),
        (
            b'\0\0\0\x17{"code":99999999999999}',
            "JSON header is invalid: code 99999999999999 is not a 32-bit integer.",
        ),
        (b"\1\0\0\0", "Binary header is truncated at 0 bytes."),
        (b"\1\0\0\x0d" + bytes(13), "Binary header is truncated at 13 bytes."),
        (
            b"\1\0\0\x11" + bytes(13) + b"\0\0\0\1",
            "Binary header is invalid: remark of 1 bytes at byte 13 exceeds the 0 left.",
        ),
        (
            b"\1\0\0\x11" + bytes(13) + b"\xff\xff\xff\xff",
            "Binary header is invalid: remark of -1 bytes at byte 13 exceeds the 0 left.",
        ),
        (
            b"\1\0\0\x17" + bytes(17) + b"\0\0\0\2\0\1",
            "Binary header is invalid: field at byte 0 exceeds its 2 bytes.",
        ),
        (
            b"\1\0\0\x1c" + bytes(17) + b"\0\0\0\7\0\1a\0\0\0\1",
            "Binary header is invalid: field at byte 0 exceeds its 7 bytes.",
        ),
    ],
)
def test_a_header_that_cannot_be_read_is_refused_with_its_reason(frame: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrame) as refused:
        decode(memoryview(frame))
    assert str(refused.value) == reason


def test_bytes_that_are_no_text_are_refused() -> None:
    head = bytes(13) + b"\0\0\0\1\xff" + bytes(4)
    with pytest.raises(MalformedFrame, match="utf-8"):
        decode(inner(lead(BINARY, head, 0)))
    with pytest.raises(MalformedFrame, match="utf-8"):
        decode(json_frame(b'{"code":1,"remark":"\xff"}'))


def test_a_deep_json_header_is_refused() -> None:
    with pytest.raises(MalformedFrame):
        decode(json_frame(b'{"code":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"))


def test_a_command_describes_itself_for_logs() -> None:
    assert repr(Command(105, opaque=3, body=b"ab")) == (
        "Command(GET_ROUTEINFO_BY_TOPIC, code 105, opaque 3, 2 bytes)"
    )
    assert "answer" in repr(Command(0, flag=1))
