"""Every fold, with random changes for it: the property tests of folds apply to this list.

Add a `FoldCase` to `FOLDS` for a new fold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from tests.store.journals import ENVELOPE_SIZE, MemoryJournal, change_at

from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.store import half as halfchanges
from rockgate.store.clock import ManualClock, SteadyClock
from rockgate.store.delay import held as delayheld
from rockgate.store.delay.changes import (
    DELAY_TOPIC,
    DelayChangeKind,
    Ended,
    due_after,
    encode_ended,
    encode_schedule,
)
from rockgate.store.delay.fold import Delay
from rockgate.store.delay.held import HELD_TOPIC, HeldEntries
from rockgate.store.half import HALF_TOPIC, HalfMessages
from rockgate.store.inflight import changes as inflight
from rockgate.store.inflight.changes import INFLIGHT_TOPIC, SHARE_TOPIC
from rockgate.store.inflight.fold import MessagesInFlight, ShareState
from rockgate.store.progress.progress import Key, Progress
from rockgate.store.progress.records import (
    PROGRESS_TOPIC,
    Commit,
    Held,
    ProgressRecordKind,
    Removed,
    encode_commits,
    encode_removals,
    pack_record,
    position_key,
)
from rockgate.store.state.epochs import TOPIC as EPOCH_TOPIC
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.fold import Change, Fold
from rockgate.store.state.topicchanges import (
    TOPICS_TOPIC,
    ConfigSet,
    Created,
    LogStarts,
    PermissionSet,
    QueuesSet,
    TopicChangeKind,
    encode,
)
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk

Body = tuple[bytes, bytes]


class FoldCase(NamedTuple):
    """How to create a fold with the smallest possible slices, change it, and examine it."""

    name: str
    topic: bytes
    make: Callable[[], Fold]
    changes: st.SearchStrategy[list[Body]]
    view: Callable[[Any], Mapping[Any, object]]
    """Everything in the fold, by key."""


def topic_id(index: int) -> bytes:
    return index.to_bytes(16, "big")


# Topics: operations refer to an incarnation by number, so that most refer to an existing one.

_NAMES = ("a", "b", "c")
_LIVES = st.integers(0, 7)
_TOPIC_OPERATIONS = st.one_of(
    st.tuples(st.just(TopicChangeKind.CREATE), st.sets(st.sampled_from(_NAMES), min_size=1)),
    st.tuples(st.just(TopicChangeKind.DELETE), st.sets(_LIVES, min_size=1, max_size=3)),
    st.tuples(st.just(TopicChangeKind.QUEUES), _LIVES, st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just(TopicChangeKind.CONFIG), _LIVES, st.sampled_from("xyz")),
    st.tuples(st.just(TopicChangeKind.PERMISSION), _LIVES, st.sampled_from((0, 2, 4, 6))),
    st.tuples(
        st.just(TopicChangeKind.LOG_STARTS),
        _LIVES,
        st.dictionaries(st.integers(0, 4), st.integers(1, 99), min_size=1),
    ),
)


def _topic_changes(operations: Sequence[tuple[Any, ...]]) -> list[Body]:
    lives = 0
    bodies = []
    for kind, *values in operations:
        items: list[object]
        if kind is TopicChangeKind.CREATE:
            items = []
            for name in sorted(values[0]):
                items.append(Created(name, topic_id(lives), 4, 6, False, {}))
                lives += 1
        elif kind is TopicChangeKind.DELETE:
            items = [topic_id(life) for life in sorted(values[0])]
        elif kind is TopicChangeKind.QUEUES:
            items = [QueuesSet(topic_id(values[0]), *values[1:])]
        elif kind is TopicChangeKind.CONFIG:
            items = [ConfigSet(topic_id(values[0]), {"key": values[1]})]
        elif kind is TopicChangeKind.PERMISSION:
            items = [PermissionSet(topic_id(values[0]), values[1])]
        else:
            items = [LogStarts(topic_id(values[0]), values[1])]
        bodies += [(TOPICS_TOPIC, body) for body in encode(kind, items)]
    return bodies


def _view_topics(topics: Topics) -> Mapping[object, object]:
    by_name = {topic.name: topic.id for topic in topics}
    found = {name: topic.id for name in _NAMES if (topic := topics.find(name)) is not None}
    assert by_name == found, "both indexes lead to the same topics"
    assert len(topics) == len(found)
    return {"version": topics.version, **{key: fields for key, fields in topics.items()}}


# Progress: commits, removals, and the deletion of topics.

_GROUPS = st.sampled_from(("g", "h"))
_TOPICS = st.integers(0, 2)
_QUEUES = st.integers(0, 3)
_PROGRESS_OPERATIONS = st.one_of(
    st.tuples(
        st.sampled_from(("commit", "as of")),
        _GROUPS,
        st.dictionaries(
            _TOPICS, st.dictionaries(_QUEUES, st.integers(0, 99), min_size=1), min_size=1
        ),
    ),
    st.tuples(st.just("group"), _GROUPS),
    st.tuples(st.just("topic"), _GROUPS, _TOPICS),
    st.tuples(st.just("queues"), _GROUPS, _TOPICS, st.lists(_QUEUES, min_size=1)),
    st.tuples(st.just("deletion"), st.sets(_TOPICS, min_size=1)),
)


def _progress_changes(operations: Sequence[tuple[Any, ...]]) -> list[Body]:
    bodies: list[Body] = []
    removed_to = 0
    for number, (what, *values) in enumerate(operations):
        if what in ("commit", "as of"):
            group, topics = values
            as_of = b""
            if what == "as of":
                # Written before the change, and after the last removal, which removes all before
                # it.
                end = sum(ENVELOPE_SIZE + len(body) for _, body in bodies)
                as_of = position_key((removed_to + end) // 2)
            held_commits = [
                Held(
                    group,
                    topic_id(topic),
                    {
                        queue_id: as_of
                        + pack_record(Commit(topic_id(topic), queue_id, offset), number)
                        for queue_id, offset in queues.items()
                    },
                )
                for topic, queues in topics.items()
            ]
            how = ProgressRecordKind.AS_OF if as_of else ProgressRecordKind.COMMIT
            bodies += [(PROGRESS_TOPIC, body) for body in encode_commits(held_commits, how)]
        elif what == "deletion":
            ids = [topic_id(topic) for topic in sorted(values[0])]
            bodies += [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.DELETE, ids)]
        else:
            group, topic, queue_ids = (*values, None, None)[:3]
            removed = Removed(group, None if topic is None else topic_id(topic), queue_ids)
            bodies += [(PROGRESS_TOPIC, body) for body in encode_removals([removed])]
        if what not in ("commit", "as of"):
            removed_to = sum(ENVELOPE_SIZE + len(body) for _, body in bodies)
    return bodies


def _view_progress(progress: Progress) -> Mapping[Key, object]:
    items: dict[Key, bytes] = {}
    for key, record in progress.items():
        assert key not in items, "a key has one record"
        items[key] = record
    groups = {group: set(progress.fetch_group(group)) for group in progress.groups()}
    for group, topic, queue_id in items:
        assert progress.fetch(group, topic, queue_id) is not None
        assert group in set(progress.groups_of(topic))
    assert sum(map(len, groups.values())) == len(items), "every index leads to the same records"
    return items


# Epochs: one after the other.


def _epoch_changes(count: int) -> list[Body]:
    epochs = Epochs()
    bodies = []
    for position in range(count):
        bodies.append((EPOCH_TOPIC, epochs.next_change()))
        epochs.apply(change_at(position, *bodies[-1]))
    return bodies


# Half messages: prepared, checked, decided; offsets only repeat after the log was truncated.

_HALF_OPERATIONS = st.one_of(
    st.tuples(st.just("prepare"), st.integers(0, 5)),
    st.tuples(st.just("check"), st.integers(0, 5)),
    st.tuples(st.just("decide"), st.integers(0, 5)),
)


def _half_changes(operations: Sequence[tuple[str, int]]) -> list[Body]:
    bodies: list[Body] = []
    prepared: set[int] = set()
    for what, offset in operations:
        change: halfchanges.Prepared | halfchanges.Checked | halfchanges.Decided
        if what == "prepare":
            if offset in prepared:
                continue
            prepared.add(offset)
            change = halfchanges.Prepared(offset, f"g{offset % 2}", offset * 1000)
        elif what == "check":
            change = halfchanges.Checked(offset)
        else:
            change = halfchanges.Decided(offset, halfchanges.Outcome.COMMITTED)
        bodies.append((HALF_TOPIC, halfchanges.encode(change)))
    return bodies


# Delays: as in practice, an offset is scheduled once and ended once, and deleted topics stay so.

_OFFSETS = st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True)
_DELAY_OPERATIONS = st.one_of(
    st.tuples(st.just("schedule"), _TOPICS, _QUEUES, _OFFSETS),
    st.tuples(
        st.sampled_from(DelayChangeKind).filter(lambda kind: kind > 1), _TOPICS, _QUEUES, _OFFSETS
    ),
    st.tuples(st.just("deletion"), st.sets(_TOPICS, min_size=1)),
)


def _delay_changes(operations: Sequence[tuple[Any, ...]]) -> list[Body]:
    bodies = []
    seen: set[tuple[int, int, int]] = set()
    waiting: set[tuple[int, int, int]] = set()
    gone: set[int] = set()
    for what, *values in operations:
        if what == "deletion":
            ids = [topic_id(topic) for topic in sorted(values[0])]
            bodies += [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.DELETE, ids)]
            gone |= values[0]
            continue
        topic, queue_id, offsets = values
        items = {(topic, queue_id, offset) for offset in offsets}
        items = (
            (items - seen if what == "schedule" else items & waiting)
            if topic not in gone
            else set()
        )
        offsets = sorted(item[2] for item in items)
        if what == "schedule":
            seen |= items
            waiting |= items
        else:
            waiting -= items
        if not offsets:
            continue
        if what == "schedule":
            waits = [
                (offset, due_after(0, offset * 1_000) if offset % 2 else offset * 1_000)
                for offset in offsets
            ]
            parts = encode_schedule(topic_id(topic), queue_id, waits)
            bodies += [(DELAY_TOPIC, body) for body in parts]
        else:
            ended = Ended(topic_id(topic), queue_id, offsets)
            bodies.append((DELAY_TOPIC, encode_ended(what, [ended])))
    return bodies


def _make_delay() -> Delay:
    journal, clock = MemoryJournal(), SteadyClock(ManualClock())
    directory = MemoryDisk().root()
    return Delay(journal, Topics(journal), directory, clock, file_units=8, slice_units=2)


def _view_delay(delay: Delay) -> Mapping[Any, object]:
    items = {waiting[:3]: waiting.due_ms for waiting in delay.all()}
    assert len(items) == delay.waiting_count == sum(delay.counts().values())
    assert all(delay.is_waiting(*key) for key in items)
    return items


# Held entries: an entry is held once, decided once by its owner, and scheduled in steps.

_HELD_OPERATIONS = st.one_of(
    st.tuples(st.just("hold"), _TOPICS, _QUEUES, st.integers(-1, 2)),
    st.tuples(st.sampled_from(("release", "drop")), _TOPICS, _QUEUES, st.integers(0, 2)),
    st.tuples(st.just("schedule"), st.booleans()),
    st.tuples(st.just("deletion"), st.sets(_TOPICS, min_size=1)),
)


def _held_changes(operations: Sequence[tuple[Any, ...]]) -> list[Body]:
    bodies: list[Body] = []
    model: dict[tuple[int, int, int], list[int]] = {}
    gone: set[int] = set()
    for number, (what, *values) in enumerate(operations):
        if what == "deletion":
            ids = [topic_id(topic) for topic in sorted(values[0])]
            bodies += [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.DELETE, ids)]
            gone |= values[0]
            model = {key: item for key, item in model.items() if key[0] not in gone}
            continue
        change: delayheld.Hold | delayheld.Decide | delayheld.Scheduled
        if what == "schedule":
            ready = [(key, item) for key, item in model.items() if item[0] == delayheld.NO_OWNER]
            if not ready:
                continue
            key, item = ready[0]
            item[1] += 1
            change = delayheld.Scheduled(topic_id(key[0]), *key[1:], item[1], values[0])
            if values[0]:
                del model[key]
            bodies.append(
                (HELD_TOPIC, delayheld.encode(delayheld.HeldChangeKind.SCHEDULED, change))
            )
            continue
        topic, queue_id, owner = values
        if topic in gone:
            continue
        if what == "hold":
            base = number * 10
            model[topic, queue_id, base] = [owner, 0]
            from_ms = number if owner == delayheld.NO_OWNER else delayheld.UNDECIDED
            change = delayheld.Hold(topic_id(topic), queue_id, base, base + 10, owner, from_ms)
            bodies.append((HELD_TOPIC, delayheld.encode(delayheld.HeldChangeKind.HOLD, change)))
            continue
        kind = (
            delayheld.HeldChangeKind.RELEASE if what == "release" else delayheld.HeldChangeKind.DROP
        )
        change = delayheld.Decide(topic_id(topic), queue_id, owner, number)
        bodies.append((HELD_TOPIC, delayheld.encode(kind, change)))
        for key in [k for k, item in model.items() if k[:2] == (topic, queue_id)]:
            if model[key][0] == owner:
                if what == "release":
                    model[key][0] = delayheld.NO_OWNER
                else:
                    del model[key]
    return bodies


def _view_held(held: HeldEntries) -> Mapping[Any, object]:
    items = {(item.key, item.base): item for item in held.all()}
    assert len(items) == len(held)
    ready = held.next_ready()
    assert (ready is None) is all(item.owner != delayheld.NO_OWNER for item in items.values())
    return items


# Empty offsets: the scheduled ones, together with the topics that the fold uses.


class EmptyBesideTopics:
    """The fold after that of topics, as in a server; slices of topics start with T."""

    name = "empty offsets"
    topics = frozenset((DELAY_TOPIC, TOPICS_TOPIC))

    def __init__(self) -> None:
        self.known = Topics(MemoryJournal(), slice_cost=1)
        self.empty = EmptyOffsets(self.known, slice_chunks=1)

    def apply(self, change: Change) -> None:
        (self.known if change.topic == TOPICS_TOPIC else self.empty).apply(change)

    def snapshot(self) -> Iterator[bytes]:
        yield from (b"T" + piece for piece in self.known.snapshot())
        yield from self.empty.snapshot()

    def restore(self, slices: Iterable[bytes]) -> None:
        pieces = list(slices)
        self.known.restore([piece[1:] for piece in pieces if piece[:1] == b"T"])
        self.empty.restore([piece for piece in pieces if piece[:1] != b"T"])

    def clear(self) -> None:
        self.known.clear()
        self.empty.clear()


_EMPTY_OFFSETS = (0, 1, 7, 4_095, 4_096, 9_000, 20_000)
_EMPTY_OPERATIONS = st.one_of(
    st.tuples(
        st.just("schedule"),
        _TOPICS,
        _QUEUES,
        st.lists(st.sampled_from(_EMPTY_OFFSETS), min_size=1, unique=True),
    ),
    st.tuples(st.just("start"), _TOPICS, _QUEUES, st.sampled_from((1, 4_096, 4_097, 9_001))),
    st.tuples(st.just("end"), _TOPICS, _QUEUES, st.sampled_from(_EMPTY_OFFSETS)),
    st.tuples(st.just("deletion"), _TOPICS),
)


def _empty_changes(operations: Sequence[tuple[Any, ...]]) -> list[Body]:
    names = [Created(f"t{life}", topic_id(life), 4, 6, False, {}) for life in range(3)]
    bodies = [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.CREATE, names)]
    for what, topic, *values in operations:
        if what == "schedule":
            queue_id, offsets = values
            parts = encode_schedule(topic_id(topic), queue_id, [(o, 1) for o in sorted(offsets)])
            bodies += [(DELAY_TOPIC, body) for body in parts]
        elif what == "end":
            ended = Ended(topic_id(topic), values[0], [values[1]])
            bodies.append((DELAY_TOPIC, encode_ended(DelayChangeKind.DELIVERED, [ended])))
        elif what == "start":
            starts = LogStarts(topic_id(topic), {values[0]: values[1]})
            bodies += [
                (TOPICS_TOPIC, body) for body in encode(TopicChangeKind.LOG_STARTS, [starts])
            ]
        else:
            bodies += [
                (TOPICS_TOPIC, body) for body in encode(TopicChangeKind.DELETE, [topic_id(topic)])
            ]
    return bodies


def _view_empty(fold: EmptyBesideTopics) -> Mapping[Any, object]:
    """The offsets that count: those before a partition's start are never read."""
    found: dict[Any, object] = {}
    for topic in fold.known:
        for queue_id in range(4):
            offsets = [o for o in _EMPTY_OFFSETS if o >= topic.log_start(queue_id)]
            here = [o for o in offsets if fold.empty.count(topic.id, queue_id, o, o + 1)]
            found.update(dict.fromkeys(((topic.id, queue_id, o) for o in here), True))
            total = fold.empty.count(topic.id, queue_id, topic.log_start(queue_id), 1 << 40)
            assert total == len(here)
    return found


