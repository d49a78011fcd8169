"""Apache RocketMQ's Java client, unmodified, against the server: 5.5.0, and 4.9.7 in the long run.

One JVM for each version runs scenarios by name (src/), which assert the client's results; what
spans both protocols, and restarts, is assembled here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.running import Answering
from bench.peers import RocketMQPeer
from bench.peers.jars import pinned_version
from bench.peers.ports import free_ports
from confluent_kafka import Consumer, KafkaError, Producer
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


class Program(Answering):
    """The Java process."""

    def __init__(self, version: str, folder: Path, *flags: str) -> None:
        java, *rest = java_program(HERE, version, "Program")
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
        # A group's retry topic is new to its consumer, which would otherwise find it after 20 s.
        brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
        super().__init__([java, *quiet, brisk, *flags, *rest], folder / "java.log")

    def run(self, *words: object) -> str:
        """What a scenario says; AssertionError with its trace if it does not hold."""
        _, said = self.ask(" ".join(map(str, words)))
        if said.startswith("FAIL"):
            raise AssertionError(said[5:].replace(" | ", "\n"))
        return said.removeprefix("ok").strip()


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of this module's own; some tests stop it, or kill it."""
    folder = tmp_path_factory.mktemp("rocketmq")
    settings = [
        "group.initial.rebalance.delay.ms=100",
        "remoting.check_interval_ms=1000",
        # Retries begin with the third; the first two are as RocketMQ has them.
        "remoting.delay_levels=1s 5s 1s 1s 1s",
    ]
    with RunningServer(folder, settings=settings, rocketmq=True) as running:
        yield running
        running.stop_cleanly()


def started(version: str, folder: Path, *flags: str) -> Program:
    try:
        return Program(version, folder, *flags)
    except CannotRun as reason:
        leave_out(reason)
        raise


