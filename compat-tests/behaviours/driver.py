"""The interface of clients for the behaviours: one small driver each.

A driver translates calls and never changes behaviour: it has no retry, wait or default of its own.
What a client cannot do is a value of its driver (`codecs`), so that a test that is skipped can say
why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

SECONDS_MAX = 60.0
"""Maximum time for any single response before the test fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to send."""

    value: bytes | None = b"v"
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Place(NamedTuple):
    """Where the server stored a message."""

    partition: int
    offset: int


class Received(NamedTuple):
    """A message that was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Shared(NamedTuple):
    """A message that a member of a share group was given."""

    partition: int
    offset: int
    value: bytes | None
    deliveries: int


class Refused(Exception):
    """The client reports that a message was rejected; `code` is Kafka's error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"error {code}: {text}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The settings of a producer."""

    acks: int = -1
    is_idempotent: bool = False
    codec: str = "none"
    linger_ms: int = 5
    request_bytes_max: int = 4 << 20
    transactional_id: str | None = None
    transaction_timeout_ms: int | None = None
    """The client's default if None; only the Java program supports another."""


class Promise(Protocol):
    """The result of one send."""

    def result(self) -> Place:
        """Wait for it; raises Refused."""
        ...


class Producer(Protocol):
    """Sends."""

    def send(self, topic: str, message: Message) -> Promise: ...

    def flush(self) -> None: ...

    def begin(self) -> None:
        """Begin a transaction; only with a transactional id."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Consumer(Protocol):
    """Reads manually assigned partitions."""

    def assign(self, topic: str, partitions: Sequence[int], offset: int = 0) -> None: ...

    def seek(self, topic: str, partition: int, offset: int) -> None: ...

    def poll(self, seconds: float) -> list[Received]: ...

    def partitions(self, topic: str) -> list[int]: ...

    def beginning(self, topic: str, partition: int) -> int: ...

    def end(self, topic: str, partition: int) -> int: ...

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None: ...

    def close(self) -> None: ...


class Member(Protocol):
    """A consumer that shares a topic with the others of its group; it commits only on request, and
    reads only what is committed."""

    def poll(self, seconds: float) -> list[Received]: ...

    def assignment(self) -> set[int]: ...

    def commit(self) -> None:
        """Commit what has been polled, and wait for the response."""
        ...

    def committed(self, topic: str, partition: int) -> int | None: ...

    def close(self) -> None: ...


class GroupState(NamedTuple):
    """A group as described by the server."""

    state: str
    member_count: int


class Admin(Protocol):
    """Creates, changes and deletes topics; raises Refused."""

    def create(
        self, topic: str, partition_count: int, config: Mapping[str, str] | None = None
    ) -> None: ...

    def grow(self, topic: str, partition_count: int) -> None: ...

    def delete(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def configs(self, topic: str) -> Mapping[str, str]: ...

    def alter(self, topic: str, config: Mapping[str, str]) -> None: ...

    def delete_records(self, topic: str, partition: int, before: int) -> None: ...

    def groups(self) -> set[str]: ...

    def group(self, group: str) -> GroupState: ...

    def group_offsets(self, group: str, topic: str) -> Mapping[int, int]:
        """The committed offsets of a group, by partition."""
        ...

    def delete_group(self, group: str) -> None: ...

    def close(self) -> None: ...


class Driver(Protocol):
    """One client."""

    codecs: tuple[str, ...]
    """The codecs that this client supports, of none, gzip, snappy, lz4 and zstd."""
    why_not: str
    """Why the others are missing."""
    sends_null_headers: bool
    """Whether the value of a header may be null."""
    cannot: Mapping[str, str]
    """The operations of this file that the client lacks, with the reason, by name: `delete_group`,
    `static_member`, …"""

    def producer(self, bootstrap: str, sending: Sending) -> Producer: ...

    def consumer(
        self, bootstrap: str, *, wait_ms_max: int = 500, bytes_max: int = 1 << 20
    ) -> Consumer:
        """A consumer with a maximum number of bytes per partition and fetch."""
        ...

    def admin(self, bootstrap: str) -> Admin: ...

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int | None = None,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> Member:
        """A member; without `session_ms` its session has the client's default, and with `instance`
        it is a static member. `protocol` is `classic` or `consumer`, of a client that has both; a
        topic that begins with ^ is a pattern."""
        ...

    def apart(self) -> DyingDriver:
        """The same client in its own process."""
        ...


class DyingDriver(Driver, Protocol):
    """A client that can be killed."""

    def kill(self) -> None:
        """Kill its process with SIGKILL, so that it leaves no group."""
        ...
