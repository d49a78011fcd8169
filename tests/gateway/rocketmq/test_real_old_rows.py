"""The rows that differ with RocketMQ 4.9, against real brokers of 4.9.7."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peers.rocketmq import OLD
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.chaos.fleet import GatewayProcess, fleet
from tests.gateway.kafka.raw import RawClient
from tests.gateway.rocketmq.cluster import TwoMasters, two_masters
from tests.gateway.rocketmq.kafka_side import (
    SECONDS_MAX,
    At,
    answer_of,
    create,
    end_of,
    produce,
    send_batch,
    values_of,
)
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with two_masters(OLD) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateways(
    masters: TwoMasters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[GatewayProcess]]:
    folder: Path = tmp_path_factory.mktemp("gateways")
    some = fleet(masters.name_server, folder, 2)
    yield some
    for each in some:
        each.end()


@pytest.fixture
def kafka(gateways: list[GatewayProcess]) -> str:
    return ",".join(each.address for each in gateways)


def test_records_tombstones_and_empty_values_are_read_back(kafka: str) -> None:
    create(kafka, "plain", 1)
    values = [b"%d" % at for at in range(300)]
    assert not produce(kafka, "plain", values)
    producer = Producer({"bootstrap.servers": kafka})
    for value in (None, b""):
        producer.produce("plain", value, key=b"k", partition=0)
        producer.flush(SECONDS_MAX)
    assert values_of(kafka, "plain", 302) == [*values, None, b""]


def test_a_group_that_has_never_committed_begins_where_its_reset_says(kafka: str) -> None:
    # A broker of 4.9 says 0 for it, which would be the beginning.
    create(kafka, "fresh", 1)
    assert not produce(kafka, "fresh", [b"before"])
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": "fresh-group", "auto.offset.reset": "latest"}
    )
    place = TopicPartition("fresh", 0)
    assert consumer.committed([place], timeout=SECONDS_MAX)[0].offset < 0
    consumer.commit(offsets=[TopicPartition("fresh", 0, 0)], asynchronous=False)
    assert consumer.committed([place], timeout=SECONDS_MAX)[0].offset == 0
    consumer.commit(offsets=[TopicPartition("fresh", 0, 1)], asynchronous=False)
    assert consumer.committed([place], timeout=SECONDS_MAX)[0].offset == 1
    consumer.close()


def test_only_levels_delay_a_record(kafka: str) -> None:
    create(kafka, "levels", 1)
    producer = Producer({"bootstrap.servers": kafka})
    errors: list[KafkaError | None] = []
    began = time.monotonic()
    for headers in ([("TIMER_DELAY_MS", b"1000")], [("DELAY", b"2")]):
        producer.produce(
            "levels",
            b"v",
            partition=0,
            headers=headers,
            on_delivery=lambda error, _: errors.append(error),
        )
        producer.flush(SECONDS_MAX)
    assert errors[0] is not None
    assert errors[0].code() == KafkaError.INVALID_RECORD
    assert errors[1] is None
    assert values_of(kafka, "levels", 1) == [b"v"]
    assert time.monotonic() - began > 4.5


def test_a_repeat_is_found_by_the_index_of_keys(kafka: str, gateways: list[GatewayProcess]) -> None:
    create(kafka, "again", 1)

    def stored(sequence: int) -> int:
        offset = -1

        def is_stored() -> bool:
            nonlocal offset
            for each in gateways:
                if not each.is_running:
                    continue
                with RawClient(At(each.address)) as raw:  # type: ignore[arg-type]
                    send_batch(raw, "again", sequence)
                    answer = answer_of(raw)
                if answer.error_code == ErrorCode.NONE:
                    offset = answer.base_offset
                    return True
            return False

        wait_until(is_stored, f"batch {sequence} is stored", SECONDS_MAX)
        return offset

    assert [stored(at) for at in range(3)] == [0, 1, 2]
    # Leadership moves for sure: one of them dies, and then the other is alone.
    gateways[0].kill()
    assert [stored(at) for at in (1, 2, 3)] == [1, 2, 3]
    gateways[0].start()
    gateways[0].await_ready()
    gateways[1].kill()
    assert [stored(at) for at in (2, 3, 4)] == [2, 3, 4]
    gateways[1].start()
    gateways[1].await_ready()
    assert end_of(kafka, "again") == 5
