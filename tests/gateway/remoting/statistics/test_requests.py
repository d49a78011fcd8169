"""Statistics over the wire: what mqadmin and consoles read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import ConsumeStats, TopicStats
from rockgate.protocol.remoting.codes import ResponseCode


def table(broker: Client) -> dict[str, str]:
    """The answer to 28."""
    found: dict[str, str] = json.loads(bytes(broker.ask(28).body))["table"]
    return found


def view(broker: Client, name: str, label: str) -> dict[str, Any]:
    """The answer to 315, by window."""
    answer = broker.ask(315, {"statsName": name, "statsKey": label})
    assert answer.code == 0, answer.remark
    found: dict[str, Any] = json.loads(bytes(answer.body))
    assert set(found) == {"statsMinute", "statsHour", "statsDay"}
    return found


@pytest.mark.row("OBS-6")
def test_a_topic_and_a_group_are_reported_over_minute_hour_and_day(broker: Client) -> None:
    for number in range(6):
        broker.publish("counted", b"x" * 100, queue=number % 2)
    assert len(messages(broker.pull("counted", 0, queue=0, consumerGroup="counters"))) == 3
    put = view(broker, "TOPIC_PUT_NUMS", "counted")
    got = view(broker, "GROUP_GET_NUMS", "counted@counters")
    for window in ("statsMinute", "statsHour", "statsDay"):
        assert (put[window]["sum"], put[window]["avgpt"]) == (6, 1.0)
        assert (got[window]["sum"], got[window]["avgpt"]) == (3, 3.0)
        assert 0 < put[window]["tps"] <= 0.6
    assert view(broker, "TOPIC_PUT_SIZE", "counted")["statsDay"]["sum"] > 600
    assert view(broker, "BROKER_PUT_NUMS", "DefaultCluster")["statsDay"]["sum"] >= 6


@pytest.mark.row("OBS-7")
def test_bytes_behind_are_told_of_a_queue(broker: Client) -> None:
    broker.publish("behind", b"x" * 1_000, queue=0)
    asked = {"topic": "behind", "queueId": 0, "consumerGroup": "laggards", "commitOffset": 0}
    assert broker.ask(15, asked).code == 0
    assert view(broker, "GROUP_GET_FALL_SIZE", "0@behind@laggards")["statsMinute"]["sum"] > 1_000
    assert view(broker, "GROUP_GET_FALL_TIME", "0@behind@laggards")["statsMinute"]["sum"] >= 0


def test_a_set_or_label_that_is_not_there_is_refused_by_name(broker: Client) -> None:
    answer = broker.ask(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "nothing-there"})
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "The stats <TOPIC_PUT_NUMS> <nothing-there> not exist"


def test_what_kafka_producers_put_is_counted_too(broker: Client, server: RunningServer) -> None:
    broker.publish("counted-from-kafka")
    kafka = "{}:{}".format(*server.address("kafka"))
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 50})
    for _ in range(20):
        producer.produce("counted-from-kafka", b"x")
    assert producer.flush(30) == 0
    assert view(broker, "TOPIC_PUT_NUMS", "counted-from-kafka")["statsDay"]["sum"] == 21


@pytest.mark.row("OBS-6")
def test_the_broker_tells_what_it_has_put_found_missed_and_refused(broker: Client) -> None:
    before = table(broker)
    broker.publish("figures", b"x" * 100)
    broker.pull("figures", 0)
    broker.publish("figures", b"")
    after = table(broker)

    def grown(name: str) -> int:
        return int(after[name]) - int(before[name])

    assert grown("putMessageTimesTotal") == 1
    assert grown("putMessageSizeTotal") > 100
    assert grown("putMessageFailedTimes") == 1
    assert grown("msgPutTotalTodayNow") == 1
    assert grown("msgGetTotalTodayNow") == 1
    assert float(after["putMessageAverageSize"]) > 0
    assert int(after["getMessageEntireTimeMax"]) >= 0
    assert after["putMessageDistributeTime"].startswith("[<=0ms]:")
    assert after["remainHowManyDataToFlush"].endswith("B")
    assert " Free : " in after["commitLogDirCapacity"]


def test_rates_follow_what_happens(broker: Client) -> None:
    def rates() -> list[float]:
        broker.publish("fast")
        broker.pull("fast", 0)
        told = table(broker)
        names = ("putTps", "getFoundTps", "getTotalTps", "getTransferredTps", "getTransferedTps")
        # Each has three: over ten seconds, a minute and ten minutes.
        assert all(len(told[name].split(" ")) == 3 for name in names)
        return [float(told[name].split(" ")[0]) for name in names]

    wait_until(lambda: all(rates()), "every rate is above zero")


def test_the_rates_of_topics_and_groups_are_in_their_statistics(broker: Client) -> None:
    broker.publish("rated", queue=0)
    broker.pull("rated", 0, consumerGroup="raters")
    topic = javajson.decode(broker.ask(202, {"topic": "rated"}).body, TopicStats, "202")
    assert 0 < topic.topic_put_tps <= 0.1
    group = broker.ask(208, {"consumerGroup": "raters", "topic": "rated"})
    assert 0 < javajson.decode(group.body, ConsumeStats, "208").consume_tps <= 0.1


def test_what_a_group_has_got_and_not_committed_is_in_flight(broker: Client) -> None:
    for _ in range(5):
        broker.publish("flying", queue=0)
    broker.pull("flying", 0, consumerGroup="flyers", maxMsgNums=4)
    asked = {"topic": "flying", "queueId": 0, "consumerGroup": "flyers", "commitOffset": 1}
    assert broker.ask(15, asked).code == 0
    told = broker.ask(208, {"consumerGroup": "flyers", "topic": "flying"})
    first = min(javajson.decode(told.body, ConsumeStats, "208").offset_table.items.items())[1]
    assert (first.broker_offset, first.consumer_offset, first.pull_offset) == (5, 1, 4)
