"""No slice of a snapshot is large, whatever lies in the folds: every one that a server has is here.

A slice is taken in one turn of the loop, so that its size is how long others wait.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import pytest
from tests.world import World

from rockgate.gateway.compose.config.changeable import changeable_settings
from rockgate.gateway.compose.folds import server_folds
from rockgate.gateway.kafka.configs import stored
from rockgate.gateway.kafka.features import levels
from rockgate.gateway.kafka.features.table import FEATURES
from rockgate.gateway.kafka.groups import fold as groups
from rockgate.gateway.kafka.groups.classic.group_record import SAVED_SIZE_MAX
from rockgate.gateway.kafka.groups.consumer import records as consumer_records
from rockgate.gateway.kafka.groups.consumer.classic_members import (
    PROTOCOLS_BYTES_MAX,
    SUBSCRIPTION_BYTES_MAX,
)
from rockgate.gateway.kafka.groups.share import member as share_members_of
from rockgate.gateway.kafka.groups.streams import records as streams_records
from rockgate.gateway.kafka.groups.streams.topology import TOPOLOGY_BYTES_MAX
from rockgate.gateway.kafka.handlers.share_group_heartbeat import NAMES_BYTES_MAX
from rockgate.gateway.kafka.internal_topics import writer as internal_writer
from rockgate.gateway.kafka.produce import producers
from rockgate.gateway.kafka.quotas import stored as quotas
from rockgate.gateway.kafka.quotas.entities import NAME_CHARS_MAX
from rockgate.gateway.kafka.transactions import changes as transactions
from rockgate.gateway.kafka.transactions.transaction import Offset, ProducerIdAndEpoch
from rockgate.gateway.remoting.admin import resent
from rockgate.gateway.remoting.groups import forbidden
from rockgate.gateway.remoting.groups import settings as groupsettings
from rockgate.gateway.remoting.pop import assignment
from rockgate.gateway.remoting.processors.groups import SETTINGS_BYTES_MAX
from rockgate.gateway.security import stored_grants, users
from rockgate.gateway.security.delegation import stored_tokens
from rockgate.gateway.settings import changed
from rockgate.gateway.visibility import empty_offsets as emptyoffsets
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.store import half
from rockgate.store.delay import held as delayheld
from rockgate.store.delay.changes import DELAY_TOPIC, encode_schedule
from rockgate.store.inflight.window import IN_FLIGHT_MAX
from rockgate.store.progress.records import (
    GROUP_SIZE_MAX,
    METADATA_SIZE_MAX,
    PROGRESS_TOPIC,
    Commit,
    Held,
    encode_commits,
    pack_record,
)
from rockgate.store.state.epochs import TOPIC as EPOCHS
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.fold import CHANGE_SIZE_MAX, Change, Fold, Journal
from rockgate.store.state.keyed import KeyedFold
from rockgate.store.state.snapshot_slices import SLICE_BYTES
from rockgate.store.state.topicchanges import (
    CONFIG_SIZE_MAX,
    NAME_SIZE_MAX,
    TOPICS_TOPIC,
    Created,
    LogStarts,
    TopicChangeKind,
    encode,
)
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store
from rockgate.store.upkeep.compaction import cleaned

LONG: Final = (1 << 62) - 1
OVERHEAD: Final = 64
"""A slice's own bytes around its items."""
SECONDS_MAX: Final = 0.02
MEMBER_SIZE_MAX: Final = PROTOCOLS_BYTES_MAX + SUBSCRIPTION_BYTES_MAX + 8_192
"""What a member of a consumer group may be written with."""
STREAMS_MEMBER_SIZE_MAX: Final = 200_000
"""What a member of a streams group may say about itself: tags and ids, in bytes."""

pack = msgspec.msgpack.encode
Bodies = Iterable[tuple[bytes, bytes]]


def name(number: int, size: int) -> str:
    return f"{number:08d}".ljust(size, "n")


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def keyed(topic: bytes, items: Sequence[tuple[Any, Any]]) -> Bodies:
    return [(topic, bytes((1,)) + pack([item])) for item in items]


