import re
from collections.abc import Callable, Iterator
from time import thread_time

from tests.gateway.fakes import HandClock
from tests.gateway.kafka.admin import Admin
from tests.gateway.kafka.fakes import Script
from tests.gateway.kafka.share.world import ACCEPT, REJECT, RELEASE, RENEW, Shares, joined

from rockgate.gateway.compose.metrics.kafka import (
    GroupSource,
    RequestSource,
    ShareSource,
    TopicSource,
)
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import Groups, new_member_id
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.server.listener import KafkaConnections
from rockgate.gateway.kafka.server.request_metrics import Traffic
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.telemetry.config import MetricsConfig
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.store.delay.changes import DELAY_TOPIC, encode_schedule
from rockgate.store.progress.records import Commit


def told(source: Callable[[Exposition], Iterator[None]]) -> dict[str, float]:
    page = Exposition()
    list(source(page))
    return {
        name: float(value)
        for name, value in re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", page.text(), flags=re.M)
    }


async def test_requests_are_reported_by_api_and_error() -> None:
    admin, stats = Admin(), RequestStats()
    stats.of(0).add(0.002)
    stats.of(0).answer_bytes = 70
    stats.of(12).count_error(27)
    stats.of(12).count_error(9_999)
    listener = KafkaConnections(KafkaConfig(), Script(), HandClock())
    listener.session()
    source = RequestSource(stats=stats, connections=listener, throttling=admin.throttling)
    admin.throttling.throttled["producer_byte_rate"].total_ms = 1_500
    found = told(source)
    assert found['rockgate_kafka_request_seconds_count{api="Produce"}'] == 1
    assert found['rockgate_kafka_response_bytes_total{api="Produce"}'] == 70
    assert found['rockgate_kafka_errors_total{api="Heartbeat",error="REBALANCE_IN_PROGRESS"}'] == 1
    assert found['rockgate_kafka_errors_total{api="Heartbeat",error="9999"}'] == 1
    assert found["rockgate_kafka_connections_total"] == 1
    assert found['rockgate_throttled_seconds_total{quota="producer_byte_rate"}'] == 1.5


def test_topics_are_reported_up_to_a_bound() -> None:
    admin = Admin()
    traffic = Traffic()
    source = TopicSource(
        catalog=admin.catalog,
        store=admin.store,
        sizes=QueueSizes(),
        traffic=traffic,
        config=MetricsConfig(topics_max=1),
    )
    admin.topic("a", 2)
    admin.topic("b")
    appended = [admin.append("a", index, times=(1, 2, 3)) for index in (0, 1)]
    traffic.count([FetchedTopic("a", b"", [FetchedPartition(0, records=[b"123", b"45"])])])
    traffic.count([FetchedTopic("", admin.get("a").id, [FetchedPartition(0, records=[b"6"])])])
    traffic.count([FetchedTopic("nobody", b"", [FetchedPartition(0, 3, records=None)])])
    found = told(source)
    assert found["rockgate_topics"] == 2
    assert found["rockgate_partitions"] == 3
    assert found["rockgate_topics_without_series"] == 1
    assert found['rockgate_topic_messages_total{topic="a"}'] == 6
    size = sum(each.end - each.position for each in appended)
    assert found['rockgate_topic_bytes{topic="a"}'] == size
    assert found['rockgate_topic_fetched_bytes_total{topic="a"}'] == 6
    assert not any('topic="b"' in name for name in found)
    admin.store.topics.delete([admin.get("a")])
    assert told(source)['rockgate_topic_messages_total{topic="b"}'] == 0
    admin.topic("a")
    assert traffic.fetched(admin.get("a")) == 0


def group_source(admin: Admin, groups_max: int) -> GroupSource:
    groups = Groups(
        config=GroupsConfig(),
        saved=admin.folds.groups,
        progress=StoreProgress(admin.store.progress),
        durability=Durability(admin.store),
        new_id=new_member_id,
    )
    config = MetricsConfig(groups_max=groups_max)
    return GroupSource(groups=groups, store=admin.store, empty=admin.folds.empty, config=config)


def longest_step(source: Callable[[Exposition], Iterator[None]]) -> float:
    """What the longest step of a source computes, in seconds; the best of three pages."""

    def of_a_page() -> float:
        began, longest = thread_time(), 0.0
        for _ in source(Exposition()):
            longest = max(longest, thread_time() - began)
            began = thread_time()
        return max(longest, thread_time() - began)

    return min(of_a_page() for _ in range(3))


