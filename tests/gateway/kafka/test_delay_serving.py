"""Delayed records of a real server process that is killed while they wait and while they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import wait_until

COUNT = 600


def create(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"message.type": "DELAY"})])
    admin.close()


def at_least(count: int) -> Callable[[Counter[bytes]], bool]:
    return lambda found: len(found) >= count


def read(bootstrap: str, topic: str, enough: Callable[[Counter[bytes]], bool]) -> Counter[bytes]:
    """Read from the beginning until it is enough."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found: Counter[bytes] = Counter()

    def read_on() -> bool:
        for records in consumer.poll(timeout_ms=200).values():
            found.update(record.value for record in records)
        return enough(found)

    try:
        wait_until(read_on, "enough is read", 60)
    finally:
        consumer.close()
    return found


@pytest.mark.row("Y-02")
def test_a_server_that_is_killed_while_records_come_delivers_each_once(tmp_path: Path) -> None:
    random = seeded()
    with RunningServer(tmp_path) as server:
        create(server.bootstrap, "later")
        producer = KafkaProducer(bootstrap_servers=server.bootstrap, linger_ms=20)
        sent = [
            producer.send(
                "later",
                b"%d" % number,
                headers=[("TIMER_DELAY_MS", b"%d" % random.randrange(0, 3_000))],
                partition=0,
            )
            for number in range(COUNT)
        ]
        assert sorted(each.get(60).offset for each in sent) == list(range(COUNT))
        producer.close()
        for share in (0, COUNT // 4, COUNT // 2):
            read(server.bootstrap, "later", at_least(share))
            server.kill()
            server.restart()
        found = read(server.bootstrap, "later", at_least(COUNT))
        assert set(found) == {b"%d" % number for number in range(COUNT)}
        assert set(found.values()) == {1}
        # Nothing more comes: what follows everything that waited is the next that is read.
        last = KafkaProducer(bootstrap_servers=server.bootstrap)
        last.send("later", b"last", partition=0).get(60)
        last.close()
        found = read(server.bootstrap, "later", lambda got: b"last" in got)
        assert set(found.values()) == {1}
        assert "Traceback" not in server.log
