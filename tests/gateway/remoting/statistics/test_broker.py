"""What the broker counts: by whom, under which label, and over which time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.remoting.world import RemotingWorld

from rockgate.gateway.remoting.messages.puller import Pulled
from rockgate.gateway.remoting.statistics import broker
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.remoting.statistics.fall_behind import FallBehind
from rockgate.gateway.remoting.statistics.series import Span, Window
from rockgate.gateway.remoting.statistics.sets import BEHIND_SETS, GROUP_SETS, StatisticSets
from rockgate.store.api.progress import Commit
from rockgate.store.state.topicchanges import NewTopic

SECOND = 1_000


class Reads:
    hit_count = miss_count = 0


class CountingWorld(RemotingWorld):
    """The topic `orders` of two queues, and the statistics of its broker."""

    labels_max = 100

    def open(self) -> None:
        super().open()
        store = self.store
        self.statistics = BrokerStatistics(
            topics=store.topics,
            queues=store.queues,
            log=store.log,
            puts=store.appender,
            reads=Reads(),
            clock=self.clock,
            delivered=lambda: 0,
            cluster_name="us",
            labels_max=self.labels_max,
        )
        self.sets = StatisticSets(
            statistics=self.statistics,
            behind=FallBehind(store.progress, store.log, self.clock),
            topics=store.topics,
            queues=store.queues,
        )

    def put(self, count: int = 1, queue: int = 0, topic: str = "orders") -> None:
        for _ in range(count):
            self.message(topic, queue, body=b"x" * 100)

    def pass_time(self, seconds: int) -> None:
        """Let seconds pass, with the upkeep of each."""
        for _ in range(seconds):
            self.clock.advance(SECOND)
            while self.statistics.step():
                pass

    def window(self, name: str, label: str, span: Span = Span.MINUTE) -> Window | None:
        found = self.sets.find(name, label)
        if found is None:
            return None
        return found.series.window(span, found.field, self.clock.monotonic_ms())

    def total(self, name: str, label: str, span: Span = Span.MINUTE) -> int | None:
        window = self.window(name, label, span)
        return None if window is None else window.total


def pulled(count: int, size: int = 0, next_offset: int = 0) -> Pulled:
    return Pulled(0, b"", next_offset, 0, 0, [], size, count)


@pytest.mark.row("OBS-6")
def test_puts_are_reported_by_topic_and_queue_for_minute_hour_and_day() -> None:
    world = CountingWorld()
    assert world.total("TOPIC_PUT_NUMS", "orders") is None
    world.put(3)
    world.put(2, queue=1)
    for span in Span:
        assert world.total("TOPIC_PUT_NUMS", "orders", span) == 5
    assert world.total("QUEUE_PUT_NUMS", "orders@1") == 2
    size = world.total("TOPIC_PUT_SIZE", "orders")
    assert size is not None and size > 500
    world.pass_time(120)
    assert world.total("TOPIC_PUT_NUMS", "orders") == 0
    assert world.total("TOPIC_PUT_NUMS", "orders", Span.HOUR) == 5


def test_a_batch_is_one_put_of_many_messages() -> None:
    world = CountingWorld()
    world.store.appender.batch(world.queue(), b"x" * 100, count=50, record_ms=1)
    window = world.window("TOPIC_PUT_NUMS", "orders")
    assert window is not None and (window.total, window.times, window.average) == (50, 1, 50.0)


def test_what_was_put_before_the_start_is_not_counted() -> None:
    world = CountingWorld()
    world.put(5)
    world.store.close()
    world.open()
    world.pass_time(30)
    assert world.statistics.put_count() == 0
    assert world.total("TOPIC_PUT_NUMS", "orders", Span.DAY) is None
    world.put()
    assert world.total("TOPIC_PUT_NUMS", "orders", Span.DAY) == 1


def test_gets_are_reported_by_topic_and_group_with_their_size_and_time() -> None:
    world = CountingWorld()
    queue = world.queue("orders", 1)
    world.statistics.got(queue, "readers", pulled(3, 300, 3), 0.0004)
    world.statistics.got(queue, "readers", pulled(2, 200, 5), 0.0125)
    assert world.total("GROUP_GET_NUMS", "orders@readers") == 5
    assert world.total("GROUP_GET_SIZE", "orders@readers") == 500
    assert world.total("GROUP_GET_LATENCY", "orders@readers") == 12
    assert world.total("BROKER_GET_NUMS", "us") == 5
    assert world.statistics.pulled_to(queue.topic_id, "readers", 1) == 5
    assert world.total("GROUP_GET_NUMS", "orders@others") is None


def test_acknowledgements_checkpoints_and_what_is_sent_back_are_reported() -> None:
    world = CountingWorld()
    topic = world.store.topics.get("orders").id
    world.statistics.popped(topic, "g", count=9, size=90, checkpoints=2, seconds=0.0)
    world.statistics.acknowledged(topic, "g", 4)
    world.statistics.sent_back(topic, "g", is_dead=False)
    world.statistics.sent_back(topic, "g", is_dead=True)
    totals = {name: world.total(name, "orders@g") for name in GROUP_SETS}
    assert totals == {
        "GROUP_GET_NUMS": 9,
        "GROUP_GET_SIZE": 90,
        "GROUP_GET_LATENCY": 0,
        "GROUP_ACK_NUMS": 4,
        "GROUP_CK_NUMS": 2,
        "SNDBCK_PUT_NUMS": 2,
        "SNDBCK2DLQ_TIMES": 1,
        "DLQ_PUT_NUMS": 1,
    }
    assert world.total("SNDBCK2DLQ_TIMES", "null@orders@g@SEND_BACK_TO_DLQ") == 1
    assert (world.total("BROKER_ACK_NUMS", "us"), world.total("BROKER_CK_NUMS", "us")) == (4, 2)


def test_system_topics_are_distinguished() -> None:
    world = CountingWorld()
    world.store.topics.create(NewTopic(name="rmq_sys_own", queue_count=1, is_internal=True))
    world.put(4, topic="rmq_sys_own")
    world.put(1)
    world.statistics.got(world.queue("rmq_sys_own", 0), "g", pulled(4), 0.0)
    assert world.total("BROKER_PUT_NUMS", "us") == 5
    assert world.total("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "us") == 1
    assert world.total("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", "us") == 0


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("NO_SUCH_SET", "orders"),
        ("TOPIC_PUT_NUMS", "no-such-topic"),
        ("QUEUE_PUT_NUMS", "orders@7"),
        ("QUEUE_PUT_NUMS", "orders@" + "9" * 5_000),
        ("QUEUE_PUT_NUMS", "orders@²"),
        ("TOPIC_PUT_LATENCY", "orders@0"),
        ("GROUP_GET_NUMS", "orders"),
        ("GROUP_GET_NUMS", "@" * 1_000),
        ("BROKER_PUT_NUMS", "another-cluster"),
    ],
)
def test_what_is_not_counted_is_not_found(name: str, label: str) -> None:
    world = CountingWorld()
    world.put()
    assert world.total(name, label) is None


def test_the_time_of_slow_puts_is_reported_by_queue() -> None:
    world = CountingWorld()
    world.put(4, queue=1)
    world.statistics.put_took(world.queue("orders", 1), 0.0204)
    window = world.window("TOPIC_PUT_LATENCY", "1@orders")
    assert window is not None and (window.total, window.average) == (20, 5.0)
    assert world.statistics.longest_put_seconds == 0.0204


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_is_a_day_off_gives_no_negative_and_no_endless_rate(days: int) -> None:
    world = CountingWorld()
    for step in range(30):
        world.put(2)
        if step == 10:
            world.clock.step(days * 86_400_000)
        world.pass_time(10)
        for span in Span:
            window = world.window("TOPIC_PUT_NUMS", "orders", span)
            assert window is not None and 0 < window.total <= 60
            assert 0 < window.per_second <= 60 / 10
    assert float(world.statistics.rates.text(0).split()[0]) == pytest.approx(0.2, rel=0.2)


def test_a_topic_or_group_that_is_deleted_is_forgotten() -> None:
    world = CountingWorld()
    world.put(2)
    world.pass_time(20)
    topic = world.store.topics.get("orders")
    world.statistics.got(world.queue("orders", 0), "g", pulled(1), 0.0)
    world.statistics.forget_group("g")
    assert world.total("GROUP_GET_NUMS", "orders@g") is None
    world.statistics.got(world.queue("orders", 0), "g", pulled(1), 0.0)
    world.store.topics.delete([topic])
    assert not world.statistics.topic_puts.rows and not world.statistics.queue_puts.rows
    assert not world.statistics.gets.rows
    assert world.statistics.topic_series(topic) is None
    assert world.total("BROKER_PUT_NUMS", "us") == 2


@pytest.mark.row("OBS-7")
@pytest.mark.row("R-10")
def test_bytes_and_time_behind_are_known_per_group_topic_and_queue() -> None:
    world = CountingWorld()
    topic = world.store.topics.get("orders")
    first = world.message("orders", 0)
    world.clock.advance(5 * SECOND)
    second = world.message("orders", 0)
    world.message("orders", 1)
    world.store.progress.commit("g", [Commit(topic.id, 0, 0)])

    def behind(queue: int = 0) -> list[int | None]:
        return [world.sets.find_behind(name, f"{queue}@orders@g") for name in BEHIND_SETS]

    assert behind() == [world.store.log.end - first.position, 5 * SECOND]
    world.store.progress.commit("g", [Commit(topic.id, 0, 1)])
    assert behind() == [world.store.log.end - second.position, 0]
    world.store.progress.commit("g", [Commit(topic.id, 0, 2)])
    assert behind() == [0, 0]
    assert behind(queue=1) == behind(queue=7) == [None, None]
    world.store.progress.commit("g", [Commit(topic.id, 0, 0)])
    world.clock.step(-86_400_000)
    assert behind()[1] == 0


def test_groups_that_a_client_invents_do_not_grow_it() -> None:
    world = CountingWorld()
    queue = world.queue("orders", 0)
    for number in range(1_000):
        world.statistics.got(queue, f"invented-{number}", pulled(1), 0.0)
        world.statistics.acknowledged(queue.topic_id, f"invented-{number}", 1)
    assert len(world.statistics.gets) == len(world.statistics.acks) == 100
    assert world.total("BROKER_GET_NUMS", "us") == 1_000


def test_a_topic_that_made_room_and_gets_messages_again_begins_anew() -> None:
    world = CountingWorld()
    for number in range(150):
        world.ensure(f"topic-{number}", 1)
        world.put(topic=f"topic-{number}")
        world.pass_time(11)
    assert len(world.statistics.topic_puts) == 100
    assert "topic-0" in [topic.name for topic in world.store.topics]
    world.put(2, topic="topic-0")
    # Of the three that it has had, one was counted before it was dropped.
    world.pass_time(11)
    world.put(topic="topic-0")
    assert world.total("TOPIC_PUT_NUMS", "topic-0", Span.DAY) == 1


def test_sampling_is_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "SLICE_SECONDS", 0.0)
    world = CountingWorld()
    for number in range(50):
        world.ensure(f"topic-{number}", 1)
        world.put(topic=f"topic-{number}")
    world.clock.advance(10 * SECOND)
    steps = 1
    while world.statistics.step():
        steps += 1
    assert steps > 100
    assert not world.statistics.step()


def test_sampling_that_fails_is_taken_up_again_at_the_next_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = CountingWorld()
    world.put(3)
    queues = world.store.queues

    def failing(topic_id: bytes) -> Any:
        raise OSError("this once")

    with monkeypatch.context() as broken:
        broken.setattr(queues, "of", failing)
        world.clock.advance(10 * SECOND)
        with pytest.raises(OSError, match="this once"):
            world.statistics.step()
    world.pass_time(20)
    assert world.total("TOPIC_PUT_NUMS", "orders") == 3