def test_a_group_of_very_many_topics_holds_no_one_up() -> None:
    admin = Admin()
    topics = [admin.topic(f"t{number}", 1) for number in range(2_000)]
    progress = admin.store.progress
    progress.commit("all", [Commit(topic.id, 0, 0) for topic in topics])
    source = group_source(admin, 1_000)
    assert sum(1 for _ in source(Exposition())) >= len(topics) + 1_000
    assert longest_step(source) < 0.005


def test_what_goes_while_groups_are_told_is_passed_over() -> None:
    admin = Admin()
    topics = [admin.topic(f"t{number}", 2) for number in range(3)]
    for topic in topics:
        admin.append(topic.name, 1)
        admin.store.progress.commit("all", [Commit(topic.id, 0, 0), Commit(topic.id, 1, 0)])
    page = Exposition()
    steps = group_source(admin, 10)(page)
    next(steps)
    admin.store.topics.delete([topics[1]])
    list(steps)
    assert "rockgate_lag 2\n" in page.text()
    assert 'topic="t1"' not in page.text()


def test_groups_are_reported_with_their_lag_the_largest_first() -> None:
    admin = Admin()
    topic = admin.topic("a", 2)
    for index in (0, 1):
        for _ in range(10):
            admin.append("a", index)
    progress = admin.store.progress
    progress.commit("behind", [Commit(topic.id, 0, 3), Commit(topic.id, 1, 10)])
    progress.commit("nearly", [Commit(topic.id, 0, 9)])
    progress.commit("gone", [Commit(b"?" * 16, 0, 9)])
    source = group_source(admin, 1)
    found = told(source)
    assert found['rockgate_group_lag{group="behind",topic="a"}'] == 7
    assert not any('group="nearly"' in name for name in found)
    assert found["rockgate_lag"] == 8
    assert found["rockgate_group_lags_without_series"] == 1
    assert found['rockgate_groups{state="Empty"}'] == 3
    assert found['rockgate_groups{state="Stable"}'] == 0
    # Offsets that hold nothing are a distance, and nothing to be read.
    [change] = encode_schedule(topic.id, 0, [(offset, 1) for offset in (1, 5, 6)])
    admin.store.appender.append_state(DELAY_TOPIC, change)
    found = told(source)
    assert found['rockgate_group_lag{group="behind",topic="a"}'] == 5
    assert found['rockgate_group_lag_offsets{group="behind",topic="a"}'] == 7
    assert (found["rockgate_lag"], found["rockgate_lag_offsets"]) == (6, 8)
    # Deleted records are not part of any lag.
    admin.delete_records(8, "a", 0)
    assert told(source)['rockgate_group_lag{group="behind",topic="a"}'] == 2


async def test_share_groups_are_reported_with_what_became_of_their_records() -> None:
    world = Shares()
    world.topic("orders", 1)
    world.configure(auto_offset_reset="earliest", delivery_count_limit="2")
    a, b = joined(world, "a", "b")
    world.batch(10)
    await a.take()
    assert a.code((0, 3, [ACCEPT]), (4, 4, [REJECT]), (5, 6, [RELEASE])) == 0
    assert a.code((0, 0, [ACCEPT])) == 0, "what is finished already does not count"
    assert a.code((7, 7, [RENEW]), is_renew_ack=True) == 0
    assert len(await b.take()) == 1, "what failed before comes in parts"
    source = ShareSource(world.records, world.share_sessions)
    found = told(source)
    assert found["rockgate_share_records_total"] == 11
    assert found["rockgate_share_in_flight"] == 5
    assert found["rockgate_share_windows"] == 1
    assert found["rockgate_share_sessions"] == 2
    acks = {
        kind: found[f'rockgate_share_acknowledgements_total{{type="{kind}"}}']
        for kind in ("gap", "accept", "release", "reject", "renew")
    }
    assert acks == {"gap": 0, "accept": 4, "release": 2, "reject": 1, "renew": 1}
    world.pass_time(31_000)
    world.records.expire()
    found = told(source)
    assert found["rockgate_share_lock_timeouts_total"] == 4
    assert found["rockgate_share_archived_total"] == 1, "the one that came twice"
    groups = GroupSource(
        groups=world.groups, store=world.store, empty=world.folds.empty, config=MetricsConfig()
    )
    assert told(groups)['rockgate_share_groups{state="Stable"}'] == 1
