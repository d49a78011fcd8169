"""Rows of docs/internals/rocketmq-cluster.md against real brokers of RocketMQ 5.5, with a slave."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.chaos.fleet import GatewayProcess, fleet
from tests.gateway.kafka.raw import RawClient
from tests.gateway.rocketmq.cluster import TwoMasters, slave_of_a, two_masters
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
from rockgate.sdk import Consumer as SdkConsumer

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with two_masters() as cluster, slave_of_a(cluster):
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
    for each in gateways:
        if not each.is_running:
            each.start()
            each.await_ready()
    return ",".join(each.address for each in gateways)


def leader_of(kafka: str, gateways: list[GatewayProcess], topic: str) -> GatewayProcess | None:
    """The gateway that leads partition 0."""
    found = AdminClient({"bootstrap.servers": kafka}).list_topics(topic, timeout=SECONDS_MAX)
    broker = found.brokers.get(found.topics[topic].partitions[0].leader)
    address = None if broker is None else f"{broker.host}:{broker.port}"
    return next((each for each in gateways if each.address == address), None)


def append(gateway: GatewayProcess, topic: str, sequence: int, count: int = 1) -> int:
    """The offset of a batch, which is sent until a gateway takes it."""
    offset = -1

    def is_stored() -> bool:
        nonlocal offset
        with RawClient(At(gateway.address)) as raw:  # type: ignore[arg-type]
            send_batch(raw, topic, sequence, count=count)
            answer = answer_of(raw)
        if answer.error_code == ErrorCode.NONE:
            offset = answer.base_offset
            return True
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, answer
        return False

    wait_until(is_stored, f"batch {sequence} is stored", SECONDS_MAX)
    return offset


def test_a_batch_that_another_gateway_stored_is_found(
    kafka: str, gateways: list[GatewayProcess]
) -> None:
    create(kafka, "found", 1)
    first = leader_of(kafka, gateways, "found")
    assert first is not None
    second = next(each for each in gateways if each is not first)
    assert [append(first, "found", at, 2) for at in (0, 2, 4)] == [0, 2, 4]
    first.kill()
    # Five were in flight: three are stored, and the tail says which one is next.
    assert [append(second, "found", at, 2) for at in (2, 4, 6, 8)] == [2, 4, 6, 8]
    assert values_of(kafka, "found", 10) == [b"%d" % at for at in range(10)]
    assert end_of(kafka, "found") == 10


def test_a_stopped_broker_stores_what_a_dead_gateway_left_in_its_socket_once(
    masters: TwoMasters, kafka: str, gateways: list[GatewayProcess]
) -> None:
    create(kafka, "stopped", 1)
    first = leader_of(kafka, gateways, "stopped")
    assert first is not None
    second = next(each for each in gateways if each is not first)
    assert append(first, "stopped", 0) == 0
    pid = masters.peer.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with RawClient(At(first.address)) as raw:  # type: ignore[arg-type]
            send_batch(raw, "stopped", 1)
            with pytest.raises(TimeoutError):
                raw.socket.settimeout(0.5)
                answer_of(raw)
        first.kill()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert append(second, "stopped", 1) == 1
    assert append(second, "stopped", 2) == 2
    assert values_of(kafka, "stopped", 3) == [b"0", b"1", b"2"]
    assert end_of(kafka, "stopped") == 3


def test_a_header_delays_a_record_and_the_others_of_its_batch_are_there_at_once(
    kafka: str,
) -> None:
    create(kafka, "later", 1, message_type="DELAY")
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 200})
    producer.produce("later", b"first", partition=0)
    late = [("TIMER_DELAY_MS", b"3000"), ("h", b"1")]
    producer.produce("later", b"late", partition=0, key=b"k", headers=late)
    producer.produce("later", b"second", partition=0)
    began = time.monotonic()
    assert producer.flush(SECONDS_MAX) == 0
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "later"})
    consumer.assign([TopicPartition("later", 0, 0)])
    found: list[tuple[object, object, list[tuple[str, bytes]]]] = []
    while len(found) < 3 and time.monotonic() - began < SECONDS_MAX:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append((message.value(), message.key(), message.headers() or []))
            if message.value() == b"late":
                assert time.monotonic() - began > 2.5
    consumer.close()
    assert [value for value, _, _ in found] == [b"first", b"second", b"late"]
    _, key, headers = found[2]
    assert key == b"k"
    assert ("h", b"1") in headers
    assert "TIMER_DELAY_MS" not in dict(headers)


def test_delay_headers_are_ordinary_ones_on_topics_of_another_type(kafka: str) -> None:
    create(kafka, "now", 1)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce("now", b"v", partition=0, headers=[("TIMER_DELAY_MS", b"60000")])
    producer.flush(SECONDS_MAX)
    assert values_of(kafka, "now", 1) == [b"v"]


def test_a_delayed_record_needs_a_value_and_a_number(kafka: str) -> None:
    create(kafka, "refused", 1, message_type="DELAY")
    producer = Producer({"bootstrap.servers": kafka})
    errors: list[KafkaError | None] = []
    for value, delay in ((None, b"1000"), (b"v", b"soon")):
        producer.produce(
            "refused",
            value,
            partition=0,
            headers=[("TIMER_DELAY_MS", delay)],
            on_delivery=lambda error, _: errors.append(error),
        )
        producer.flush(SECONDS_MAX)
    codes = [error.code() for error in errors if error is not None]
    assert codes == [KafkaError.INVALID_RECORD, KafkaError.INVALID_RECORD]


def test_tombstones_stay_null_also_for_a_batch_of_one(kafka: str) -> None:
    create(kafka, "tombstones", 1)
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
    for value in (b"v", None, b""):
        producer.produce("tombstones", value, key=b"k", partition=0)
        producer.flush(SECONDS_MAX)
    assert values_of(kafka, "tombstones", 3) == [b"v", None, b""]


def test_a_group_with_rocketmq_members_cannot_be_joined(masters: TwoMasters, kafka: str) -> None:
    create(kafka, "mixed", 2)

    async def consume() -> None:
        async with SdkConsumer(masters.name_server, group="mixed-group", topics=["mixed"]):
            await asyncio.to_thread(
                wait_until, is_refused, "the Kafka member is refused", SECONDS_MAX
            )

    def is_refused() -> bool:
        member = Consumer({"bootstrap.servers": kafka, "group.id": "mixed-group"})
        member.subscribe(["mixed"])
        try:
            for _ in range(5):
                message = member.poll(1.0)
                error = None if message is None else message.error()
                if error is not None and error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
                    return True
        except KafkaException as failed:
            return bool(failed.args[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL)
        finally:
            member.close()
        return False

    asyncio.run(consume())
    # The group is handed over when they have left.
    member = Consumer({"bootstrap.servers": kafka, "group.id": "mixed-group"})
    member.subscribe(["mixed"])

    def is_assigned() -> bool:
        member.poll(0.2)
        return len(member.assignment()) == 2

    wait_until(is_assigned, "the Kafka member has both partitions", SECONDS_MAX)
    member.close()


def test_configs_are_attributes_and_no_others_can_be_set(kafka: str) -> None:
    create(kafka, "typed", 1, message_type="NORMAL")
    admin = AdminClient({"bootstrap.servers": kafka})
    resource = ConfigResource(ConfigResource.Type.TOPIC, "typed")

    def described() -> dict[str, str]:
        [found] = admin.describe_configs([resource]).values()
        return {name: each.value for name, each in found.result(SECONDS_MAX).items()}

    assert described()["message.type"] == "NORMAL"

    def alter(name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, "typed", incremental_configs=[entry])
        [altered] = admin.incremental_alter_configs([wanted]).values()
        altered.result(SECONDS_MAX)

    alter("message.type", "DELAY")
    assert described()["message.type"] == "DELAY"
    # A broker takes MIXED only with enableMixedMessageType.
    for name, value in (("retention.ms", "1000"), ("message.type", "MIXED")):
        with pytest.raises(KafkaException) as raised:
            alter(name, value)
        assert raised.value.args[0].code() == KafkaError.INVALID_CONFIG
    with pytest.raises(KafkaException):
        create(kafka, "kept", 1, retention_ms="1000")


def test_the_log_says_how_brokers_are_tuned(gateways: list[GatewayProcess]) -> None:
    assert "updateBrokerConfig" in gateways[0].log
    assert "maxTransferCountOnMessageInMemory -v 100000" in gateways[0].log


def test_without_its_master_a_broker_is_read_from_its_slave_and_no_partition_moves(
    masters: TwoMasters, kafka: str, gateways: list[GatewayProcess]
) -> None:
    create(kafka, "replicated", 4)
    values = [b"%d" % at for at in range(50)]
    assert not produce(kafka, "replicated", values)
    assert len(values_of(kafka, "replicated", 50)) == 50
    admin = AdminClient({"bootstrap.servers": kafka})

    def partitions() -> int:
        found = admin.list_topics("replicated", timeout=SECONDS_MAX)
        return len(found.topics["replicated"].partitions)

    peer = masters.peer
    peer.broker_daemon.kill()
    try:
        assert values_of(kafka, "replicated", 50) == values
        assert partitions() == 4
        refused = produce(kafka, "replicated", [b"x"], **{"message.timeout.ms": 3000})
        assert refused
    finally:
        peer.restart_broker()
    wait_until(
        lambda: not produce(kafka, "replicated", [b"y"], **{"message.timeout.ms": 5000}),
        "the master is written to again",
    )
    assert values_of(kafka, "replicated", 51) == [*values, b"y"]
    assert partitions() == 4


def test_who_comes_after_a_dead_gateway_coordinates_its_groups_at_once(
    masters: TwoMasters, tmp_path: Path
) -> None:
    # All gateways of this module are there as well: the dead one's slots may be theirs. So the test
    # has its own, over slots that no other gateway serves meanwhile.
    with two_masters() as alone:
        [first] = fleet(alone.name_server, tmp_path, 1)
        try:
            create(first.address, "left", 1)
            consumer = Consumer({"bootstrap.servers": first.address, "group.id": "left"})
            consumer.commit(offsets=[TopicPartition("left", 0, 0)], asynchronous=False)
            consumer.close()
        finally:
            first.kill()
        (tmp_path / "next").mkdir()
        [second] = fleet(alone.name_server, tmp_path / "next", 1)
        try:
            assert second.address != first.address
            began = time.monotonic()
            consumer = Consumer({"bootstrap.servers": second.address, "group.id": "left"})
            consumer.commit(offsets=[TopicPartition("left", 0, 0)], asynchronous=False)
            consumer.close()
            # A lock lasts for 60 s.
            assert time.monotonic() - began < 20
        finally:
            second.end()