# Messages in flight, beside the topics that the fold asks and listens to.


class InFlightBesideTopics:
    """The fold behind the one of topics, as a server has them; slices of topics begin with T."""

    def __init__(self, make: type[MessagesInFlight | ShareState] = MessagesInFlight) -> None:
        self.known = Topics(MemoryJournal(), slice_cost=1)
        self.fold: MessagesInFlight | ShareState = make(self.known, slice_cost=1)
        self.name = self.fold.name
        self.topics = frozenset((*self.fold.topics, TOPICS_TOPIC))

    def apply(self, change: Change) -> None:
        (self.known if change.topic == TOPICS_TOPIC else self.fold).apply(change)

    def snapshot(self) -> Iterator[bytes]:
        yield from (b"T" + piece for piece in self.known.snapshot())
        yield from self.fold.snapshot()

    def restore(self, slices: Iterable[bytes]) -> None:
        pieces = list(slices)
        self.known.restore([piece[1:] for piece in pieces if piece[:1] == b"T"])
        self.fold.restore([piece for piece in pieces if piece[:1] != b"T"])

    def clear(self) -> None:
        self.known.clear()
        self.fold.clear()


_OFFSETS = st.lists(st.integers(0, 12), unique=True, max_size=5).map(sorted)
_INFLIGHT_OPERATIONS = st.one_of(
    st.tuples(
        st.just("acquire"), _GROUPS, _TOPICS, _QUEUES, _OFFSETS, st.integers(0, 9), st.booleans()
    ),
    st.tuples(st.just("extend"), _GROUPS, _TOPICS, _QUEUES, _OFFSETS, st.integers(0, 9)),
    st.tuples(st.just("end"), _GROUPS, _TOPICS, _QUEUES, _OFFSETS),
    st.tuples(st.just("reset"), _GROUPS, _TOPICS, _QUEUES, st.integers(0, 12)),
    st.tuples(st.just("drop"), _GROUPS),
    st.tuples(st.just("forget"), _GROUPS, _TOPICS, _QUEUES, st.none()),
    st.tuples(st.just("shift"), _GROUPS, _TOPICS, _QUEUES, st.integers(-9, 9)),
    st.tuples(st.just("deletion"), _TOPICS),
)


