"""Sends over the wire, against a running server."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.gateway.kafka.admin import SYNC, Admin
from tests.gateway.remoting.client import BINARY, Client, messages, properties

from rockgate.gateway.remoting.messages.sender import MessageKind, classify
from rockgate.gateway.remoting.processors.send import Sends
from rockgate.protocol.entry import COMPRESSED
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.compression import Compression, compress
from rockgate.protocol.remoting.message import encode_batch
from rockgate.store.write.append import Appended, AppendedMessages


def test_a_send_is_answered_with_where_the_message_lies(broker: Client) -> None:
    first = broker.publish("sent", b"one", queue=2)
    second = broker.publish("sent", b"two", queue=2)
    assert (first.code, second.code) == (0, 0)
    assert first.fields["queueId"] == "2"
    assert [each.fields["queueOffset"] for each in (first, second)] == ["0", "1"]
    assert first.fields["transactionId"] == "id-1"
    assert first.version == 513
    [one, two] = messages(broker.pull("sent", queue=2))
    assert (one.body, two.body) == (b"one", b"two")
    assert one.offset_message_id == first.fields["msgId"]


def test_a_client_sees_the_properties_that_the_producer_set(broker: Client) -> None:
    given = {"KEYS": "k1 k2", "TAGS": "A", "color": "blue", "empty": "x" * 1000}
    broker.publish("properties", properties=given)
    [message] = messages(broker.pull("properties"))
    assert message.properties == given


def test_an_answer_comes_in_the_encoding_of_its_request(connect: Callable[..., Client]) -> None:
    client = connect(encoding=BINARY)
    answer = client.publish("binary", b"x")
    assert (answer.encoding, answer.code, answer.fields["queueOffset"]) == (BINARY, 0, "0")
    pulled = client.pull("binary")
    assert pulled.encoding == BINARY
    for refused in (client.ask(999), client.pull("no-such-topic"), client.ask(14)):
        assert refused.code != 0 and refused.encoding == BINARY
    assert [message.body for message in messages(pulled)] == [b"x"]


def test_the_old_form_of_a_send_is_taken_too(broker: Client) -> None:
    fields = {
        "producerGroup": "g",
        "topic": "old-form",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": 1,
        "flag": 7,
        "properties": properties({"TAGS": "old"}),
        "reconsumeTimes": 0,
        "unitMode": "false",
        "batch": "false",
    }
    assert broker.ask(10, fields, b"old").code == 0
    [message] = messages(broker.pull("old-form"))
    assert (message.flag, message.properties) == (7, {"TAGS": "old"})


def test_a_batch_has_an_id_for_each_message(broker: Client) -> None:
    parts = [(0, b"b%d" % n, properties({"TAGS": f"t{n}"}).encode()) for n in range(5)]
    answer = broker.publish("batched", encode_batch(parts), batch=True)
    assert answer.code == 0
    assert len(answer.fields["msgId"].split(",")) == 5
    found = messages(broker.pull("batched"))
    assert [message.body for message in found] == [b"b%d" % n for n in range(5)]
    assert [message.queue_offset for message in found] == list(range(5))
    assert ",".join(each.offset_message_id for each in found) == answer.fields["msgId"]


def test_a_one_way_send_is_stored_and_not_answered(broker: Client) -> None:
    broker.publish("one-way", b"first")
    fields = {"a": "g", "b": "one-way", "e": 0, "f": 0, "g": 1, "h": 0}
    broker.send(310, fields, b"second", oneway=True)
    assert [m.body for m in messages(broker.pull("one-way"))] == [b"first", b"second"]


@pytest.mark.parametrize("kind", list(Compression))
def test_a_compressed_body_stays_compressed_on_its_way(broker: Client, kind: Compression) -> None:
    topic = f"packed-{kind.name}"
    body = compress(b"hello " * 1000, kind)
    assert broker.publish(topic, body, sys_flag=COMPRESSED | kind).code == 0
    answer = broker.pull(topic)
    assert body in bytes(answer.body)
    assert [message.body for message in messages(answer)] == [b"hello " * 1000]


def test_an_unknown_topic_is_made_with_the_queues_that_the_client_wants(
    broker: Client, namesrv: Client
) -> None:
    assert namesrv.ask(105, {"topic": "by-itself"}).code == ResponseCode.TOPIC_NOT_EXIST
    assert broker.publish("by-itself").code == 0
    route = namesrv.ask(105, {"topic": "by-itself"})
    assert b'"readQueueNums":4' in bytes(route.body)
    assert b'"perm":6' in bytes(route.body)


@pytest.mark.row("SND-4")
@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"b": "no such topic"}, ResponseCode.INVALID_PARAMETER, "'no such topic'"),
        ({"b": "x" * 128}, ResponseCode.INVALID_PARAMETER, "1 to 127"),
        ({"b": ""}, ResponseCode.INVALID_PARAMETER, "Topic name"),
        ({"c": "nothing"}, ResponseCode.TOPIC_NOT_EXIST, "apply first"),
        ({"b": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION, "forbidden"),
        ({"b": "TBW102", "e": 99}, ResponseCode.SYSTEM_ERROR, "queueId[99] is illegal"),
        ({"e": "x"}, ResponseCode.INVALID_PARAMETER, "Expected `int`"),
        ({"i": "TAGS\x01" + "x" * 40_000}, ResponseCode.MESSAGE_ILLEGAL, "Properties are"),
        ({"i": "DELAY\x01x\x02"}, ResponseCode.MESSAGE_ILLEGAL, "DELAY 'x' is not a number."),
        ({"m": "true"}, ResponseCode.MESSAGE_ILLEGAL, "batch"),
    ],
)
def test_a_send_that_cannot_be_is_refused_with_its_reason(
    broker: Client, changes: dict[str, object], code: ResponseCode, remark: str
) -> None:
    fields = {"a": "g", "b": "refused", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
    answer = broker.ask(310, {**fields, **changes}, b"x")
    assert (answer.code, remark in (answer.remark or "")) == (code, True), answer.remark
    assert broker.publish("still-alive").code == 0


@pytest.mark.parametrize("size", [0, 4 * 1024 * 1024 + 1])
def test_a_body_that_no_message_has_is_refused(broker: Client, size: int) -> None:
    assert broker.publish("sizes", bytes(size)).code == ResponseCode.MESSAGE_ILLEGAL
    assert broker.publish("sizes", b"x" * (4 * 1024 * 1024)).code == 0


def test_kinds_are_distinguished_by_flag_and_properties() -> None:
    assert classify(0, b"TAGS\x01DELAY\x02") is MessageKind.ORDINARY
    assert classify(0, b"XDELAY\x013\x02") is MessageKind.ORDINARY
    assert classify(0, b"XDELAY\x013\x02DELAY\x011\x02") is MessageKind.DELAYED
    assert classify(4, b"") is MessageKind.HALF
    assert classify(8, b"") is MessageKind.ORDINARY
    for name in (b"DELAY", b"TIMER_DELAY_MS", b"TIMER_DELAY_SEC", b"TIMER_DELIVER_MS"):
        assert classify(0, b"TAGS\x01a\x02" + name + b"\x011\x02") is MessageKind.DELAYED


@pytest.mark.row("SND-5")
def test_a_send_without_a_queue_is_given_one_that_may_be_written(broker: Client) -> None:
    answers = [broker.publish("any-queue", queue=-1) for _ in range(8)]
    assert {answer.code for answer in answers} == {0}
    assert {int(answer.fields["queueId"]) for answer in answers} <= set(range(4))
    for answer in answers:
        queue, offset = int(answer.fields["queueId"]), int(answer.fields["queueOffset"])
        [message, *_] = messages(broker.pull("any-queue", offset, queue=queue))
        assert message.offset_message_id == answer.fields["msgId"]


# Not on disk in time


class Late:
    """Takes what is sent, and waits for a disk that does not come."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def take(self, *what: object) -> Any:
        appended = Appended(41, 1_000, 1_200, 7, 3)
        return self._admin.durability.after(self._admin.store.log.end, appended)

    def take_batch(self, *what: object) -> Any:
        appended = AppendedMessages(41, [1_000, 1_200], 1_400, 7, 3)
        return self._admin.durability.after(self._admin.store.log.end, appended)


