"""Bytes recorded between the real client and the real broker mean what is written beside them."""

from typing import Any

import msgspec
import pytest
from tests.protocol.remoting.golden import FRAMES, Golden, answers, requests

from rockgate.protocol.entry import get_property
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies import clients, nameserver, queues, topics
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import BINARY, JSON, decode, encode
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.hot.requests import decode as decode_by_hand
from rockgate.protocol.remoting.message import decode_all, decode_batch, encode_batch

# Fields that the client adds to every request and no handler reads.
PASSED_OVER = {"bname", "ReqT", "lo", "dataVersion", "maxGroupNum", "groupSeq"}

BODIES: dict[tuple[int, bool], Any] = {
    (28, True): topics.KeyValues,
    (34, False): clients.HeartbeatBody,
    (38, True): clients.ConsumerIds,
    (41, False): queues.LockBody,
    (41, True): queues.LockedBody,
    (42, False): queues.LockBody,
    (46, False): clients.CheckClientBody,
    (103, False): nameserver.RegisterBody,
    (105, True): nameserver.RouteData,
    (106, True): nameserver.ClusterInfo,
    (200, False): clients.SubscriptionGroupConfig,
    (201, True): clients.SubscriptionGroups,
    (202, True): queues.TopicStats,
    (203, True): clients.ConsumerConnections,
    (206, True): topics.TopicList,
    (208, True): queues.ConsumeStats,
    (222, True): queues.OffsetTable,
    (300, True): topics.GroupList,
    (351, True): topics.TopicConfig,
    (400, False): queues.AssignmentBody,
    (400, True): queues.AssignmentAnswer,
    (401, False): queues.RequestModeBody,
}
# Answers whose body is messages, and requests that carry one.
MESSAGES = {(11, True), (12, True), (33, True), (361, True), (200050, True), (39, False)}


@pytest.mark.parametrize("golden", FRAMES, ids=str)
def test_a_recorded_header_is_read_as_written_beside_it(golden: Golden) -> None:
    command = decode(golden.inner)
    said = golden.said
    assert command.encoding == (BINARY if said["encoding"] == "ROCKETMQ" else JSON)
    for name in ("code", "version", "opaque", "flag", "remark", "fields"):
        assert getattr(command, name) == said[name], name
    assert (len(command.body), command.language) == (said["body_size"], "JAVA")
    assert command.is_answer == golden.is_answer


@pytest.mark.row("M-03")
@pytest.mark.parametrize("golden", FRAMES, ids=str)
def test_a_recorded_frame_is_written_as_it_was_but_for_empty_fields(golden: Golden) -> None:
    command = decode(golden.inner)
    written = encode(command) + bytes(command.body)
    if command.encoding == JSON and not command.fields:
        assert decode(memoryview(written)[4:]).opaque == command.opaque
    else:
        assert written == golden.frame


@pytest.mark.parametrize("golden", FRAMES, ids=str)
def test_every_field_of_a_recorded_header_has_a_type_and_comes_back(golden: Golden) -> None:
    command = decode(golden.inner)
    table = headers.ANSWERS if golden.is_answer else headers.REQUESTS
    kind = table.get(golden.request_code)
    if kind is None or (golden.is_answer and not command.fields):
        assert command.fields == {}
        return
    read = headers.read(command, kind)
    written = headers.write(read)
    for name, value in command.fields.items():
        assert name in PASSED_OVER or written[name] == value


@pytest.mark.parametrize("golden", [each for each in FRAMES if each.said["body_size"]], ids=str)
def test_a_recorded_body_is_read_and_means_the_same_when_written_again(golden: Golden) -> None:
    body = decode(golden.inner).body
    key = (golden.request_code, golden.is_answer)
    if key in MESSAGES:
        messages = list(decode_all(body))
        assert sum(message.size for message in messages) == len(body)
        assert all(message.topic and message.message_id for message in messages)
    elif (kind := BODIES.get(key)) is not None:
        value = javajson.decode(body, kind, "body")
        assert javajson.decode(javajson.encode(value), kind, "body") == value
    else:
        assert key in {(307, True), (309, False), (309, True)} or golden.request_code in {
            *(RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE),
            *(RequestCode.SEND_REPLY_MESSAGE_V2, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT),
        }


@pytest.mark.parametrize("golden", answers(202, 208, 222), ids=str)
def test_maps_with_objects_as_keys_are_written_byte_for_byte_as_java_does(golden: Golden) -> None:
    body = bytes(decode(golden.inner).body)
    value = javajson.decode(body, BODIES[golden.request_code, True], "body")
    assert javajson.encode(value) == body


@pytest.mark.parametrize("golden", requests(310, 320, 11, 361), ids=str)
def test_the_hand_codec_reads_a_recorded_request_as_the_declared_one(golden: Golden) -> None:
    kind = headers.REQUESTS[golden.request_code]
    declared = headers.read(decode(golden.inner), kind)
    by_hand = decode_by_hand(golden.inner)
    assert headers.read(by_hand, kind) == declared
    if golden.said["encoding"] == "JSON":
        assert isinstance(by_hand.header, msgspec.Struct)
    for name in ("code", "opaque", "flag", "version", "language", "encoding"):
        assert getattr(by_hand, name) == getattr(decode(golden.inner), name)


@pytest.mark.parametrize("golden", requests(320), ids=str)
def test_a_recorded_batch_opens_and_closes_to_the_same_bytes(golden: Golden) -> None:
    body = bytes(decode(golden.inner).body)
    flags, bodies, properties, _ = decode_batch(body)
    assert len(flags) == 20
    assert [bytes(each) for each in bodies[:2]] == [b"b0", b"b1"]
    assert get_property(properties[0], b"KEYS") == b"bk0"
    again = encode_batch(zip(flags, map(bytes, bodies), properties, strict=True))
    assert again == body


def test_a_recorded_pull_gives_whole_messages() -> None:
    [golden] = [each for each in answers(11) if each.said["body_size"] > 3000][:1]
    messages = list(decode_all(decode(golden.inner).body))
    assert [message.queue_offset for message in messages] == list(range(len(messages)))
    assert messages[0].body == b"b0"
    assert messages[0].properties["TAGS"] == "TagB"
    assert messages[0].store_host == (b"\x7f\0\0\1", 20911)
    assert messages[0].offset_message_id == "7F000001000051AF00000000181CE302"


def test_a_connection_takes_a_recorded_conversation() -> None:
    client, server = Connection(), Connection()
    request = requests(14)[0]
    [received] = server.receive_data(request.frame)
    assert (received.code, received.fields["queueId"]) == (14, "1")
    client.pending[received.opaque] = received.code
    answer = next(each for each in answers(14) if each.said["opaque"] == received.opaque)
    [got] = client.receive_data(answer.frame)
    assert got.is_answer and got.opaque == received.opaque
    assert client.pending == {}