def _inflight_changes(
    operations: Sequence[tuple[Any, ...]], where_to: bytes = INFLIGHT_TOPIC
) -> list[Body]:
    names = [Created(f"t{life}", topic_id(life), 4, 6, False, {}) for life in range(3)]
    bodies = [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.CREATE, names)]
    for what, *values in operations:
        change: Any
        if what == "deletion":
            ids = [topic_id(values[0])]
            bodies += [(TOPICS_TOPIC, body) for body in encode(TopicChangeKind.DELETE, ids)]
            continue
        if what == "drop":
            change = inflight.Drop(values[0])
        else:
            group, topic, queue_id, offsets, *rest = values
            where = group, topic_id(topic), queue_id
            if what == "reset":
                change = inflight.Reset(*where, offsets)
            elif what == "forget":
                change = inflight.Forget(*where)
            elif what == "shift":
                change = inflight.Shift(*where, offsets)
            elif what == "acquire":
                runs, end = inflight.runs_of(offsets), max(offsets, default=0) + 1
                change = inflight.Acquire(*where, 0, end, rest[0], rest[1], runs)
            elif what == "extend":
                change = inflight.Extend(*where, rest[0], inflight.runs_of(offsets))
            else:
                reason = inflight.EndReason.ACKNOWLEDGED
                change = inflight.End(*where, reason, inflight.runs_of(offsets))
        bodies.append((where_to, inflight.encode(change)))
    return bodies