@pytest.mark.parametrize("is_batch", [False, True])
async def test_what_is_stored_and_not_on_disk_in_time_says_so_and_where_it_lies(
    is_batch: bool,
) -> None:
    admin = Admin(replace(SYNC, flush_timeout_ms=1))
    admin.topic()
    sends = Sends(
        sender=cast(Any, Late(admin)),
        clients=cast(Any, None),
        clock=admin.store.clock,
        store_host=bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F)),
        address="127.0.0.1:10911",
        broker_name="rockgate",
    )
    fields = {"a": "g", "b": "t", "c": "TBW102", "d": "4", "e": "-1", "f": "0", "g": "1", "h": "0"}
    fields |= {"i": properties({"UNIQ_KEY": "id-1"}), "m": "true" if is_batch else "false"}
    answer = sends.send(Command(RequestCode.SEND_MESSAGE_V2, fields), cast(Any, None))
    found = await cast(Awaitable[Command], answer)
    assert found.code == ResponseCode.FLUSH_DISK_TIMEOUT
    ids = [f"7F00000100002A9F{position:016X}" for position in (1_000, 1_200)[: 1 + is_batch]]
    assert found.fields["msgId"] == ",".join(ids)
    assert (found.fields["queueId"], found.fields["queueOffset"]) == ("3", "41")
    assert found.fields["transactionId"] == "id-1"
    admin.store.flush()


def test_a_compacted_topic_takes_no_message_without_a_key(broker: Client) -> None:
    made = {
        "topic": "compacted",
        "defaultTopic": "TBW102",
        "readQueueNums": 1,
        "writeQueueNums": 1,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": "false",
        "attributes": "+cleanup.policy=COMPACTION",
    }
    assert broker.ask(17, made).code == 0
    found = json.loads(bytes(broker.ask(351, {"topic": "compacted"}).body))
    assert found["attributes"] == {"cleanup.policy": "COMPACTION"}
    answer = broker.publish("compacted")
    assert (answer.code, answer.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "Required message key is missing",
    )
    with_key, without = ((0, b"b", properties({name: "x"}).encode()) for name in ("KEYS", "TAGS"))
    batches = [encode_batch([with_key, each]) for each in (with_key, without)]
    codes = [broker.publish("compacted", each, batch=True).code for each in batches]
    assert codes == [0, ResponseCode.MESSAGE_ILLEGAL]
    for bad in ("SQUASH", ""):
        attributes = f"+cleanup.policy={bad}"
        answer = broker.ask(17, {**made, "attributes": attributes})
        assert answer.code == ResponseCode.INVALID_PARAMETER
    assert broker.ask(17, {**made, "attributes": "-cleanup.policy"}).code == 0
    assert broker.publish("compacted").code == 0
