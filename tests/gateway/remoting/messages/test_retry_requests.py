"""Giving messages back over the wire, and what Kafka's clients see of it."""

from __future__ import annotations

import json
from random import Random

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.gateway.remoting.client import Client, messages, properties
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.remoting.message import Message


def send_back(broker: Client, message: Message, group: str, **more: object) -> int:
    fields = {
        "offset": message.position,
        "group": group,
        "delayLevel": 1,
        "originMsgId": message.message_id,
        "originTopic": message.topic,
        "unitMode": "false",
        "bname": "rockgate",
        **more,
    }
    return broker.ask(36, {name: text for name, text in fields.items() if text is not None}).code


def pulled(broker: Client, topic: str) -> list[Message]:
    answer = broker.pull(topic)
    return messages(answer) if answer.code == 0 else []


def test_a_message_is_given_back_comes_again_and_ends_as_a_dead_letter(broker: Client) -> None:
    broker.publish("wire-retries", b"fails", properties={"UNIQ_KEY": "u1", "KEYS": "k"})
    [message] = pulled(broker, "wire-retries")
    assert send_back(broker, message, "wire-group", maxReconsumeTimes=1) == 0
    wait_until(lambda: pulled(broker, "%RETRY%wire-group") != [], "the retry")
    [again] = pulled(broker, "%RETRY%wire-group")
    assert (again.reconsume_times, again.properties["RETRY_TOPIC"]) == (1, "wire-retries")
    assert send_back(broker, again, "wire-group", maxReconsumeTimes=1) == 0
    [dead] = pulled(broker, "%DLQ%wire-group")
    assert (dead.body, dead.reconsume_times) == (b"fails", 2)
    seen = messages(broker.ask(33, {"offset": dead.position}))
    assert [each.body for each in seen] == [b"fails"]
    described = json.loads(bytes(broker.ask(351, {"topic": "%DLQ%wire-group"}).body))
    assert (described["perm"], described["readQueueNums"]) == (6, 1)


def test_one_record_of_a_large_compressed_batch_and_kafka_reads_both_aliases(
    broker: Client, server: RunningServer
) -> None:
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "compression.type": "zstd", "linger.ms": 200}
    )
    for number in range(60):
        value = None if number == 7 else b"%d" % number + Random(number).randbytes(1 << 10)
        headers = [("color", b"blue"), ("raw", b"\x00\xff")]
        producer.produce("wire-batches", value, b"key %d" % number, 0, headers=headers)
    assert producer.flush(60) == 0
    record = next(each for each in pulled(broker, "wire-batches") if each.queue_offset == 7)
    assert record.position >> 44, "it is one of several in its entry"
    assert send_back(broker, record, "shop|wire") == 0
    assert send_back(broker, record, "shop|wire", delayLevel=-1) == 0
    wait_until(lambda: pulled(broker, "%RETRY%shop|wire") != [], "the retry")
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "looking"})
    listed = consumer.list_topics(timeout=60).topics
    for topic in ("rmq.retry.shop.wire", "rmq.dlq.shop.wire"):
        assert len(listed[topic].partitions) == 1
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60) == (0, 1)
        consumer.assign([TopicPartition(topic, 0, 0)])
        [found] = consumer.consume(1, 20)
        assert found.error() is None
        assert (found.topic(), found.key(), found.value()) == (topic, b"key 7", None)
        assert found.timestamp()[1] == record.born_ms
        told = dict(found.headers())
        assert (told["color"], told["raw"], told["RETRY_TOPIC"]) == (
            b"blue",
            b"\x00\xff",
            b"wire-batches",
        )
        assert (told["RECONSUME_TIME"], told["__RETRY_OFFSET"]) == (b"1", b"7")
        consumer.commit(found, asynchronous=False)
    [kept] = consumer.committed([TopicPartition("rmq.dlq.shop.wire", 0)], 20)
    assert kept.offset == 1
    consumer.close()


def test_what_a_kafka_producer_puts_into_the_retry_topic_the_group_gets(
    broker: Client, server: RunningServer
) -> None:
    broker.heartbeat("c1", "handed", "anything")
    producer = Producer({"bootstrap.servers": server.bootstrap})
    producer.produce("rmq.retry.handed", b"from kafka", b"k")
    assert producer.flush(60) == 0
    [message] = pulled(broker, "%RETRY%handed")
    assert message.body == b"from kafka"
    assert send_back(broker, message, "handed", delayLevel=-1) == 0
    assert [each.body for each in pulled(broker, "%DLQ%handed")] == [b"from kafka"]


def test_a_group_without_retry_queues_lets_go_of_what_it_fails(broker: Client) -> None:
    settings = {"groupName": "careless", "retryQueueNums": 0}
    assert broker.ask(200, {}, json.dumps(settings).encode()).code == 0
    broker.publish("wire-careless", b"gone")
    [message] = pulled(broker, "wire-careless")
    assert send_back(broker, message, "careless", delayLevel=-1) == 0
    assert pulled(broker, "%DLQ%careless") == []


def test_what_is_not_there_is_refused_and_no_group_too(broker: Client) -> None:
    broker.publish("wire-refused", b"there")
    [message] = pulled(broker, "wire-refused")
    for offset in (-1, 1 << 62, message.position + 1, message.position | 1 << 44):
        assert send_back(broker, message, "g", offset=offset) == 1
    assert send_back(broker, message, "") == 29
    assert send_back(broker, message, "bad name") == 29
    assert send_back(broker, message, "g", delayLevel=None) == 29


def test_a_group_that_reads_in_order_sends_what_it_gives_up_to_the_dead_letters(
    broker: Client,
) -> None:
    queue = {"topic": "wire-ordered", "brokerName": "rockgate", "queueId": 0}
    locking = {"consumerGroup": "in-order", "clientId": "c", "mqSet": [queue]}
    broker.heartbeat("c", "in-order", "wire-ordered")
    fields = {
        "a": "CLIENT_INNER_PRODUCER",
        "b": "%RETRY%in-order",
        "c": "TBW102",
        "d": 4,
        "e": 0,
        "f": 0,
        "g": 1_700_000_000_000,
        "h": 0,
        "i": properties({"RETRY_TOPIC": "wire-ordered", "DELAY": "5"}),
        "j": 2,
        "k": "false",
        "l": 2,
        "m": "false",
    }
    assert broker.ask(310, fields, b"not in order").code == 0
    assert pulled(broker, "%DLQ%in-order") == [], "it waits: nobody reads in order"
    assert broker.ask(41, {}, json.dumps(locking).encode()).code == 0
    assert broker.ask(310, fields, b"in order").code == 0
    [dead] = pulled(broker, "%DLQ%in-order")
    assert (dead.body, dead.reconsume_times) == (b"in order", 2)
    assert dead.properties["MAX_RECONSUME_TIMES"] == "2"
    assert broker.ask(310, {**fields, "j": 3}, b"too often").code == 0
    assert [each.body for each in pulled(broker, "%DLQ%in-order")] == [b"in order", b"too often"]