# What fills each fold: as many of the largest that there may be as make several slices.


def epochs(fold: Any) -> Bodies:
    numbering = Epochs()
    for position in range(30_000):
        body = numbering.next_change()
        numbering.apply(Change(position, 0, EPOCHS, 0, -1, 0, b"", memoryview(body)))
        yield EPOCHS, body


def topics(fold: Any) -> Bodies:
    for number in range(60):
        size = CONFIG_SIZE_MAX - 10 if number % 20 == 0 else 16 << 10
        config = {"key": "v" * size}
        created = Created(name(number, NAME_SIZE_MAX), topic_id(number), 4, 6, False, config)
        yield from ((TOPICS_TOPIC, body) for body in encode(TopicChangeKind.CREATE, [created]))
    many = Created("many", topic_id(99), 100_000, 6, False, {})
    starts = LogStarts(topic_id(99), {queue_id: LONG for queue_id in range(60_000)})
    for kind, item in ((TopicChangeKind.CREATE, many), (TopicChangeKind.LOG_STARTS, starts)):
        yield from ((TOPICS_TOPIC, body) for body in encode(kind, [item]))


def progress(fold: Any) -> Bodies:
    def held(group: str, topic: bytes, queue_ids: Iterable[int], metadata: str) -> Held:
        records = {
            queue_id: pack_record(Commit(topic, queue_id, LONG, 5, metadata), 0)
            for queue_id in queue_ids
        }
        return Held(group, topic, records)

    large = "m" * METADATA_SIZE_MAX
    held_commits = [held(name(n, GROUP_SIZE_MAX), topic_id(1), [0], "") for n in range(2_000)]
    held_commits.append(held("many", topic_id(2), range(20_000), ""))
    held_commits.append(held("large", topic_id(3), range(200), large))
    held_commits.append(held("both", topic_id(4), range(2_100), large[:1_000]))
    return ((PROGRESS_TOPIC, body) for body in encode_commits(held_commits))


def delay(fold: Any) -> Bodies:
    for number in range(6_000):
        bodies = encode_schedule(topic_id(number), 99_999, [(LONG, LONG)])
        yield from ((DELAY_TOPIC, body) for body in bodies)


def held_entries(fold: Any) -> Bodies:
    for number in range(4_000):
        hold = delayheld.Hold(topic_id(number), 99_999, LONG - 9, LONG, LONG, LONG)
        yield delayheld.HELD_TOPIC, delayheld.encode(delayheld.HeldChangeKind.HOLD, hold)


def halves(fold: Any) -> Bodies:
    for number in range(2_000):
        prepared = half.Prepared(number * 900, name(number, GROUP_SIZE_MAX), LONG)
        yield half.HALF_TOPIC, half.encode(prepared)


def known_producers(fold: Any) -> Bodies:
    assert isinstance(fold, producers.Producers)
    for number in range(3_000 * producers.WINDOW):
        batch, producer = divmod(number, 3_000)
        first = (1 << 30) * (batch > 0) + batch
        header = BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, LONG - producer, 32_000, first, 1)
        fold.record(topic_id(producer), 99_999, header, offset=LONG, position=number, store_ms=LONG)
    return []


def saved_groups(fold: Any) -> Bodies:
    for number in range(1_010):
        data = bytes(SAVED_SIZE_MAX if number % 500 == 9 else 100)
        body = bytes((groups.FORMAT, groups.GroupChangeKind.SAVE))
        yield groups.TOPIC, body + pack((name(number, GROUP_SIZE_MAX), data))