class Scenarios:
    """What each version of the client is asked to do."""

    version = ""
    flags: tuple[str, ...] = ()

    @pytest.fixture(scope="class")
    @classmethod
    def java_client(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
        program = started(cls.version, tmp_path_factory.mktemp("java"), *cls.flags)
        yield program
        program.end()

    @pytest.mark.parametrize(
        ("scenario", "said"),
        [
            ("sync", "40"),
            ("async", "201"),
            ("oneway", "31"),
            ("batch", "21"),
            ("large", None),
            ("refused", None),
            ("query", "3"),
            ("reply", "5"),
            ("tags", "20"),
            ("sql", "m0,m4,m6"),
            ("ordered", "4"),
            ("clustering", None),
            ("broadcasting", "20"),
            ("reset", "24"),
            ("pull", "20"),
            ("lite-subscribe", "30"),
            ("lite-assign", "4"),
            ("transaction", "10"),
            pytest.param("fail-lost", "key-1", marks=pytest.mark.row("RTY-2", "RTY-5", "RTY-6")),
            ("fail-ordered", "012344456789"),
            ("fail-broadcast", "0 retries"),
            pytest.param(
                "levels",
                "1-0,1-1,1-2,1-3,1-4,2-0,2-1,2-2,2-3,2-4",
                marks=pytest.mark.row("S-12", "Y-01"),
            ),
            (
                "times",
                "TIMER_DELIVER_MS0,TIMER_DELAY_MS600,__STARTDELIVERTIME900,"
                "TIMER_DELIVER_MS1200,TIMER_DELAY_SEC2000",
            ),
            ("too-far", "13"),
        ],
    )
    def test_a_scenario_holds(
        self, java_client: Program, rocketmq: RunningServer, scenario: str, said: str | None
    ) -> None:
        topic = f"{scenario}-{self.version}{'b' if self.flags else ''}"
        found = java_client.run(scenario, namesrv(rocketmq), topic)
        assert said is None or found == said

    @pytest.mark.row("RTY-2", "RTY-3", "RTY-4")
    def test_record_seven_of_a_compressed_kafka_batch_comes_back_alone_and_is_a_dead_letter(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        name = f"records-{self.version}{'b' if self.flags else ''}"
        produce_batch(rocketmq, name, [f"v{n}" for n in range(20)])
        group = f"failing-{name}"
        told = java_client.run("fail-one", namesrv(rocketmq), name, group, 20, "v7")
        assert told == f"v7 {name} blue"
        assert consume(rocketmq, f"rmq.dlq.{group}", f"looking-{name}", 1) == ["v7"]
        assert consume(rocketmq, f"rmq.retry.{group}", f"looking-{name}", 2) == ["v7", "v7"]


class TestRocketMQ5(Scenarios):
    version = "v5"
    client = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"

    def test_a_group_continues_where_it_was_after_a_restart(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("produce", namesrv(rocketmq), "lasting", 0, 20)
        first = java_client.run("consume", namesrv(rocketmq), "lasting", "lasting-g", 20)
        java_client.run("produce", namesrv(rocketmq), "lasting", 20, 10)
        assert rocketmq.stop() == 0
        rocketmq.restart()
        second = java_client.run("consume", namesrv(rocketmq), "lasting", "lasting-g", 10)
        assert sorted(first.split(",")) == sorted(f"m{n}" for n in range(20))
        assert sorted(second.split(",")) == sorted(f"m{n}" for n in range(20, 30))

    def test_what_was_acknowledged_is_there_after_a_kill(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("produce", namesrv(rocketmq), "killed", 0, 50)
        rocketmq.kill()
        rocketmq.restart()
        found = java_client.run("consume", namesrv(rocketmq), "killed", "killed-g", 50)
        assert sorted(found.split(",")) == sorted(f"m{n}" for n in range(50))

    def test_another_instance_decides_what_the_first_left_open_over_a_kill(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("abandon", namesrv(rocketmq), "orphans", "orphan-group")
        rocketmq.kill()
        rocketmq.restart()
        found = java_client.run("adopt", namesrv(rocketmq), "orphans", "orphan-group")
        assert found == "C0,UC0,UC1,UC2"
        assert sorted(consume(rocketmq, "orphans", "orphan-kafka", 4)) == found.split(",")

    def test_a_message_that_waits_is_recalled_by_its_handle(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        assert java_client.run("recall", namesrv(rocketmq), "recalled") == "r1"

    def test_what_waits_comes_once_and_never_early_over_a_kill(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("send-to-wait", namesrv(rocketmq), "waiting")
        rocketmq.kill()
        rocketmq.restart()
        wanted = sorted(f"{kind}{number}" for kind in ("level", "time") for number in range(10))
        found = java_client.run("wait-for", namesrv(rocketmq), "waiting", "waiters", 20)
        assert found.split(",") == wanted
        rocketmq.kill()
        rocketmq.restart()
        java_client.run("produce", namesrv(rocketmq), "waiting", 0, 1)
        assert java_client.run("consume", namesrv(rocketmq), "waiting", "others", 21)
        assert sorted(consume(rocketmq, "waiting", "waiting-kafka", 21)) == sorted([*wanted, "m0"])

    def test_both_sides_see_everything_on_one_topic(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("produce", namesrv(rocketmq), "shared", 0, 20)
        produce(rocketmq, "shared", [f"k{n}" for n in range(20)])
        wanted = sorted([f"m{n}" for n in range(20)] + [f"k{n}" for n in range(20)])
        found = java_client.run("consume", namesrv(rocketmq), "shared", "shared-java", 40)
        assert sorted(found.split(",")) == wanted
        assert sorted(consume(rocketmq, "shared", "shared-kafka", 40)) == wanted

    def test_a_group_moves_to_kafka_and_back_without_loss_or_repeat(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        java_client.run("produce", namesrv(rocketmq), "moving", 0, 12)
        first = java_client.run("consume", namesrv(rocketmq), "moving", "movers", 12)
        java_client.run("produce", namesrv(rocketmq), "moving", 12, 12)
        second = consume(rocketmq, "moving", "movers", 12)
        java_client.run("produce", namesrv(rocketmq), "moving", 24, 12)
        third = java_client.run("consume", namesrv(rocketmq), "moving", "movers", 12)
        assert sorted(first.split(",")) == sorted(f"m{n}" for n in range(12))
        assert sorted(second) == sorted(f"m{n}" for n in range(12, 24))
        assert sorted(third.split(",")) == sorted(f"m{n}" for n in range(24, 36))

    def test_a_group_moves_to_kafka_and_back_over_kills_without_loss(
        self, java_client: Program, rocketmq: RunningServer
    ) -> None:
        """None stops cleanly: what was not committed is read again, and nothing is missed."""
        topic, group = "kill-moving", "kill-movers"
        java_client.run("produce", namesrv(rocketmq), topic, 0, 40)
        java_client.run("begin", namesrv(rocketmq), topic, group)
        java_client.run("seen", group, "m0", "m1", "m2", "m3")
        rocketmq.kill()
        first = java_client.run("halt", group).split(",")
        rocketmq.restart()
        java_client.run("produce", namesrv(rocketmq), topic, 40, 40)
        unread = {f"m{n}" for n in range(80)} - set(first)
        with Reading(rocketmq, topic, group) as kafka:
            second = kafka.read(20)
            kafka.commit()
            # Read, but never said so.
            kafka.read(10)
            rocketmq.kill()
        rocketmq.restart()
        java_client.run("produce", namesrv(rocketmq), topic, 80, 40)
        java_client.run("begin", namesrv(rocketmq), topic, group)
        # All that neither has had counts as lost unless it comes now.
        left = (unread | {f"m{n}" for n in range(80, 120)}) - set(second)
        java_client.run("seen", group, *sorted(left))
        java_client.run("halt", group)


@pytest.mark.long
class TestRocketMQ5Binary(Scenarios):
    version = "v5"
    flags = ("-Drocketmq.serialize.type=ROCKETMQ",)
    client = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')} with binary headers"


@pytest.mark.long
class TestRocketMQ4(Scenarios):
    version = "v4"
    client = f"rocketmq-java {pinned_version(HERE / 'v4' / 'pom.xml')}"


@pytest.mark.long
def test_a_real_broker_registers_with_our_name_server(tmp_path: Path) -> None:
    """Apache RocketMQ's own broker, pointed at us beside its own name server."""
    [port] = free_ports(1)
    settings = ["namesrv.accept_brokers=true"]
    with contextlib.ExitStack() as running:
        rocketmq = RunningServer(tmp_path, settings=settings, rocketmq=True)
        running.enter_context(rocketmq)
        both = f"127.0.0.1:{port};{namesrv(rocketmq)}"
        peer = RocketMQPeer(namesrv_port=port, settings={"namesrvAddr": both})
        running.enter_context(peer)
        asker = Client(rocketmq.address("namesrv"))
        wait_until(lambda: b"broker-a" in bytes(asker.ask(106).body), "the broker is known")
        found = json.loads(bytes(asker.ask(106).body))["brokerAddrTable"]["broker-a"]
        assert found["brokerAddrs"] == {"0": "{}:{}".format(*peer.broker)}
        route = json.loads(bytes(asker.ask(105, {"topic": "SELF_TEST_TOPIC"}).body))
        assert {each["brokerName"] for each in route["queueDatas"]} == {"broker-a", "rockgate"}
        asker.socket.close()


@pytest.mark.long
def test_failing_ends_on_a_real_broker_as_it_does_here(
    rocketmq: RunningServer, tmp_path: Path
) -> None:
    """The scenarios of retrying, on Apache RocketMQ's own broker with the same levels."""
    program = started("v5", tmp_path)
    with RocketMQPeer(settings={"messageDelayLevel": "1s 1s 1s 1s 1s"}) as peer:
        for address in ("{}:{}".format(*peer.namesrv), namesrv(rocketmq)):
            program.run("produce", address, "same-one", 0, 20)
            told = program.run("fail-one", address, "same-one", "same-group", 20, "m7")
            assert told == "key-7 same-one red"
            assert program.run("fail-lost", address, "same-lost") == "key-1"
            assert program.run("fail-ordered", address, "same-ordered") == "012344456789"
            assert program.run("fail-broadcast", address, "same-broadcast") == "0 retries"
    program.end()


def namesrv(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


def produce_batch(server: RunningServer, topic: str, values: list[str]) -> None:
    """One compressed batch, of records with a key and a header."""
    config = {"bootstrap.servers": server.bootstrap, "compression.type": "zstd", "linger.ms": 300}
    producer = Producer(config)
    for value in values:
        key, headers = value.encode(), [("color", b"blue")]
        producer.produce(topic, value.encode(), key, 0, headers=headers)
    assert producer.flush(60) == 0


def produce(server: RunningServer, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for value in values:
        producer.produce(topic, value.encode(), key=value.encode())
    assert producer.flush(60) == 0


def consume(server: RunningServer, topic: str, group: str, count: int) -> list[str]:
    """Read with a Kafka consumer of a group, commit, and leave."""
    with Reading(server, topic, group) as reading:
        found = reading.read(count)
        reading.commit()
    return found


class Reading:
    """A Kafka consumer in a group, until the end of the block."""

    def __init__(self, server: RunningServer, topic: str, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
            }
        )
        self._consumer.subscribe([topic])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._consumer.close()

    def read(self, count: int) -> list[str]:
        found: list[str] = []
        for _ in range(600):
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                continue
            value = message.value()
            found.append(value.decode() if value is not None else "")
            if len(found) == count:
                break
        return found

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)
