"""`/metrics` of a running server, as Prometheus' own library reads it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.server import RunningServer

from rockgate.gateway.telemetry.metrics import METRICS

TOPIC, GROUP, COUNT = "counted", "behind", 10
Samples = dict[str, dict[tuple[str, ...], float]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(
        tmp_path_factory.mktemp("metrics"), settings=["store.flush=sync"]
    ) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(COUNT):
            producer.produce(TOPIC, b"x" * 100, partition=0, key=str(number))
        assert producer.flush(30) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": running.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert consumer.consume(1, 30)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
        consumer.close()
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log


def scrape(server: RunningServer) -> Samples:
    host, port = server.address("http")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_what_clients_did_is_counted(server: RunningServer) -> None:
    found = scrape(server)
    for api in ("Produce", "Fetch", "Metadata", "ApiVersions", "OffsetCommit"):
        assert found["rockgate_kafka_request_seconds_count"][(api,)] >= 1
        assert found["rockgate_kafka_request_bytes_total"][(api,)] > 0
        assert found["rockgate_kafka_answer_bytes_total"][(api,)] > 0
    assert found["rockgate_topic_messages_total"][(TOPIC,)] == COUNT
    assert found["rockgate_topic_bytes"][(TOPIC,)] > COUNT * 100
    assert found["rockgate_topic_fetched_bytes_total"][(TOPIC,)] > COUNT * 100
    assert found["rockgate_group_lag"][(GROUP, TOPIC)] == COUNT - 3
    assert found["rockgate_kafka_connections_total"][()] >= 2
    assert found["rockgate_fsync_seconds_count"][()] >= 1
    assert found["rockgate_log_flushed_position"] == found["rockgate_log_end_position"]


def test_every_metric_of_the_table_is_told_unless_there_is_nothing_to_tell(
    server: RunningServer,
) -> None:
    found = {name.removesuffix("_bucket") for name in scrape(server)}
    # Nobody has made a mistake yet.
    assert set(METRICS) - found <= {"rockgate_kafka_errors_total"}


def test_the_loop_is_watched_and_counters_grow(server: RunningServer) -> None:
    first, second = scrape(server), scrape(server)
    for name in ("process_cpu_seconds_total", "rockgate_loop_lateness_seconds_count"):
        assert second[name][()] >= first[name][()] > 0
