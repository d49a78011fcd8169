"""Pulls over the wire, against a running server."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer

from rockgate.gateway.remoting.messages.puller import outside
from rockgate.protocol.remoting.codes import ResponseCode

SUSPEND = 2 | 4


@pytest.mark.row("STORE-6")
@pytest.mark.row("BPULL-4")
@pytest.mark.row("BPULL-6")
@pytest.mark.row("R-03")
@pytest.mark.parametrize(
    ("offset", "code", "following"),
    [
        (0, ResponseCode.SUCCESS, 3),
        (2, ResponseCode.SUCCESS, 3),
        (3, ResponseCode.PULL_NOT_FOUND, 3),
        (4, ResponseCode.PULL_OFFSET_MOVED, 3),
        (2**62, ResponseCode.PULL_OFFSET_MOVED, 3),
        (-1, ResponseCode.PULL_OFFSET_MOVED, 0),
        (-(2**62), ResponseCode.PULL_OFFSET_MOVED, 0),
    ],
)
def test_every_odd_offset_gets_a_next_one(
    broker: Client, offset: int, code: ResponseCode, following: int
) -> None:
    if broker.pull("odd").code:
        for _ in range(3):
            broker.publish("odd")
    answer = broker.pull("odd", offset)
    assert (answer.code, answer.fields["nextBeginOffset"]) == (code, str(following))
    assert (answer.fields["minOffset"], answer.fields["maxOffset"]) == ("0", "3")


@pytest.mark.row("STORE-4")
@pytest.mark.row("STORE-5")
@pytest.mark.parametrize(
    ("offset", "start", "end", "code", "following"),
    [
        (0, 0, 0, ResponseCode.PULL_NOT_FOUND, 0),
        (5, 0, 0, ResponseCode.PULL_OFFSET_MOVED, 0),
        (3, 7, 9, ResponseCode.PULL_OFFSET_MOVED, 7),
        (9, 7, 9, ResponseCode.PULL_NOT_FOUND, 9),
        (10, 7, 9, ResponseCode.PULL_OFFSET_MOVED, 9),
        (7, 7, 7, ResponseCode.PULL_NOT_FOUND, 7),
    ],
)
@pytest.mark.row("STORE-7")
def test_offsets_outside_of_a_queue_lead_back_into_it(
    offset: int, start: int, end: int, code: ResponseCode, following: int
) -> None:
    found = outside(offset, start, end)
    assert (found.code, found.next_offset) == (code, following)


@pytest.mark.row("R-01")
@pytest.mark.row("R-05")
@pytest.mark.row("STORE-10")
@pytest.mark.row("STORE-15")
def test_a_pull_ends_at_its_limits_and_has_one_message_at_least(broker: Client) -> None:
    for _ in range(10):
        broker.publish("limits", b"x" * 1000)
    by_count = broker.pull("limits", maxMsgNums=3)
    assert (len(messages(by_count)), by_count.fields["nextBeginOffset"]) == (3, "3")
    by_size = broker.pull("limits", maxMsgBytes=2500)
    assert (len(messages(by_size)), by_size.fields["nextBeginOffset"]) == (2, "2")
    assert len(messages(broker.pull("limits", maxMsgBytes=1))) == 1
    assert len(messages(broker.pull("limits", maxMsgNums=0))) == 1


@pytest.mark.row("H-01")
@pytest.mark.row("LP-1")
@pytest.mark.row("LP-8")
@pytest.mark.row("LP-9")
def test_a_pull_at_the_end_waits_for_the_next_message(
    broker: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("waiting")
    waiting = connect()
    opaque = waiting.hold("waiting", 1)
    assert waiting.ask(30, {"topic": "waiting", "queueId": 0}).fields == {"offset": "1"}
    broker.publish("waiting", b"news")
    assert [m.body for m in messages(waiting.answer(opaque))] == [b"news"]


def test_a_pull_that_waits_in_vain_is_told_so(broker: Client) -> None:
    broker.publish("vain")
    answer = broker.pull("vain", 1, sysFlag=SUSPEND, suspendTimeoutMillis=50)
    assert (answer.code, answer.fields["nextBeginOffset"]) == (ResponseCode.PULL_NOT_FOUND, "1")


@pytest.mark.row("H-03")
@pytest.mark.row("LP-7")
def test_a_tag_that_is_not_wanted_does_not_end_the_wait(
    broker: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("wait-tags", properties={"TAGS": "A"})
    waiting = connect()
    opaque = waiting.hold("wait-tags", 1, subscription="A")
    waiting.ask(30, {"topic": "wait-tags", "queueId": 0})
    broker.publish("wait-tags", b"no", properties={"TAGS": "B"})
    broker.publish("wait-tags", b"yes", properties={"TAGS": "A"})
    answer = waiting.answer(opaque)
    assert [message.body for message in messages(answer)] == [b"yes"]
    assert answer.fields["nextBeginOffset"] == "3"


@pytest.mark.row("R-09")
@pytest.mark.row("STORE-11")
@pytest.mark.row("STORE-14")
def test_tags_are_filtered_by_their_hash(broker: Client) -> None:
    for tag in ("A", "B", "C", None, "A"):
        broker.publish("tags", (tag or "-").encode(), properties={"TAGS": tag} if tag else {})
    found = messages(broker.pull("tags", subscription="A || C"))
    assert [message.body for message in found] == [b"A", b"C", b"A"]
    none = broker.pull("tags", subscription="Z")
    assert (none.code, none.fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "5")


@pytest.mark.row("SUB-6")
def test_sql_is_asked_for_each_message(broker: Client) -> None:
    for number in range(6):
        broker.publish("sql", b"%d" % number, properties={"a": str(number), "color": "blue"})
    # Of these it cannot be said whether they are more than one.
    broker.publish("sql", b"text", properties={"a": "many"})
    broker.publish("sql", b"none", properties={})
    found = messages(
        broker.pull("sql", expressionType="SQL92", subscription="a > 1 AND a < 5 AND a <> 3")
    )
    assert [message.body for message in found] == [b"2", b"4"]
    bad = broker.pull("sql", expressionType="SQL92", subscription="a is is 3 ((")
    assert bad.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert "character 5" in (bad.remark or "")


def test_without_a_subscription_the_heartbeat_s_one_counts(broker: Client) -> None:
    for tag in "AB":
        broker.publish("beats", tag.encode(), properties={"TAGS": tag})
    pull: dict[str, Any] = {"sysFlag": 0, "consumerGroup": "beating", "subscription": ""}
    assert broker.pull("beats", **pull).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    broker.heartbeat("c1", "beating", "beats", expression="B")
    assert [m.body for m in messages(broker.pull("beats", **pull))] == [b"B"]
    broker.publish("beats-other")
    assert broker.pull("beats-other", **pull).code == ResponseCode.SUBSCRIPTION_NOT_EXIST


@pytest.mark.row("BPULL-7")
def test_a_pull_carries_the_group_s_progress_along(broker: Client) -> None:
    for _ in range(4):
        broker.publish("riding")
    broker.pull("riding", 3, sysFlag=1 | 4, commitOffset=3, consumerGroup="rider")
    asked = {"topic": "riding", "queueId": 0, "consumerGroup": "rider"}
    assert broker.ask(14, asked).fields == {"offset": "3"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 99}, ResponseCode.SYSTEM_ERROR),
        ({"queueId": -1}, ResponseCode.SYSTEM_ERROR),
        ({"queueOffset": "x"}, ResponseCode.INVALID_PARAMETER),
        ({"expressionType": "CLASS", "subscription": "x"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    ],
)
@pytest.mark.row("STORE-3")
def test_a_pull_that_cannot_be_is_refused(
    broker: Client, changes: dict[str, Any], code: ResponseCode
) -> None:
    broker.publish("refusing")
    topic = str(changes.pop("topic", "refusing"))
    assert broker.pull(topic, **changes).code == code


def test_what_kafka_wrote_is_read_as_messages_with_the_same_offsets(
    broker: Client, server: RunningServer
) -> None:
    from confluent_kafka import Producer

    broker.publish("both", b"from rocketmq")
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 50})
    for number in range(5):
        producer.produce(
            "both", b"k%d" % number, key=b"key", partition=0, headers=[("TAGS", b"A"), ("h", b"v")]
        )
    assert producer.flush(60) == 0
    broker.publish("both", b"again")
    answer = broker.pull("both")
    found = messages(answer)
    assert [m.body for m in found] == [
        b"from rocketmq",
        *(b"k%d" % n for n in range(5)),
        b"again",
    ]
    assert [m.queue_offset for m in found] == list(range(7))
    assert found[1].properties["KEYS"] == "key"
    assert found[1].properties["h"] == "v"
    tagged = messages(broker.pull("both", subscription="A"))
    assert [m.queue_offset for m in tagged] == [1, 2, 3, 4, 5]
    middle = messages(broker.pull("both", 3, maxMsgNums=2))
    assert [m.queue_offset for m in middle] == [3, 4]
    for place in (found[0], found[3]):
        viewed = broker.ask(33, {"offset": place.position, "topic": "both"})
        assert [m.body for m in messages(viewed)] == [place.body]


def test_messages_are_found_by_key(broker: Client) -> None:
    broker.publish("keys", b"one", properties={"KEYS": "order-1 all", "UNIQ_KEY": "U1"})
    broker.publish("keys", b"two", properties={"KEYS": "order-2 all", "UNIQ_KEY": "U2"})
    asked = {"topic": "keys", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 2**62}
    assert {m.body for m in messages(broker.ask(12, {**asked, "key": "all"}))} == {b"one", b"two"}
    assert [m.body for m in messages(broker.ask(12, {**asked, "key": "U2"}))] == [b"two"]
    assert broker.ask(12, {**asked, "key": "none"}).code == ResponseCode.QUERY_NOT_FOUND
    assert broker.ask(33, {"offset": 12345, "topic": "keys"}).code == ResponseCode.SYSTEM_ERROR


def test_a_check_of_a_subscription_says_what_is_wrong(broker: Client) -> None:
    def check(expression: str) -> int:
        body = {
            "clientId": "c",
            "group": "g",
            "subscriptionData": {
                "topic": "t",
                "expressionType": "SQL92",
                "subString": expression,
            },
        }
        return broker.ask(46, {}, json.dumps(body).encode()).code

    assert check("a > 3") == 0
    assert check("a >") == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_aborted_records_are_stepped_over_and_open_ones_not_reached(
    broker: Client, server: RunningServer
) -> None:
    from confluent_kafka import Producer

    broker.publish("transactional", b"before")
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "tx"})
    producer.init_transactions(20)
    for value, ends in ((b"aborted", producer.abort_transaction), (b"kept", None)):
        producer.begin_transaction()
        producer.produce("transactional", value, partition=0)
        producer.flush(60)
        if ends is not None:
            ends(20)
    broker.publish("transactional", b"after")
    assert [m.body for m in messages(broker.pull("transactional"))] == [b"before"]
    asked = {"topic": "transactional", "queueId": 0}
    assert broker.ask(30, asked).fields == {"offset": "3"}, "before the open transaction"
    producer.commit_transaction(20)
    assert broker.ask(30, asked).fields == {"offset": "6"}
    found = messages(broker.pull("transactional"))
    assert [m.body for m in found] == [b"before", b"kept", b"after"]


def test_expressions_and_tags_are_asked_of_each_record_of_a_batch(
    broker: Client, server: RunningServer
) -> None:
    from confluent_kafka import Producer

    broker.publish("batched-filters", b"message", properties={"a": "3", "TAGS": "odd"})
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 100})
    for number in range(6):
        headers = [("a", b"%d" % number), ("TAGS", b"odd" if number % 2 else b"even")]
        producer.produce("batched-filters", b"%d" % number, partition=0, headers=headers)
    assert producer.flush(60) == 0
    [*found] = messages(
        broker.pull("batched-filters", expressionType="SQL92", subscription="a BETWEEN 2 AND 4")
    )
    assert [m.body for m in found] == [b"message", b"2", b"3", b"4"]
    assert [m.queue_offset for m in found] == [0, 3, 4, 5]
    tagged = messages(broker.pull("batched-filters", 2, subscription="odd"))
    assert [m.queue_offset for m in tagged] == [2, 4, 6]
    none = broker.pull("batched-filters", expressionType="SQL92", subscription="a > 10")
    assert (none.code, none.fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "7")


def test_a_pull_that_asks_for_everything_fits_the_frame_of_a_client(
    broker: Client, server: RunningServer
) -> None:
    """A RocketMQ client takes frames of 16 MiB and closes the connection at a larger one."""
    from confluent_kafka import Producer

    for _ in range(3):
        broker.publish("frames", bytes(4 << 20))
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for _ in range(20):
        producer.produce("frames", bytes(900_000), partition=0)
    assert producer.flush(60) == 0
    at, sizes = 0, []
    while at < 23:
        answer = broker.pull("frames", at, maxMsgNums=2**31 - 1, maxMsgBytes=2**31 - 1)
        assert answer.code == 0
        sizes.append(len(answer.body))
        at = int(answer.fields["nextBeginOffset"])
    assert max(sizes) < (16 << 20) - 4096
    assert sum(sizes) > 3 * (4 << 20) + 20 * 900_000


def test_records_in_batches_are_found_by_key_where_their_topic_is_indexed(
    broker: Client, server: RunningServer
) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topics = [
        NewTopic("keyed-on", 1, 1, config={"message.index": "true"}),
        NewTopic("keyed-off", 1, 1, config={"message.index": "false"}),
    ]
    for future in admin.create_topics(topics).values():
        future.result(60)
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 100})
    for topic in ("keyed-on", "keyed-off"):
        for number in range(4):
            producer.produce(topic, b"%d" % number, key=b"key-%d" % (number % 2), partition=0)
    assert producer.flush(60) == 0

    def by_key(topic: str, key: str) -> list[bytes]:
        asked = {"topic": topic, "key": key, "maxNum": 32, "beginTimestamp": 0}
        answer = broker.ask(12, {**asked, "endTimestamp": 2**62})
        return [m.body for m in messages(answer)] if answer.code == 0 else []

    assert by_key("keyed-on", "key-1") == [b"3", b"1"]
    assert by_key("keyed-off", "key-1") == []


@pytest.mark.row("LP-5")
def test_many_groups_wait_on_one_queue_and_all_are_woken(
    broker: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("crowd")
    waiting = connect()
    opaques = [waiting.hold("crowd", 1, consumerGroup=f"crowd-{n}") for n in range(50)]
    waiting.ask(30, {"topic": "crowd", "queueId": 0})
    broker.publish("crowd", b"news")
    for opaque in opaques:
        assert [m.body for m in messages(waiting.answer(opaque))] == [b"news"]


@pytest.mark.row("STORE-2")
def test_a_queue_that_was_never_written_to_has_a_valid_empty_answer(broker: Client) -> None:
    broker.publish("untouched", queue=0)
    answer = broker.pull("untouched", queue=3)
    assert (answer.code, bytes(answer.body)) == (ResponseCode.PULL_NOT_FOUND, b"")
    names = ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")
    assert [answer.fields[name] for name in names] == ["0", "0", "0", "0"]


@pytest.mark.row("R-08")
@pytest.mark.row("STORE-12")
def test_a_pull_from_what_is_gone_is_led_to_the_first_that_is_there(
    broker: Client, server: RunningServer
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    for number in range(5):
        broker.publish("edge", b"%d" % number)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for future in admin.delete_records([TopicPartition("edge", 0, 3)]).values():
        future.result(60)
    moved = broker.pull("edge", 0)
    assert (moved.code, moved.fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "3")
    found = broker.pull("edge", int(moved.fields["nextBeginOffset"]))
    assert [m.body for m in messages(found)] == [b"3", b"4"]
    assert found.fields["minOffset"] == "3"