def known_transactions(fold: Any) -> Bodies:
    kind = transactions.TransactionChangeKind

    def change(
        how: transactions.TransactionChangeKind, what: transactions.AnyChange
    ) -> tuple[bytes, bytes]:
        return transactions.TOPIC, transactions.encode(how, what)

    for number in range(1_000):
        init = transactions.Init(
            name(number, 1_000), ProducerIdAndEpoch(5, 0), ProducerIdAndEpoch(5, 0), LONG
        )
        yield change(kind.INIT, init)
    id_ = name(7, 1_000)
    for number in range(20):
        partitions = [(topic_id(number), list(range(90_000, 95_000)))]
        names = [name(number * 100 + n, GROUP_SIZE_MAX) for n in range(100)]
        yield change(kind.ADD, transactions.Add(id_, partitions, names))
        large = [Offset(topic_id(1), number * 20 + n, LONG, 5, "m" * 32_767) for n in range(20)]
        yield change(kind.OFFSETS, transactions.Offsets(id_, name(1, 1_000), large))
        small = [Offset(topic_id(1), n, LONG, 5, "") for n in range(200)]
        yield change(kind.OFFSETS, transactions.Offsets(id_, name(number + 9, 1_000), small))


def unstable(fold: Any) -> Bodies:
    assert isinstance(fold, StableOffsets)
    key = topic_id(1), 99_999
    for number in range(20_000):
        first, last = LONG - 80_000 + 2 * number, LONG - 79_999 + 2 * number
        fold.ended(key, LONG, first=first, offset=last, is_abort=True, high_watermark=LONG)
    for number in range(20_000):
        fold.wrote(*key, LONG - number, LONG - 30_000 + number)
    return []


def consumer_members(fold: Any) -> Bodies:
    """One member with as many topics and protocols as it may have, and many small ones."""
    runs = {bytes(16): [(2 * at, 1, at) for at in range(50_000)]}
    kind = consumer_records.RecordKind
    group = name(0, GROUP_SIZE_MAX)
    largest = {
        kind.MEMBER: bytes(MEMBER_SIZE_MAX),
        kind.TARGET: pack(runs),
        kind.CURRENT: pack(runs),
    }
    for each, data in largest.items():
        yield consumer_records.TOPIC, fold.change({(group, each, name(0, GROUP_SIZE_MAX)): data})
    for number in range(2_000):
        yield (
            consumer_records.TOPIC,
            fold.change({(group, kind.MEMBER, name(number, 255)): bytes(500)}),
        )


def streams_members(fold: Any) -> Bodies:
    """A topology and a member as large as they may be, and many small ones."""
    runs = {name(0, GROUP_SIZE_MAX): [(2 * at, 1, at) for at in range(25_000)]}
    kind = streams_records.StreamsRecord
    group = name(0, GROUP_SIZE_MAX)
    largest = {
        kind.TOPOLOGY: bytes(TOPOLOGY_BYTES_MAX),
        kind.MEMBER: bytes(STREAMS_MEMBER_SIZE_MAX),
        kind.TARGET: pack([runs, runs, {}]),
        kind.CURRENT: pack([1, 1, 0, [runs, runs, {}], [{}, {}, {}]]),
    }
    for each, data in largest.items():
        yield streams_records.TOPIC, fold.change({(group, each, name(0, GROUP_SIZE_MAX)): data})
    for number in range(2_000):
        yield (
            streams_records.TOPIC,
            fold.change({(group, kind.MEMBER, name(number, 255)): bytes(500)}),
        )


def configs(fold: Any) -> Bodies:
    items = [((32, name(n, GROUP_SIZE_MAX)), {"key": "v" * 32_767}) for n in range(100)]
    return keyed(stored.TOPIC, items)


def known_quotas(fold: Any) -> Bodies:
    kinds, values = ("user", "client-id"), dict.fromkeys(("a_rate", "b_rate", "c_rate"), 1e300)
    names = [name(n, NAME_CHARS_MAX) for n in range(600)]
    return keyed(quotas.TOPIC, [([(kind, each) for kind in kinds], values) for each in names])


def settings(fold: Any) -> Bodies:
    items = [(name(n, 255), bytes(SETTINGS_BYTES_MAX)) for n in range(200)]
    return keyed(groupsettings.TOPIC, items)


