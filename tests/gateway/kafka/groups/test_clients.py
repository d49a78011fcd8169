"""Groups of real clients: they share a topic, leave, die, commit, and continue after a restart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.gateway.server import RunningServer
from tests.waiting import until, wait_until

TOPIC = "orders"
PARTITIONS = 4
SETTINGS = ("groups.initial_delay_ms=200", f"topics.partitions={PARTITIONS}")
ALL = set(range(PARTITIONS))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path, settings=SETTINGS) as running:
        yield running
        running.stop_cleanly()


def produce(server: RunningServer, count: int) -> None:
    """Records, evenly over all partitions."""
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


class Librdkafka:
    """A consumer of librdkafka that is polled whenever it is asked for anything."""

    def __init__(self, server: RunningServer, **settings: Any) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 300,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        self.consumer.subscribe([TOPIC])
        self.read: list[tuple[int, int]] = []

    def poll(self) -> bool:
        """Read on; says whether there was something."""
        message = self.consumer.poll(0.05)
        if message is None or message.error() is not None:
            return False
        self.read.append((message.partition(), message.offset()))
        return True

    def has_read(self, count: int) -> bool:
        """Read on until nothing comes; return whether it has read that much by now."""
        while self.poll():
            pass
        return len(self.read) >= count

    @property
    def partitions(self) -> set[int]:
        self.poll()
        return {each.partition for each in self.consumer.assignment()}


def stands(*consumers: Librdkafka) -> bool:
    """Whether all partitions are shared out among these and each has some."""
    owned = [each.partitions for each in consumers]
    return all(owned) and sum(map(len, owned)) == PARTITIONS and set.union(*owned) == ALL


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_librdkafka_members_share_a_topic_and_take_over_from_one_that_leaves(
    server: RunningServer, assignor: str
) -> None:
    produce(server, 40)
    settings = {"partition_assignment_strategy": assignor}
    first, second = Librdkafka(server, **settings), Librdkafka(server, **settings)
    wait_until(lambda: stands(first, second), "both have some partitions")
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    [shown] = admin.describe_consumer_groups(["g"]).values()
    assert len(shown.result(60).members) == 2
    second.consumer.close()
    wait_until(lambda: stands(first), "the one that is left has all")
    wait_until(lambda: first.has_read(20), "it reads")
    first.consumer.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_librdkafka_member_continues_after_a_restart_with_what_it_had(
    server: RunningServer, end: str
) -> None:
    produce(server, 40)
    member = Librdkafka(server)
    wait_until(lambda: member.has_read(40), "it has read all")
    member.consumer.commit(asynchronous=False)
    assigned = member.partitions
    getattr(server, end)()
    server.restart()
    produce(server, 40)
    wait_until(lambda: member.has_read(80), "it goes on")
    assert sorted(member.read) == [(p, o) for p in range(PARTITIONS) for o in range(20)]
    assert member.partitions == assigned
    wait_until(lambda: committed(member), "it commits")
    member.consumer.close()
    again = Librdkafka(server)
    produce(server, 4)
    wait_until(lambda: again.has_read(4), "the next one begins behind it")
    assert {offset for _, offset in again.read} == {20}
    again.consumer.close()


def committed(member: Librdkafka) -> bool:
    try:
        member.consumer.commit(asynchronous=False)
    except KafkaException:
        return False
    return True


def test_a_static_librdkafka_member_keeps_its_place_until_its_session_is_over(
    server: RunningServer,
) -> None:
    produce(server, 4)
    stays = Librdkafka(server, group_instance_id="a")
    other = Librdkafka(server, group_instance_id="b")
    wait_until(lambda: stands(stays, other), "both have some partitions")
    owned = other.partitions
    # A static member does not leave when it is closed.
    other.consumer.close()
    back = Librdkafka(server, group_instance_id="b")
    wait_until(lambda: stands(stays, back), "it is back")
    assert back.partitions == owned
    back.consumer.close()
    wait_until(lambda: stands(stays), "its session is over")
    stays.consumer.close()


def test_a_librdkafka_client_looks_after_groups(server: RunningServer) -> None:
    produce(server, 4)
    simple = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "simple"})
    simple.commit(offsets=[TopicPartition(TOPIC, 0, 1, "note")], asynchronous=False)
    [found] = simple.committed([TopicPartition(TOPIC, 0)], 10)
    assert (found.offset, found.metadata) == (1, "note")
    simple.close()
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    groups = admin.list_consumer_groups().result(60).valid
    assert [(each.group_id, each.state.name) for each in groups] == [("simple", "EMPTY")]
    admin.delete_consumer_groups(["simple"])["simple"].result(60)
    assert admin.list_consumer_groups().result(60).valid == []


def shared(members: list[Any]) -> bool:
    owned = [{each.partition for each in member.assignment()} for member in members]
    return all(owned) and sum(map(len, owned)) == PARTITIONS


class Polling:
    """Polls consumers of kafka-python, each in a thread of its own."""

    def __init__(self, consumers: list[Any]) -> None:
        self.stop = threading.Event()
        self.read: list[tuple[int, int]] = []
        self.threads = [threading.Thread(target=self.poll, args=(each,)) for each in consumers]

    def poll(self, consumer: Any) -> None:
        while not self.stop.is_set():
            for records in consumer.poll(timeout_ms=50).values():
                self.read += [(each.partition, each.offset) for each in records]

    def __enter__(self) -> list[tuple[int, int]]:
        for thread in self.threads:
            thread.start()
        return self.read

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(60)


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_kafka_python_members_share_a_topic_and_take_over(server: RunningServer) -> None:
    from kafka import KafkaConsumer

    def consumer() -> Any:
        return KafkaConsumer(
            TOPIC,
            bootstrap_servers=server.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=300,
        )

    produce(server, 40)
    members = [consumer(), consumer()]
    with Polling(members) as read:
        wait_until(lambda: shared(members), "both have some partitions")
        wait_until(lambda: len(set(read)) == 40, "all is read")
    for member in members:
        member.commit()
    members.pop().close(autocommit=False)
    produce(server, 8)
    with Polling(members) as read:
        wait_until(lambda: shared(members), "the one that is left has all")
        wait_until(lambda: len(read) == 8, "it goes on behind what was committed")
    members[0].close(autocommit=False)


async def test_aiokafka_members_share_a_topic_and_take_over(server: RunningServer) -> None:
    await asyncio.to_thread(produce, server, 40)

    def consumer() -> Any:
        return AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=server.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=300,
        )

    first, second = consumer(), consumer()
    await first.start()
    await second.start()
    read: set[tuple[int, int]] = set()

    async def go_on(members: list[Any], is_done: Callable[[], bool], what: str) -> None:
        for _ in range(400):
            for member in members:
                found = await member.getmany(timeout_ms=50)
                read.update((one.partition, one.offset) for part in found.values() for one in part)
            if is_done():
                return
        raise AssertionError(f"waited in vain until {what}")

    both = [first, second]
    await go_on(both, lambda: shared(both), "both have some partitions")
    await go_on(both, lambda: len(read) == 40, "all is read")
    await second.stop()
    await until(lambda: shared([first]), "the one that is left has all")
    await first.commit()
    await first.stop()
