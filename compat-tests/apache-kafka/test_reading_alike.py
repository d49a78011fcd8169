"""The same questions about reading, asked of Apache Kafka and of the server: the answers are equal.

What is known to differ is in FINDINGS.md and is not asked here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from behaviours.features import BESIDE
from bench.peers import KafkaPeer
from bench.peers.jars import version
from beside.asking import OWN, Broker, Part
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.records.batch import Compression

CLIENT = f"apache-kafka {version('kafka')}"
pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.feature("Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords", BESIDE),
]

Ask = Callable[[Broker], Any]
_names = (f"beside-{number}" for number in count())


class Both:
    """Two brokers with the same records: partition 0 has ten in batches of two, partition 1 has
    three large ones, and partition 2 has none."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.brokers = brokers
        self.topic = next(_names)
        for broker in brokers:
            broker.create(self.topic)
        for number in range(5):
            self.do(lambda b, n=number: b.produce(0, [1000 + n * 100, 1050 + n * 100]))
        for number in range(3):
            self.do(lambda b, n=number: b.produce(1, [5000 + n], value=b"x" * 1000))

    def do(self, ask: Ask) -> None:
        for broker in self.brokers:
            ask(broker)

    def same(self, ask: Ask) -> Any:
        """Ask both; the answer, which is the same."""
        kafka, server = (ask(broker) for broker in self.brokers)
        assert server == kafka
        return server


@pytest.fixture(scope="module")
def brokers(server: RunningServer) -> Iterator[list[Broker]]:
    with KafkaPeer(settings={"num.partitions": "3"}) as kafka:
        both = [Broker("kafka", kafka.address), Broker("rockgate", server.address("kafka"))]
        yield both
        for broker in both:
            broker.close()


@pytest.fixture(scope="module")
def _filled(brokers: list[Broker]) -> Both:
    return Both(brokers)


@pytest.fixture
def filled(_filled: Both) -> Both:
    """A topic that all tests read and none changes."""
    _filled.do(lambda b: setattr(b, "topic", _filled.topic))
    return _filled


@pytest.fixture
def both(brokers: list[Broker]) -> Both:
    """A topic of the test's own."""
    return Both(brokers)


@pytest.mark.parametrize("version", [4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18])
def test_a_plain_fetch(filled: Both, version: int) -> None:
    filled.same(lambda b: b.fetch(Part(0, 2), Part(1, 0), Part(2, 0), version=version)[0])


@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 9, 10, 11, 1 << 50])
@pytest.mark.parametrize("wait_ms", [0, 500])
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_offsets_in_and_out_of_range(
    filled: Both, offset: int, wait_ms: int, isolation_level: int
) -> None:
    filled.same(
        lambda b: b.fetch(Part(0, offset), wait_ms=wait_ms, isolation_level=isolation_level)[0]
    )


@pytest.mark.parametrize(
    "parts",
    [
        (Part(9),),
        (Part(-1),),
        (Part(topic="nothing"),),
        (Part(topic="nothing"), Part(0, 10)),
        (Part(9), Part(0, 10)),
        (Part(0, 99), Part(1, 3)),
        (),
    ],
)
@pytest.mark.parametrize("version", [11, 12, 13])
def test_partitions_that_are_not_there(filled: Both, parts: tuple[Part, ...], version: int) -> None:
    filled.same(lambda b: b.fetch(*parts, version=version, wait_ms=500)[0])


@pytest.mark.parametrize("epoch", [-1, OWN, OWN + 1, OWN + 2])
def test_leader_epochs(filled: Both, epoch: int) -> None:
    filled.same(lambda b: b.fetch(Part(0, 8, epoch=epoch))[0])
    for time_ms in (-1, -2, 5):
        filled.same(lambda b, at=time_ms: b.list(at, epoch=epoch))
    filled.same(lambda b: b.epoch_end(OWN, current=epoch))