def _view_inflight(beside: InFlightBesideTopics) -> Mapping[Any, object]:
    fold = beside.fold
    windows = {window.key: window for window in fold.walk() if window is not None}
    assert len(windows) == len(fold)
    assert sum(map(len, windows.values())) == fold.count
    by_group = {w.key for group in fold.groups() for w in fold.of_group(group)}
    assert by_group == set(windows), "every index leads to the same windows"
    return {key: (window.end, window.position, window.packed()) for key, window in windows.items()}


def _view_halves(halves: HalfMessages) -> Mapping[Any, object]:
    items: dict[Any, object] = {half.offset: half for half in halves.all()}
    outcomes = {("outcome", offset): halves.outcome(offset) for offset in range(-1, 40)}
    return items | {key: outcome for key, outcome in outcomes.items() if outcome is not None}


FOLDS = [
    FoldCase(
        "in flight",
        INFLIGHT_TOPIC,
        InFlightBesideTopics,
        st.lists(_INFLIGHT_OPERATIONS, max_size=30).map(_inflight_changes),
        _view_inflight,
    ),
    FoldCase(
        "share state",
        SHARE_TOPIC,
        lambda: InFlightBesideTopics(ShareState),
        st.lists(_INFLIGHT_OPERATIONS, max_size=30).map(
            lambda operations: _inflight_changes(operations, SHARE_TOPIC)
        ),
        _view_inflight,
    ),
    FoldCase(
        "empty offsets",
        DELAY_TOPIC,
        EmptyBesideTopics,
        st.lists(_EMPTY_OPERATIONS, max_size=30).map(_empty_changes),
        _view_empty,
    ),
    FoldCase(
        "halves",
        HALF_TOPIC,
        lambda: HalfMessages(slice_places=1),
        st.lists(_HALF_OPERATIONS, max_size=30).map(_half_changes),
        _view_halves,
    ),
    FoldCase(
        "epochs",
        EPOCH_TOPIC,
        Epochs,
        st.integers(0, 9).map(_epoch_changes),
        lambda epochs: {each.number: each[1:] for each in epochs.all},
    ),
    FoldCase(
        "topics",
        TOPICS_TOPIC,
        lambda: Topics(MemoryJournal(), slice_cost=1),
        st.lists(_TOPIC_OPERATIONS, max_size=30).map(_topic_changes),
        _view_topics,
    ),
    FoldCase(
        "progress",
        PROGRESS_TOPIC,
        lambda: Progress(MemoryJournal(), ManualClock(), slice_cost=1),
        st.lists(_PROGRESS_OPERATIONS, max_size=30).map(_progress_changes),
        _view_progress,
    ),
    FoldCase(
        "delay",
        DELAY_TOPIC,
        _make_delay,
        st.lists(_DELAY_OPERATIONS, max_size=30).map(_delay_changes),
        _view_delay,
    ),
    FoldCase(
        "delay held",
        HELD_TOPIC,
        lambda: HeldEntries(Topics(MemoryJournal()), slice_items=1),
        st.lists(_HELD_OPERATIONS, max_size=30).map(_held_changes),
        _view_held,
    ),
]
