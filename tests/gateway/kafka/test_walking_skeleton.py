"""The whole way: a real client produces, the server is killed, and a real client reads it all."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

TOPIC = "orders"
COUNT = 2_000


def test_what_kafka_python_was_told_is_stored_is_there_after_kill_9(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        producer = KafkaProducer(bootstrap_servers=server.bootstrap, acks="all", linger_ms=5)
        futures = [
            producer.send(TOPIC, key=b"k%d" % n, value=b"v%d" % n, headers=[("n", b"%d" % n)])
            for n in range(COUNT)
        ]
        producer.flush()
        promised = {
            (m.partition, m.offset): n for n, m in enumerate(f.get(timeout=60) for f in futures)
        }
        producer.close()
        server.kill()
        server.start()

        consumer = KafkaConsumer(bootstrap_servers=server.bootstrap, auto_offset_reset="earliest")
        partitions = [TopicPartition(TOPIC, p) for p in consumer.partitions_for_topic(TOPIC)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        found = {}

        def read_on() -> bool:
            for records in consumer.poll(timeout_ms=200).values():
                found.update({(r.partition, r.offset): r for r in records})
            return len(found) >= COUNT

        wait_until(read_on, "every record is read again")
        consumer.close()
    assert found.keys() == promised.keys()
    for place, n in promised.items():
        record = found[place]
        assert (record.key, record.value) == (b"k%d" % n, b"v%d" % n)
        assert record.headers == [("n", b"%d" % n)]
