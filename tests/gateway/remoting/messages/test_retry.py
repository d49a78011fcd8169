"""Retry and dead letters: docs/internals/retry.md, row by row."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gateway.remoting.retryworld import BORN_HOST, BORN_MS, RetryWorld
from tests.gateway.remoting.world import NotingWorld
from tests.store.reading import entries
from tests.world import CONFIG, SECOND

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.protocol.entry import unpack_host
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, open_records, walk_records
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.message import Message
from rockgate.protocol.remoting.properties import RETRY_MARKS
from rockgate.store.errors import InvalidTopic

PAGE = (Path(__file__).parents[4] / "docs" / "internals" / "retry.md").read_text(encoding="utf-8")
RETRY, DLQ = "%RETRY%g", "%DLQ%g"
LEVELS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


def test_the_page_lists_the_marks() -> None:
    [part] = re.findall(r"## Properties\n(.*?)\n## ", PAGE, re.DOTALL)
    first = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(first))) == RETRY_MARKS


def fail(
    world: RetryWorld,
    message: Message,
    seconds: int,
    *,
    level: int = 0,
    times_max: int | None = None,
) -> Message:
    """Fail a message; it is redelivered after exactly that delay."""
    before = len(world.consumed(RETRY))
    world.give_back(message, level=level, times_max=times_max)
    world.pass_time(seconds * SECOND - 1)
    assert len(world.consumed(RETRY)) == before
    world.pass_time(1)
    assert len(world.consumed(RETRY)) == before + 1
    return world.consumed(RETRY)[-1]


@pytest.mark.row("RTY-1", "RTY-3", "RTY-6")
def test_a_message_comes_back_alone_after_its_levels_time() -> None:
    world = RetryWorld()
    failing = world.published(b"fails", KEYS="k", TAGS="T", color="blue")
    world.published(b"another")
    world.give_back(failing)
    world.pass_time(10 * SECOND - 1)
    assert world.consumed(RETRY) == []
    world.pass_time(1)
    [again] = world.consumed(RETRY)
    assert (again.body, again.reconsume_times, again.flag) == (b"fails", 1, 9)
    assert (again.born_ms, again.born_host) == (BORN_MS, unpack_host(BORN_HOST))
    own = {name: text for name, text in again.properties.items() if name not in RETRY_MARKS}
    assert own == {"KEYS": "k", "TAGS": "T", "color": "blue"}
    assert again.properties["RETRY_TOPIC"] == "orders"
    assert again.properties["ORIGIN_MESSAGE_ID"] == failing.offset_message_id
    assert again.properties["RECONSUME_TIME"] == "1"
    assert again.properties["MAX_RECONSUME_TIMES"] == "16"
    assert again.properties["__RETRY_QUEUE"] == "0"
    assert again.properties["__RETRY_OFFSET"] == str(failing.queue_offset)
    assert len(world.consumed("orders")) == 2, "the queue itself is as it was"


@pytest.mark.row("RTY-3", "RTY-4", "C-37", "U-03")
def test_sixteen_tries_wait_longer_each_time_then_it_is_a_dead_letter() -> None:
    world = RetryWorld()
    message = world.published(b"poison", UNIQ_KEY="u")
    since = world.clock.now_ms()
    coming = message
    for seconds in LEVELS_S[2:]:
        coming = fail(world, coming, seconds)
    assert world.consumed(DLQ) == []
    world.give_back(coming)
    [dead] = world.consumed(DLQ)
    assert (dead.body, dead.reconsume_times, dead.born_ms) == (b"poison", 17, BORN_MS)
    assert {name: dead.properties.get(name) for name in RETRY_MARKS - {"__ORIGIN"}} == {
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": message.offset_message_id,
        "RECONSUME_TIME": "17",
        "MAX_RECONSUME_TIMES": "16",
        "__RETRY_QUEUE": "0",
        "__RETRY_OFFSET": "0",
        "__RETRY_SINCE": str(since),
        "__DLQ_SINCE": str(since + sum(LEVELS_S[2:]) * SECOND),
        "__DLQ_REASON": "tries",
        "WAIT": "false",
    }
    assert not dead.properties.keys() & {"DELAY", "REAL_TOPIC", "REAL_QID", "__ORIGIN"}
    assert dead.properties["UNIQ_KEY"] == "u"
    assert len(world.consumed(RETRY)) == 16


@pytest.mark.row("RTY-4")
@pytest.mark.parametrize(
    ("group_max", "asked_max", "tries"), [(2, None, 2), (16, 1, 1), (0, None, 0), (5, 0, 0)]
)
def test_the_requests_maximum_counts_before_the_groups(
    group_max: int, asked_max: int | None, tries: int
) -> None:
    world = RetryWorld()
    world.set_group("g", retry_max_times=group_max)
    message = world.published()
    for _ in range(tries):
        world.give_back(message, times_max=asked_max, level=1)
        world.pass_time(SECOND)
        message = world.consumed(RETRY)[-1]
    assert world.consumed(DLQ) == []
    world.give_back(message, times_max=asked_max, level=1)
    assert [dead.reconsume_times for dead in world.consumed(DLQ)] == [tries + 1]
    assert len(world.consumed(RETRY)) == tries


@pytest.mark.row("RTY-3")
@pytest.mark.parametrize(("level", "seconds"), [(1, 1), (5, 60), (18, 7200), (99, 7200)])
def test_the_listener_can_say_how_long_it_waits(level: int, seconds: int) -> None:
    world = RetryWorld()
    world.give_back(world.published(), level=level)
    world.pass_time(seconds * SECOND - 1)
    assert world.consumed(RETRY) == []
    world.pass_time(1)
    assert len(world.consumed(RETRY)) == 1


@pytest.mark.row("RTY-3", "U-03")
def test_a_negative_level_means_dead_letter_at_once() -> None:
    world = RetryWorld()
    world.give_back(world.published(), level=-1)
    [dead] = world.consumed(DLQ)
    assert dead.properties["__DLQ_REASON"] == "asked"
    topic = world.store.topics.get(DLQ)
    assert (topic.queue_count, topic.permission) == (1, 6)


def records() -> list[Record]:
    found = [Record(index, BORN_MS + index, b"k%d" % index, b"v%d" % index) for index in range(10)]
    headers = (("color", b"blue"), ("raw", b"\x00\xff"), ("color", None), ("DELAY", b"3"))
    found[7] = Record(7, BORN_MS + 7, b"a key", None, headers)
    return found


@pytest.mark.row("RTY-4", "C-37")
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_one_record_of_a_batch_goes_its_way_alone_and_nothing_of_it_is_lost(
    compression: Compression,
) -> None:
    world = RetryWorld()
    world.published(b"in front")
    message = world.batch(records(), compression=compression)[7]
    assert message.queue_offset == 8
    coming = message
    for _ in range(2):
        coming = fail(world, coming, 1, times_max=2, level=1)
    world.give_back(coming, times_max=2, level=1)
    assert len(world.consumed(RETRY)) == 2
    for topic in (RETRY, DLQ):
        [lying] = kafka_records(world, topic)[-1:]
        assert (lying.timestamp, lying.key, lying.value) == (BORN_MS + 7, b"a key", None)
        own = [(name, value) for name, value in lying.headers if name not in RETRY_MARKS]
        assert own == list(records()[7].headers)
    [dead] = world.consumed(DLQ)
    assert dead.properties["__RETRY_OFFSET"] == "8"
    assert dead.properties["ORIGIN_MESSAGE_ID"] == message.offset_message_id
    original = world.lookup.message(int(dead.properties["ORIGIN_MESSAGE_ID"][-16:], 16))
    assert original is not None
    assert original.offset == 8


def kafka_records(world: RetryWorld, topic: str) -> list[Record]:
    """What a Kafka consumer reads of message entries."""
    queue = world.store.queue(world.store.topics.get(topic), 0)
    run = entries(world.store, queue, 0, 1 << 24)
    body, count = BatchTranscoder().batch(queue, run, 0)
    header = read_header(memoryview(body))
    data = open_records(memoryview(body), header)
    found = [Record(*each) for each in walk_records(data, header)]
    assert len(found) == count
    return found


def test_a_compressed_body_stays_compressed_and_a_dotted_topic_has_a_bar() -> None:
    world = RetryWorld()
    world.book.ensure("shop|orders", 1, 6)
    message = world.published(topic="shop.orders")
    world.give_back(message, group="eu|mail", level=-1)
    [dead] = world.consumed("%DLQ%eu.mail")
    assert dead.properties["RETRY_TOPIC"] == "shop|orders"
    assert world.store.topics.find("%RETRY%eu.mail") is not None


def test_retry_queues_grow_with_the_groups_setting_and_all_of_them_are_used() -> None:
    world = RetryWorld()
    message = world.published()
    world.give_back(message, level=1)
    world.set_group("g", retry_queue_nums=3)
    for _ in range(60):
        world.give_back(message, level=1)
    world.pass_time(SECOND)
    counts = [len(world.consumed(RETRY, queue)) for queue in range(3)]
    assert sum(counts) == 61
    assert all(counts)


def test_what_no_one_consumes_and_what_is_not_writable_is_refused() -> None:
    world = RetryWorld()
    message = world.published()
    world.give_back(message)
    [waiting] = world.consumed("SCHEDULE_TOPIC_XXXX", 2)
    with pytest.raises(Refused, match="cannot be sent back"):
        world.give_back(waiting)
    with pytest.raises(Refused, match=r"Group name is empty\."):
        world.give_back(message, group="")
    with pytest.raises(Refused, match="Group name is 300 characters"):
        world.give_back(message, group="g" * 300)
    with pytest.raises(InvalidTopic):
        world.give_back(message, group="g" * 255)
    world.store.topics.set_permission({world.store.topics.get(RETRY): 4})
    with pytest.raises(Refused) as refused:
        world.give_back(message)
    assert refused.value.code == ResponseCode.NO_PERMISSION


def test_a_dead_letter_that_another_group_fails_is_that_groups() -> None:
    world = RetryWorld()
    world.give_back(world.published(), level=-1)
    [dead] = world.consumed(DLQ)
    world.give_back(dead, group="readers", level=1)
    world.pass_time(SECOND)
    [again] = world.consumed("%RETRY%readers")
    assert again.properties["RETRY_TOPIC"] == "orders"
    assert not again.properties.keys() & {"__DLQ_SINCE", "__DLQ_REASON"}


# What clients send to retry topics themselves


@pytest.mark.row("RTY-2", "U-03")
def test_a_clients_own_send_waits_for_its_level() -> None:
    world = RetryWorld()
    given = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "ID", "DELAY": "4", "KEYS": "k"}
    told = world.send(RETRY, given, times=1, times_max=16)
    assert told.queue_id == 0
    world.pass_time(30 * SECOND - 1)
    assert world.consumed(RETRY) == []
    world.pass_time(1)
    [again] = world.consumed(RETRY)
    assert (again.reconsume_times, again.body, again.flag) == (1, b"mine", 9)
    assert again.properties["RETRY_TOPIC"] == "orders"
    assert again.properties["RECONSUME_TIME"] == "1"
    assert again.properties["KEYS"] == "k"
    world.send(RETRY, {"RETRY_TOPIC": "orders"}, b"now")
    assert world.consumed(RETRY)[-1].body == b"now"


@pytest.mark.row("RTY-5")
@pytest.mark.parametrize(
    ("times", "times_max", "group_max", "is_dead"),
    [
        (3, 2, 16, True),
        (2, 2, 16, False),
        (17, None, 16, True),
        (5, None, 4, True),
        (0, 0, 0, False),
    ],
)
def test_a_clients_own_send_without_tries_left_is_a_dead_letter(
    times: int, times_max: int | None, group_max: int, is_dead: bool
) -> None:
    world = RetryWorld()
    world.set_group("g", retry_max_times=group_max)
    world.send(RETRY, {"RETRY_TOPIC": "orders", "DELAY": "5"}, times=times, times_max=times_max)
    world.pass_time(60 * SECOND)
    assert [len(world.consumed(DLQ)), len(world.consumed(RETRY))] == [is_dead, not is_dead]
    if is_dead:
        [dead] = world.consumed(DLQ)
        assert "DELAY" not in dead.properties
        assert dead.properties["__DLQ_REASON"] == "tries"


@pytest.mark.row("RTY-5")
def test_what_a_group_gives_up_that_reads_in_order_is_a_dead_letter() -> None:
    world = RetryWorld()
    world.ordered.add("g")
    world.send(RETRY, {"RETRY_TOPIC": "orders", "DELAY": "5"}, times=2, times_max=2)
    [dead] = world.consumed(DLQ)
    assert (dead.properties["__DLQ_REASON"], dead.reconsume_times) == ("ordered", 2)


def test_a_client_that_reads_nothing_can_send_there_with_any_number() -> None:
    world = RetryWorld()
    message = world.published()
    world.send(RETRY, {}, times=2**31 - 1, times_max=2**31 - 1)
    [there] = world.consumed(RETRY)
    world.give_back(there, times_max=2**31 - 1)
    assert [dead.reconsume_times for dead in world.consumed(DLQ)] == [2**31 - 1]
    assert message.reconsume_times == 0


@pytest.mark.parametrize("level", [1, -1])
def test_under_sync_flush_the_answer_waits_for_the_schedule_too(level: int) -> None:
    """Of an atomic group that is not on disk to its end a restart would find nothing."""

    class NotingRetries(NotingWorld, RetryWorld):
        """Retries, and what their answers wait for."""

    world = NotingRetries(config=replace(CONFIG, flush="sync"))
    message = world.published()
    world.give_back(message, level=level)
    assert world.noting.waited == [world.store.log.end]


def test_a_retry_topic_that_is_deleted_and_made_anew_by_a_heartbeat_gets_nothing_of_before() -> (
    None
):
    world = RetryWorld()
    world.give_back(world.published(b"before"))
    world.store.topics.delete([world.store.topics.get("%RETRY%g")])
    world.book.ensure_queues("%RETRY%g", 1)
    world.pass_time(3_600 * SECOND)
    assert world.consumed("%RETRY%g") == []
    assert world.store.deliveries.dropped_count == 1
    world.give_back(world.published(b"since"))
    world.pass_time(3_600 * SECOND)
    assert [message.body for message in world.consumed("%RETRY%g")] == [b"since"]
