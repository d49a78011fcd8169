"""`/metrics` of a running server, as Prometheus' own library reads it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.kafka.client_metrics.subscribing import subscribe
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.gateway.telemetry.cluster_metrics import CLUSTER_METRICS
from rockgate.gateway.telemetry.metrics import METRICS, REPLICATION_METRICS

TOPIC, GROUP, COUNT = "counted", "behind", 10
CROSSED = "crossed"
Samples = dict[str, dict[tuple[str, ...], float]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(
        tmp_path_factory.mktemp("metrics"),
        settings=["store.flush=sync", "client_metrics.enabled=true"],
        rocketmq=True,
    ) as running:
        with RawClient(running) as raw:
            subscribe(raw, "all", metrics="*", **{"interval.ms": "200"})
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(COUNT):
            producer.produce(TOPIC, b"x" * 100, partition=0, key=str(number))
        producer.produce(CROSSED, b"x", partition=0)
        assert producer.flush(60) == 0
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
        use_rocketmq(running)
        wait_until(lambda: "rockgate_client_metric" in scrape(running), "a client has pushed")
        yield running
        running.stop_cleanly()


def use_rocketmq(server: RunningServer) -> None:
    """Half a message decided and one not, a retry, a dead letter, a mistake, a read of a batch."""
    client, namesrv = Client(server.address("remoting")), Client(server.address("namesrv"))
    client.heartbeat("client", "readers", CROSSED)
    for _ in range(2):
        half = client.publish(CROSSED, properties={"TRAN_MSG": "true", "PGROUP": "p"}, sys_flag=4)
    fields = {
        "producerGroup": "p",
        "tranStateTableOffset": half.fields["queueOffset"],
        "commitLogOffset": 0,
        "commitOrRollback": 12,
    }
    assert client.ask(37, fields).code == 0
    first = messages(client.pull(CROSSED))[0]
    assert client.pull(CROSSED, 10**6).code != 0
    for level in (0, -1):
        back = {"offset": first.position, "group": "readers", "delayLevel": level}
        assert client.ask(36, back).code == 0
    assert client.ask(31023, {"group": "readers", "offset": 0}).code == 0
    assert client.ask(30, {"topic": "nowhere", "queueId": 0}).code != 0
    assert client.ask(29_999).code == 3
    assert namesrv.ask(105, {"topic": "nowhere"}).code != 0
    client.socket.close()
    namesrv.socket.close()


def scrape(server: RunningServer) -> Samples:
    host, port = server.address("http")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def is_flushed(found: Samples) -> bool:
    return found["rockgate_log_flushed_position"] == found["rockgate_log_end_position"]


def test_what_clients_did_is_counted(server: RunningServer) -> None:
    found = scrape(server)
    for api in ("Produce", "Fetch", "Metadata", "ApiVersions", "OffsetCommit"):
        assert found["rockgate_kafka_request_seconds_count"][(api,)] >= 1
        assert found["rockgate_kafka_request_bytes_total"][(api,)] > 0
        assert found["rockgate_kafka_response_bytes_total"][(api,)] > 0
    assert found["rockgate_topic_messages_total"][(TOPIC,)] == COUNT
    assert found["rockgate_topic_bytes"][(TOPIC,)] > COUNT * 100
    assert found["rockgate_topic_fetched_bytes_total"][(TOPIC,)] > COUNT * 100
    assert found["rockgate_group_lag"][(GROUP, TOPIC)] == COUNT - 3
    assert found["rockgate_group_lag_bytes"][(GROUP, TOPIC)] > 0
    assert found["rockgate_kafka_connections_total"][()] >= 2
    assert found["rockgate_fsync_seconds_count"][()] >= 1
    # Data without waiters is flushed in the background.
    wait_until(lambda: is_flushed(scrape(server)), "all is on disk")


def test_what_rocketmq_s_clients_did_is_counted(server: RunningServer) -> None:
    found = scrape(server)
    for request in ("SEND_MESSAGE_V2", "PULL_MESSAGE", "HEART_BEAT", "unknown"):
        labels = ("broker", request)
        assert found["rockgate_remoting_request_seconds_count"][labels] >= 1
        assert found["rockgate_remoting_request_bytes_total"][labels] > 0
        assert found["rockgate_remoting_response_bytes_total"][labels] > 0
    errors = found["rockgate_remoting_errors_total"]
    assert errors["broker", "unknown", "REQUEST_CODE_NOT_SUPPORTED"] == 1
    assert errors["broker", "GET_MAX_OFFSET", "TOPIC_NOT_EXIST"] == 1
    assert errors["namesrv", "GET_ROUTEINFO_BY_TOPIC", "TOPIC_NOT_EXIST"] == 1
    assert not [labels for labels in errors if labels[2] in ("SUCCESS", "PULL_NOT_FOUND")]
    assert found["rockgate_half_messages"][()] == 1
    assert found["rockgate_half_messages_ended_total"][("rolled_back",)] == 1
    assert found["rockgate_retries_total"][()] == 1
    assert found["rockgate_dead_letters_total"][("asked",)] == 1
    assert found["rockgate_dead_letters_resent_total"][()] == 1
    assert found["rockgate_pull_hits_total"][()] == 1
    assert found["rockgate_pull_misses_total"][()] == 1
    assert found["rockgate_pull_longest_seconds"][()] > 0
    assert found["rockgate_put_messages_total"][()] > COUNT
    assert found["rockgate_put_bytes_total"][()] > COUNT * 100
    [(pair, count)] = found["rockgate_group_messages_total"].items()
    assert pair[1] == CROSSED
    assert found["rockgate_get_messages_total"][()] == count >= 1
    assert found["rockgate_group_bytes_total"][pair] > 0
    assert found["rockgate_statistics_labels"][("send_backs",)] == 1
    assert found["rockgate_pop_in_flight"][()] == 0
    assert found["rockgate_batch_cache_bytes"][()] > 0
    assert found["rockgate_batch_cache_misses_total"][()] >= 1
    assert found["rockgate_remoting_connections_total"][("broker",)] == 1


def test_every_metric_of_the_table_is_told_unless_there_is_nothing_to_tell(
    server: RunningServer,
) -> None:
    found = {name.removesuffix("_bucket") for name in scrape(server)}
    # No Kafka request has failed yet, none of RocketMQ's was refused, there are no hooks, and the
    # server is neither replicated nor a standby.
    gateways = {each.name for each in (*CLUSTER_METRICS, *REPLICATION_METRICS)}
    assert set(METRICS) - gateways - found <= {
        "rockgate_kafka_errors_total",
        "rockgate_remoting_hook_failures_total",
        "rockgate_remoting_refused_total",
    }


def test_the_loop_is_watched_and_counters_grow(server: RunningServer) -> None:
    first, second = scrape(server), scrape(server)
    for name in ("process_cpu_seconds_total", "rockgate_event_loop_delay_seconds_count"):
        assert second[name][()] >= first[name][()] > 0
