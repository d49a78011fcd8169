"""A topic, and its snapshot format.

docs/internals/state.md specifies it. A slice is a format version and a msgpack array of the topics'
version, topics, and log starts. Log starts are separate items, because a topic may have a hundred
thousand queues and a slice is a millisecond of work; they may be newer than their topic, since the
highest offset wins in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.policy import DEFAULT_POLICY
from rockgate.store.state.fold import check_format
from rockgate.store.state.topicchanges import READ, WRITE, Created, LogStarts

SLICE_FORMAT: Final = 1
_STARTS_PER_PIECE: Final = 2_048


class Topic:
    """A topic. Only the fold changes it; whoever holds it sees the changes."""

    __slots__ = (
        "config",
        "created_position",
        "encoded",
        "id",
        "is_internal",
        "is_readable",
        "is_writable",
        "log_starts",
        "name",
        "permission",
        "place",
        "policy",
        "position",
        "queue_count",
        "read_queues",
        "write_queues",
    )

    def __init__(self, created: Created, position: int) -> None:
        self.name = created.name
        self.encoded = created.name.encode()
        """The name, encoded as in log entries."""
        self.id = created.topic_id
        self.created_position = position
        self.position = position
        """Position of its last change; log starts do not count."""
        self.queue_count = created.queue_count
        """The highest number of queues it ever had: queue ids are below this."""
        self.read_queues = created.queue_count
        self.write_queues = created.queue_count
        self.permit(created.permission)
        self.is_internal = created.is_internal
        self.config: Mapping[str, str] = created.config
        self.policy = DEFAULT_POLICY
        """The store's policy from the config; the fold updates it with the config."""
        self.log_starts: dict[int, int] = {}
        """The first offset of each queue that does not start at 0."""
        self.place = -1

    def permit(self, permission: int) -> None:
        """Set what consumers and producers may do."""
        self.permission = permission
        # Attributes, because every request reads one of them.
        self.is_readable = bool(permission & READ)
        self.is_writable = bool(permission & WRITE)

    def fields(self) -> tuple[object, ...]:
        """Return all fields of the topic, to compare two states."""
        return tuple(getattr(self, name) for name in self.__slots__ if name != "place")

    def log_start(self, queue_id: int) -> int:
        """Return the first offset that a queue still has."""
        return self.log_starts.get(queue_id, 0)


class Saved(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """A topic in a snapshot, without its log starts."""

    created: Created
    created_position: int
    position: int
    read_queues: int
    write_queues: int


class _Slice(msgspec.Struct, array_like=True, frozen=True):
    version: int
    topics: list[Saved]
    log_starts: list[LogStarts]


Piece = Saved | LogStarts

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Slice)


def save(topic: Topic) -> Iterator[tuple[int, Piece]]:
    """Yield a topic in pieces, each with its cost; the topic may change between two."""
    size = len(topic.encoded) + sum(len(k) + len(v) for k, v in topic.config.items())
    created = Created(
        name=topic.name,
        topic_id=topic.id,
        queue_count=topic.queue_count,
        permission=topic.permission,
        is_internal=topic.is_internal,
        config=dict(topic.config),
    )
    yield (
        1 + size // 100,
        Saved(
            created=created,
            created_position=topic.created_position,
            position=topic.position,
            read_queues=topic.read_queues,
            write_queues=topic.write_queues,
        ),
    )
    for offsets in _pieces(topic.log_starts, topic.queue_count):
        yield len(offsets), LogStarts(topic.id, offsets)


def _pieces(offsets: dict[int, int], queue_count: int) -> Iterator[dict[int, int]]:
    if len(offsets) <= _STARTS_PER_PIECE:
        if offsets:
            yield dict(offsets)
        return
    for low in range(0, queue_count, _STARTS_PER_PIECE):
        ids = range(low, low + _STARTS_PER_PIECE)
        yield {queue_id: offsets[queue_id] for queue_id in ids if queue_id in offsets}


def size_of(piece: Piece) -> int:
    """Return the size of a piece in a slice."""
    return len(_encoder.encode(piece))


def pack_slice(version: int, pieces: Sequence[Piece]) -> bytes:
    """Return one slice of a snapshot."""
    topics = [piece for piece in pieces if isinstance(piece, Saved)]
    starts = [piece for piece in pieces if isinstance(piece, LogStarts)]
    return bytes((SLICE_FORMAT,)) + _encoder.encode(_Slice(version, topics, starts))


def unpack_slice(data: bytes) -> tuple[int, Iterator[Topic], Sequence[LogStarts]]:
    """Return the version, the topics and the log starts of a slice."""
    what = "Snapshot of topics"
    check_format(data[0] if data else 0, SLICE_FORMAT, what)
    try:
        found = _decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(what, 0, str(error)) from error
    return found.version, map(_load, found.topics), found.log_starts


def _load(saved: Saved) -> Topic:
    topic = Topic(saved.created, saved.created_position)
    topic.position = saved.position
    topic.read_queues = saved.read_queues
    topic.write_queues = saved.write_queues
    return topic
