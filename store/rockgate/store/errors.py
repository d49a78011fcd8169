"""Errors of the store.

StoreError
├── StoreFull           no space on disk
├── StoreBusy           the disk is slow: an append would have to wait
├── DiskFailed          an fsync failed: the store is read-only until a restart
├── StoreClosed         the store is stopped or stopping
├── StoreReadOnly       no epoch has begun: another process may write this log
├── StoreLocked         another process uses this data directory
├── StoreCorrupt        flushed bytes are damaged: file, position, reason
├── SettingChanged      a setting that is fixed for a data directory has changed
├── FormatTooNew        written by a later release, in an unknown format
├── FlushTimeout        appended, but not flushed in time
├── EntryTooLarge       an entry exceeds the segment size or a limit of the format
├── UnknownTopic        no topic of that name or id
├── TopicExists         the name is in use
├── UnknownQueue        the topic has no such queue
├── InvalidTopic        an invalid name or setting of a topic
├── InvalidGroup        an invalid group name
└── OffsetOutOfRange    an offset outside a queue's range

CannotRepair            for tools only: the log cannot be truncated there

No error has a protocol's code: the gateway maps classes to codes in one table per protocol.
"""

from __future__ import annotations


class StoreError(Exception):
    """Anything that the store rejects or cannot do."""


class CannotRepair(Exception):
    """The log cannot be truncated at that position; nothing was changed."""

    def __init__(self, reason: str, instead: int | None = None) -> None:
        super().__init__(reason)
        self.instead = instead
        """A lower position at which it may be possible."""


class StoreFull(StoreError):
    """There is no space on disk."""


class StoreBusy(StoreError):
    """An append would have to wait for the disk; the same may succeed a little later."""


class DiskFailed(StoreError):
    """An fsync failed; unflushed entries may be lost, and appends are rejected."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(
            f"Failed to fsync {path}: {error.strerror or error}. The server is read-only until "
            "it is restarted; check the disk first."
        )
        self.path = path
        self.error = error


class StoreClosed(StoreError):
    """The store is stopped, or stopping."""


class StoreReadOnly(StoreError):
    """The store has not begun an epoch: it can be read, but not written."""


class StoreLocked(StoreError):
    """Another process uses this data directory."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(
            f"Data directory {path} is in use by process {owner}. Stop it, or set another "
            "--data-dir."
        )
        self.path = path
        self.owner = owner


class StoreCorrupt(StoreError):
    """Flushed bytes are damaged; starting would lose data silently."""

    def __init__(self, file: str, position: int, reason: str) -> None:
        super().__init__(f"{file} is damaged at position {position}: {reason.rstrip('.')}.")
        self.file = file
        self.position = position
        self.reason = reason


class SettingChanged(StoreError):
    """A data directory was created with another value of a setting that cannot change."""

    def __init__(self, setting: str, *, made_with: int, now: int, where: str) -> None:
        name = setting.rpartition(".")[2]
        super().__init__(
            f"The log in {where} was created with {name}={made_with}, but the setting is {now}. "
            f"A data directory never changes its {name}: set {setting} to {made_with}, or use "
            "another data directory."
        )
        self.setting = setting
        self.made_with = made_with


class FormatTooNew(StoreError):
    """The bytes are valid, but written by a later release in a format unknown to this one."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what} {found}. Use the release that wrote it, or a later one.")
        self.what = what
        self.found = found


class FlushTimeout(StoreError):
    """The entry is appended, but was not flushed in time."""

    def __init__(self, position: int) -> None:
        super().__init__(f"Position {position} was not flushed in time; it may still be.")
        self.position = position


class EntryTooLarge(StoreError):
    """The entry exceeds the segment size or a limit of the format."""

    def __init__(self, what: str, size: int, size_max: int) -> None:
        super().__init__(f"{what} is {size:,} bytes; the maximum is {size_max:,}.")
        self.size = size
        self.size_max = size_max


class UnknownTopic(StoreError):
    """No topic has that name or id."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Topic '{topic}' does not exist.")
        self.topic = topic


class TopicExists(StoreError):
    """The name is in use."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Topic '{topic}' already exists.")
        self.topic = topic


class InvalidTopic(StoreError):
    """The name or setting of a topic is invalid."""


class InvalidGroup(StoreError):
    """The name of a group is invalid."""


class UnknownQueue(StoreError):
    """The topic has no such queue."""

    def __init__(self, topic: str, queue_id: int) -> None:
        super().__init__(f"Topic '{topic}' has no queue {queue_id}.")
        self.topic = topic
        self.queue_id = queue_id


class OffsetOutOfRange(StoreError):
    """The offset is outside the queue's range."""

    def __init__(self, offset: int, low: int, high: int) -> None:
        super().__init__(f"Offset {offset} is out of range ({low} to {high}).")
        self.offset = offset
        self.low = low
        self.high = high
