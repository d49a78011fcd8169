"""Records of topics: validation, and the bodies of their entries.

docs/internals/state.md specifies it. A body is a format version, a kind, and a msgpack array of
items, so that one entry changes thousands of topics. `encode` splits items into as many bodies as
needed for each to stay within `CHANGE_SIZE_MAX`.

Everything is validated here once, before it is appended; what is read from the log was valid then.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import msgspec

from rockgate.store.errors import EntryTooLarge, InvalidTopic, StoreCorrupt
from rockgate.store.state.fold import CHANGE_SIZE_MAX, Change, check_format

TOPICS_TOPIC: Final = b"rmq_sys_rockgate_topics"
FORMAT: Final = 1

NAME_SIZE_MAX: Final = 32767
QUEUE_COUNT_MAX: Final = 100_000
CONFIG_SIZE_MAX: Final = 1 << 18
PERMISSION_MAX: Final = 15

WRITE: Final = 2
READ: Final = 4

_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f/\ud800-\udfff]")


class TopicChangeKind(IntEnum):
    """The kind of a change. Part of the format on disk: never change a value."""

    CREATE = 1
    DELETE = 2
    QUEUES = 3
    CONFIG = 4
    PERMISSION = 5
    LOG_STARTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be created."""

    name: str
    queue_count: int
    config: Mapping[str, str] = field(default_factory=dict)
    permission: int = READ | WRITE
    is_internal: bool = False

    def check(self) -> None:
        """Raise InvalidTopic unless the topic can be created."""
        check_name(self.name)
        check_queue_count(self.name, self.queue_count)
        check_config(self.name, self.config)
        check_permission(self.name, self.permission)


# The items of each kind. Fields are only added, at the end and with a default.


class Created(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """A topic was created."""

    name: str
    topic_id: bytes
    queue_count: int
    permission: int
    is_internal: bool
    config: dict[str, str]


class QueuesSet(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """The new numbers of read and write queues of a topic."""

    topic_id: bytes
    read_queues: int
    write_queues: int


class ConfigSet(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """The new config of a topic, as a whole."""

    topic_id: bytes
    config: dict[str, str]


class PermissionSet(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """The new permission of a topic."""

    topic_id: bytes
    permission: int


class LogStarts(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """Offsets below which queues hold nothing, by queue id."""

    topic_id: bytes
    offsets: dict[int, int]


_encoder: Final = msgspec.msgpack.Encoder()
_DECODERS: Final[dict[TopicChangeKind, msgspec.msgpack.Decoder[Any]]] = {
    TopicChangeKind.CREATE: msgspec.msgpack.Decoder(list[Created]),
    TopicChangeKind.DELETE: msgspec.msgpack.Decoder(list[bytes]),
    TopicChangeKind.QUEUES: msgspec.msgpack.Decoder(list[QueuesSet]),
    TopicChangeKind.CONFIG: msgspec.msgpack.Decoder(list[ConfigSet]),
    TopicChangeKind.PERMISSION: msgspec.msgpack.Decoder(list[PermissionSet]),
    TopicChangeKind.LOG_STARTS: msgspec.msgpack.Decoder(list[LogStarts]),
}


def encode(kind: TopicChangeKind, items: Sequence[object]) -> Iterator[bytes]:
    """Yield the bodies for these items, each within the size of one change."""
    body = bytes((FORMAT, kind)) + _encoder.encode(items)
    if len(body) <= CHANGE_SIZE_MAX:
        yield body
        return
    if len(items) == 1:
        raise EntryTooLarge(
            f"{kind.name.capitalize()} record of a topic", len(body), CHANGE_SIZE_MAX
        )
    middle = len(items) // 2
    yield from encode(kind, items[:middle])
    yield from encode(kind, items[middle:])


def decode(change: Change) -> tuple[TopicChangeKind, list[Any]]:
    """Return the kind and the items of a change."""
    body = change.body
    what = f"Record of {TOPICS_TOPIC.decode()}"
    check_format(body[0] if body else 0, FORMAT, what, change.position)
    try:
        kind = TopicChangeKind(body[1] if len(body) > 1 else 0)
        return kind, _DECODERS[kind].decode(body[2:])
    except ValueError as error:
        raise StoreCorrupt(what, change.position, str(error)) from error


def deleted_ids(change: Change) -> Sequence[bytes]:
    """Return the ids of the topics that a change deletes, for other folds keyed by topic id."""
    if len(change.body) < 2 or change.body[1] != TopicChangeKind.DELETE:
        return ()
    return decode(change)[1]


# Validation


def check_name(name: str) -> None:
    """Raise InvalidTopic for a name that does not fit into a log entry or a listing.

    Each protocol restricts names further.
    """
    found = _FORBIDDEN.search(name)
    if found is not None:
        raise InvalidTopic(f"Topic name {name[:80]!r} contains {found[0]!r}.")
    size = len(name.encode())
    if not 0 < size <= NAME_SIZE_MAX:
        raise InvalidTopic(f"Topic name is {size:,} bytes; it must have 1 to {NAME_SIZE_MAX:,}.")


def check_queue_count(name: str, count: int, count_min: int = 1) -> None:
    """Raise InvalidTopic for an invalid number of queues."""
    if not count_min <= count <= QUEUE_COUNT_MAX:
        raise InvalidTopic(
            f"Topic {name[:80]!r} cannot have {count:,} queues; the range is "
            f"{count_min} to {QUEUE_COUNT_MAX:,}."
        )


def check_config(name: str, config: Mapping[str, str]) -> None:
    """Raise InvalidTopic for a config that is too large or not valid text."""
    try:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in config.items())
    except UnicodeEncodeError as error:
        raise InvalidTopic(f"Config of topic {name[:80]!r} is not valid UTF-8.") from error
    if size > CONFIG_SIZE_MAX:
        raise InvalidTopic(
            f"Config of topic {name[:80]!r} is {size:,} bytes; the maximum is {CONFIG_SIZE_MAX:,}."
        )


def check_permission(name: str, permission: int) -> None:
    """Raise InvalidTopic for anything but permission bits."""
    if not 0 <= permission <= PERMISSION_MAX:
        raise InvalidTopic(f"Unknown permission {permission} of topic {name[:80]!r}.")


def random_topic_id() -> bytes:
    """Return an id for a new topic.

    Its text form never starts with a dash, which a command line would parse as an option.
    """
    while True:
        topic_id = uuid.uuid4().bytes
        if topic_id[0] >> 2 != 62:
            return topic_id
