"""Errors of the store.

StoreError
├── StoreFull           no room on disk for what was to be appended
├── DiskFailed          an fsync failed: nothing is written any more until a restart
├── StoreClosed         the store is stopped or stopping
├── StoreReadOnly       no epoch of its own has begun: others may write this log, it does not
├── StoreLocked         another process has this data directory
├── StoreCorrupt        bytes that were known to be safe are not: file, position, reason
├── SettingChanged      a setting that is fixed for the life of a data directory is another one now
├── FormatTooNew        written by a later release, in a format this one does not know
├── FlushTimeout        stored, but not known to be on disk within the time given
├── EntryTooLarge       an entry that no segment could hold, or that passes a limit of the format
├── UnknownTopic        no topic of that name or id
├── TopicExists         the name is taken
├── UnknownQueue        the topic has no such queue
├── InvalidTopic        a name or setting that no topic can have
├── InvalidGroup        a name that no group can have
└── OffsetOutOfRange    an offset outside what a queue holds

CannotRepair            a tool's no: the log cannot be ended there; no protocol answers with it

No error carries a protocol's code: the gateway maps kinds to codes in one table per protocol.
"""

from __future__ import annotations


class StoreError(Exception):
    """Anything that the store rejects or cannot do."""


class CannotRepair(Exception):
    """The log cannot be ended at that position; nothing was changed."""

    def __init__(self, reason: str, instead: int | None = None) -> None:
        super().__init__(reason)
        self.instead = instead
        """A lower position at which it might be possible."""


class StoreFull(StoreError):
    """There is no room on disk for what was to be appended."""


class DiskFailed(StoreError):
    """An fsync failed; what was not on disk by then may be lost, and appends are rejected."""

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
    """The store was opened and has begun no epoch: it is read, and appends nothing."""


class StoreLocked(StoreError):
    """Another process has this data directory."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(
            f"Data directory {path} is in use by process {owner}. Stop it, or set another "
            "--data-dir."
        )
        self.path = path
        self.owner = owner


class StoreCorrupt(StoreError):
    """Bytes that were known to be safe are damaged; starting would lose data silently."""

    def __init__(self, file: str, position: int, reason: str) -> None:
        super().__init__(f"{file} is damaged at position {position}: {reason.rstrip('.')}.")
        self.file = file
        self.position = position
        self.reason = reason


class SettingChanged(StoreError):
    """A data directory was made with another value of a setting that cannot change."""

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
    """What was read is whole, but a later release wrote it and this one does not know all of it."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what} {found}. Use the release that wrote it, or a later one.")
        self.what = what
        self.found = found


class FlushTimeout(StoreError):
    """The entry is stored, but its flush did not come back within the time given."""

    def __init__(self, position: int) -> None:
        super().__init__(f"Position {position} was not flushed in time; it may still be.")
        self.position = position


class EntryTooLarge(StoreError):
    """The entry passes a limit of the format or of the segment size."""

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
    """The name is taken."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Topic '{topic}' already exists.")
        self.topic = topic


class InvalidTopic(StoreError):
    """No topic can have that name or setting."""


class InvalidGroup(StoreError):
    """No group can have that name."""


class UnknownQueue(StoreError):
    """The topic has no such queue."""

    def __init__(self, topic: str, queue_id: int) -> None:
        super().__init__(f"Topic '{topic}' has no queue {queue_id}.")
        self.topic = topic
        self.queue_id = queue_id


class OffsetOutOfRange(StoreError):
    """The offset lies outside what the queue holds."""

    def __init__(self, offset: int, low: int, high: int) -> None:
        super().__init__(f"Offset {offset} is out of range ({low} to {high}).")
        self.offset = offset
        self.low = low
        self.high = high