@pytest.mark.parametrize("last_epoch", [-1, OWN, OWN + 1])
@pytest.mark.parametrize("offset", [8, 10, 11, 12])
def test_diverging_epochs(filled: Both, last_epoch: int, offset: int) -> None:
    filled.same(lambda b: b.fetch(Part(0, offset, last_epoch=last_epoch))[0])


@pytest.mark.parametrize("max_bytes", [0, 1, 50, 100, 150, 250, 1000])
def test_max_bytes(filled: Both, max_bytes: int) -> None:
    filled.same(lambda b: b.fetch(Part(0), Part(1), max_bytes=max_bytes, wait_ms=500)[0])
    filled.same(lambda b: b.fetch(Part(1), Part(0), max_bytes=max_bytes, wait_ms=500)[0])


@pytest.mark.parametrize("size_max", [0, 1, 100, 150, 1100])
def test_partition_max_bytes(filled: Both, size_max: int) -> None:
    parts = (Part(2, size_max=size_max), Part(1, size_max=size_max), Part(0, size_max=size_max))
    filled.same(lambda b: b.fetch(*parts, wait_ms=500)[0])


@pytest.mark.parametrize(
    ("min_bytes", "max_bytes"), [(0, 1000), (1, 1000), (100_000, 200_000), (100_000, 200)]
)
@pytest.mark.parametrize("offset", [0, 8, 10])
def test_min_bytes(filled: Both, min_bytes: int, max_bytes: int, offset: int) -> None:
    filled.same(
        lambda b: b.fetch(Part(0, offset), min_bytes=min_bytes, max_bytes=max_bytes, wait_ms=500)[0]
    )


def test_a_session_from_its_first_request_to_its_last(both: Both) -> None:
    def life(broker: Broker) -> list[Any]:
        told = []
        answer, session = broker.fetch(Part(0, 10), Part(1, 3), Part(2, 0), session=(0, 0))
        told.append(answer)

        def go_on(epoch: int, *parts: Part, **options: Any) -> None:
            answer, again = broker.fetch(*parts, session=(session, epoch), **options)
            told.append((epoch, answer, again == session))

        for epoch in (1, 1, 3, 2):
            go_on(epoch)
        broker.produce(2, [1])
        go_on(3)
        go_on(4)
        go_on(5, Part(2, 1))
        go_on(6)
        go_on(7, Part(2, 99), wait_ms=500)
        go_on(8, wait_ms=500)
        go_on(9, Part(2, 1))
        go_on(10)
        go_on(11, Part(topic="nothing"), wait_ms=500)
        go_on(12, wait_ms=500)
        go_on(13, Part(2, 0), forget=[0])
        go_on(14, Part(1, 0))
        broker.delete_records(1, index=2)
        go_on(15, Part(2, 1))
        go_on(16)
        return told

    both.same(life)


@pytest.mark.parametrize(
    "session", [(12345, 0), (12345, -1), (12345, 1), (0, 1), (0, -2), (12345, -2)]
)
def test_sessions_that_are_not_there(filled: Both, session: tuple[int, int]) -> None:
    filled.same(lambda b: b.fetch(Part(0, 10), session=session)[0])


def test_the_ends_of_sessions(filled: Both) -> None:
    def ends(broker: Broker) -> list[Any]:
        _, first = broker.fetch(Part(0, 10), session=(0, 0))
        _, second = broker.fetch(Part(0, 10), session=(0, 0))
        _, third = broker.fetch(Part(0, 10), session=(0, 0))
        return [
            broker.fetch(version=13, session=(first, 1))[0],
            broker.fetch(Part(0, 10), session=(first, -1))[0],
            broker.fetch(session=(first, 1))[0],
            broker.fetch(session=(second, 1), forget=[0], wait_ms=500)[0],
            broker.fetch(session=(second, 2))[0],
            broker.fetch(Part(1, 3), session=(third, 0))[0],
            broker.fetch(session=(third, 1))[0],
        ]

    filled.same(ends)


