from pathlib import Path

import pytest
from bench.peers import kafka
from bench.peers.kafka import KafkaPeer
from tests.bench.peers.brought import brought


def test_one_node_is_broker_and_controller_on_loopback(tmp_path: Path) -> None:
    found = kafka.settings(tmp_path, 19092, 19093, {})
    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert found["log.dirs"] == str(tmp_path / "data")
    assert found["transaction.state.log.min.isr"] == "1"


def test_a_setting_of_the_caller_wins(tmp_path: Path) -> None:
    found = kafka.settings(tmp_path, 1, 2, {"node.id": "7", "num.partitions": "4"})
    assert found["node.id"] == "7"
    assert found["num.partitions"] == "4"


def test_properties_are_one_pair_a_line() -> None:
    assert kafka.properties({"a": "1", "b.c": "x=y"}) == "a=1\nb.c=x=y\n"


@pytest.mark.java
@pytest.mark.long
def test_a_real_kafka_starts_answers_and_stops(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    with brought("kafka"), KafkaPeer(tmp_path / "kafka", heap="256m") as peer:
        found = AdminClient({"bootstrap.servers": peer.bootstrap}).list_topics(timeout=60)
        assert {broker.port for broker in found.brokers.values()} == {peer.address[1]}
        pid = peer.pid
        assert pid
    assert peer.daemon.pid is None
    assert (tmp_path / "kafka" / "data" / "meta.properties").exists()