def sent_again(fold: Any) -> Bodies:
    items = [((topic_id(n), 99_999, LONG), bytes(resent.STRETCH // 8)) for n in range(2_000)]
    return keyed(resent.TOPIC, items)


def empty_offsets(fold: Any) -> Bodies:
    assert isinstance(fold, emptyoffsets.EmptyOffsets)
    for number in range(1_000):
        fold.marked((topic_id(1), 99_999), LONG - number * 4_096)
        fold.marked((topic_id(number), 99_998), LONG)
    return []


def share_members(fold: Any) -> Bodies:
    """A member with as many topics as it may name, and many small ones."""
    group = name(0, GROUP_SIZE_MAX)
    yield share_members_of.TOPIC, fold.change({(group, name(0, 36)): bytes(NAMES_BYTES_MAX)})
    for number in range(2_000):
        yield (
            share_members_of.TOPIC,
            fold.change({(group, name(number, 36)): bytes(500)}),
        )


def share_state(fold: Any) -> Bodies:
    """Full windows of which no two offsets are alike, so that each is a run."""
    run = struct.Struct(">qIH")
    runs = b"".join(run.pack(LONG - 2 * n, 1, 0x7FFF) for n in range(IN_FLIGHT_MAX, 0, -1))
    windows = [(name(n, 255), topic_id(1), 0, LONG, n, runs) for n in range(5)]
    fold.restore([bytes((1,)) + msgspec.msgpack.encode([window]) for window in windows])
    return []


def in_flight(fold: Any) -> Bodies:
    """Full windows, as a snapshot has them: changes need topics that exist."""
    item = struct.Struct(">qqH")
    items = b"".join(item.pack(LONG - n, LONG >> 16, 0xFFFF) for n in range(IN_FLIGHT_MAX, 0, -1))
    windows = [(name(n, 255), topic_id(1), 0, LONG, n, items) for n in range(5)]
    fold.restore([bytes((1,)) + msgspec.msgpack.encode([window]) for window in windows])
    return []


def request_modes(fold: Any) -> Bodies:
    items = [((name(n, 127), name(n, 255)), ("PULL", 2**31 - 1)) for n in range(1_000)]
    return keyed(assignment.MODES_TOPIC, items)


def forbidden_reads(fold: Any) -> Bodies:
    items = [((name(n, 262), name(n, 255)), forbidden.READ_BIT) for n in range(1_000)]
    return keyed(forbidden.TOPIC, items)


def broker_settings(fold: Any) -> Bodies:
    settings = changeable_settings()
    own = [(each.key, 2**30) for each in settings.values()]
    return keyed(changed.TOPIC, own + [(f"*{setting}", 2**30) for setting in settings])


def feature_levels(fold: Any) -> Bodies:
    return keyed(levels.TOPIC, [(feature, 2**15 - 1) for feature in (*FEATURES, levels.EPOCH)])


def known_users(fold: Any) -> Bodies:
    credential = bytes(20), 16_384, bytes(64), bytes(64)
    keys = {"SCRAM-SHA-256": credential, "SCRAM-SHA-512": credential}
    return keyed(users.TOPIC, [(name(n, 255), (1, 1, keys, bytes(300))) for n in range(1_000)])


def known_grants(fold: Any) -> Bodies:
    items = [
        ((2, name(n, 255), 4, "User:" + name(n, 255), name(n, 45), 3, 3), True)
        for n in range(1_000)
    ]
    return keyed(stored_grants.TOPIC, items)


def known_tokens(fold: Any) -> Bodies:
    principal = "User:" + name(0, 255)
    renewers = ["User:" + name(n, 255) for n in range(100)]
    items = [
        (name(n, 22), (principal, principal, renewers, LONG, LONG, LONG, n.to_bytes(32), True))
        for n in range(100)
    ]
    return keyed(stored_tokens.TOPIC, items)


def internal_topics(fold: KeyedFold[str, int]) -> Bodies:
    yield internal_writer.TOPIC, fold.change({internal_writer.WRITTEN_TO: LONG})


def compacted(fold: Any) -> Bodies:
    return keyed(cleaned.TOPIC, [((topic_id(n), 99_999), LONG) for n in range(10_000)])


FILL: Final[dict[str, Callable[[Any], Bodies]]] = {
    "epochs": epochs,
    cleaned.NAME: compacted,
    "topics": topics,
    "progress": progress,
    "delay": delay,
    "delay held": held_entries,
    "halves": halves,
    "producers": known_producers,
    "groups": saved_groups,
    consumer_records.NAME: consumer_members,
    streams_records.NAME: streams_members,
    share_members_of.NAME: share_members,
    "share state": share_state,
    "transactions": known_transactions,
    "unstable": unstable,
    "configs": configs,
    "internal topics": internal_topics,
    "quotas": known_quotas,
    "rocketmq groups": settings,
    "resent": sent_again,
    "empty offsets": empty_offsets,
    "in flight": in_flight,
    "request modes": request_modes,
    "forbidden reads": forbidden_reads,
    "broker settings": broker_settings,
    "features": feature_levels,
    "users": known_users,
    "grants": known_grants,
    "tokens": known_tokens,
}
LARGEST: Final = {
    consumer_records.NAME: MEMBER_SIZE_MAX + 2 * GROUP_SIZE_MAX,
    streams_records.NAME: 700_000,
    share_members_of.NAME: NAMES_BYTES_MAX + 2 * GROUP_SIZE_MAX,
    "topics": CONFIG_SIZE_MAX + NAME_SIZE_MAX,
    "groups": SAVED_SIZE_MAX + GROUP_SIZE_MAX,
}
"""Of folds in which one item may pass what a slice should take: it is a slice of its own."""
ALWAYS_SMALL: Final = {"broker settings", "features", "internal topics"}
"""Folds whose number of items is fixed: all of them take less than a slice."""


class Folding(World):
    """A store with every fold of both wires."""

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        return server_folds(journal, topics)


def fold_of(store: Store, wanted: str) -> Fold:
    [fold] = [each for each in store.state.folds if each.name == wanted]
    return fold


def filled(wanted: str) -> Fold:
    fold = fold_of(Folding().store, wanted)
    position = 1_000
    for topic, body in FILL[wanted](fold):
        assert len(body) <= CHANGE_SIZE_MAX
        fold.apply(Change(position, LONG, topic, 0, -1, 0, b"", memoryview(body)))
        position += len(body)
    return fold


def timed(slices: Iterator[bytes]) -> Iterator[tuple[float, bytes]]:
    while True:
        before = time.thread_time()
        data = next(slices, None)
        if data is None:
            return
        yield time.thread_time() - before, data


def test_every_fold_of_a_server_is_filled_here() -> None:
    assert {fold.name for fold in Folding().store.state.folds} == set(FILL)


@pytest.mark.parametrize("wanted", FILL)
def test_no_slice_of_the_largest_items_is_large(wanted: str) -> None:
    fold = filled(wanted)
    slices = list(fold.snapshot())
    if wanted not in ALWAYS_SMALL:
        assert sum(map(len, slices)) > SLICE_BYTES, "else it says nothing"
    assert max(map(len, slices)) <= max(SLICE_BYTES, LARGEST.get(wanted, 0)) + OVERHEAD
    large = [data for data in slices if len(data) > SLICE_BYTES + OVERHEAD]
    assert len(large) <= 3, "only what cannot be divided"


@pytest.mark.parametrize("wanted", FILL)
def test_no_slice_of_the_largest_items_takes_long(wanted: str) -> None:
    fold = filled(wanted)
    longest = min(max(took for took, _ in timed(fold.snapshot())) for _ in range(3))
    assert longest < SECONDS_MAX


@pytest.mark.parametrize("wanted", FILL)
def test_what_was_cut_into_slices_comes_back_whole(wanted: str) -> None:
    slices = list(filled(wanted).snapshot())
    again = fold_of(Folding().store, wanted)
    again.restore(slices)
    # Sets have no order: what is in them may lie in other pieces, and takes as much.
    first, second = (Counter(b"".join(each)) for each in (slices, again.snapshot()))
    assert first == second