def test_a_topic_that_goes_and_comes_again(both: Both) -> None:
    def life(broker: Broker) -> list[Any]:
        told = []
        name, old = broker.topic, dict(broker.ids)
        _, by_id = broker.fetch(Part(0, 10), version=13, session=(0, 0))
        _, by_name = broker.fetch(Part(0, 10), version=12, session=(0, 0))
        broker.delete(name)
        told.append(broker.fetch(version=13, session=(by_id, 1))[0])
        told.append(broker.fetch(version=12, session=(by_name, 1))[0])
        told.append(broker.fetch(Part(0, 10), version=13, ids=old)[0])
        broker.create(name)
        told.append(broker.fetch(version=13, session=(by_id, 2), wait_ms=500)[0])
        told.append(broker.fetch(version=12, session=(by_name, 2), wait_ms=500)[0])
        told.append(broker.fetch(Part(0, 10), version=13, ids=old)[0])
        return told

    both.same(life)


@pytest.mark.parametrize("version", [12, 13])
def test_a_wait_for_a_topic_that_goes(both: Both, version: int) -> None:
    def wait(broker: Broker, other: Broker) -> Any:
        other.topic, other.ids = broker.topic, broker.ids
        deleting = threading.Timer(0.5, other.delete, (broker.topic,))
        deleting.start()
        answer = broker.fetch(Part(0, 10), version=version, wait_ms=20_000)[0]
        deleting.join()
        assert broker.seconds < 15, f"{broker.name} waited to the end"
        return answer

    others = [Broker(each.name, each.address) for each in both.brokers]
    try:
        kafka, server = map(wait, both.brokers, others)
    finally:
        for other in others:
            other.close()
    assert server == kafka


@pytest.mark.parametrize("version", range(1, 12))
def test_times_and_places(filled: Both, version: int) -> None:
    for time_ms in (-1, -2, -3, -4, -5, -6, -7, 0, 1000, 1001, 1050, 1051, 1450, 1451):
        filled.same(lambda b, at=time_ms: b.list(at, 0, 1, 2, version=version))
        filled.same(lambda b, at=time_ms: b.list(at, 0, version=version, isolation_level=1))


@pytest.mark.parametrize("codec", Compression)
def test_times_in_compressed_batches_and_out_of_order(both: Both, codec: Compression) -> None:
    for times in ([50, 10, 40], [20, 90, 30], [30, 40, 60], [90, 5, 7]):
        both.do(lambda b, t=times: b.produce(2, t, value=b"x" * 100, codec=codec))
    for time_ms in (0, 10, 20, 50, 51, 60, 90, 91, -3):
        both.same(lambda b, at=time_ms: b.list(at, 2))


def test_partitions_that_offsets_are_asked_of_in_vain(filled: Both) -> None:
    filled.same(lambda b: b.list(-1, 9, -1, 0))
    filled.same(lambda b: b.list(-1, topic="nothing"))
    filled.same(lambda b: b.list(-9, topic="nothing"))
    filled.same(lambda b: b.list(-1, 0, 1, 0))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_ends_of_epochs(filled: Both, version: int) -> None:
    for epoch in (-1, OWN, OWN + 1, OWN + 2):
        filled.same(lambda b, e=epoch: b.epoch_end(e, version=version))
        filled.same(lambda b, e=epoch: b.epoch_end(e, version=version, index=2))
    filled.same(lambda b: b.epoch_end(OWN, index=9, version=version))
    filled.same(lambda b: b.epoch_end(OWN, topic="nothing", version=version))


def test_deleting_records(both: Both) -> None:
    for offset in (-2, 3, 2, 0, 11, 5, 8):
        both.same(lambda b, o=offset: b.delete_records(o))
        for time_ms in (-2, -1, 0, 1250):
            both.same(lambda b, at=time_ms: b.list(at))
        for asked in (0, 3, 5, 8):
            both.same(lambda b, o=asked: b.fetch(Part(0, o))[0])
    both.same(lambda b: b.delete_records(-1))
    both.same(lambda b: b.list(-2, 0, 1, 2))
    both.same(lambda b: b.delete_records(0, index=9))
    both.same(lambda b: b.delete_records(0, topic="nothing"))
