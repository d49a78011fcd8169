"""The name server's key-value configs by namespace, in `kvConfig.json` as RocketMQ stores them.

One writer: changes that come while the file is being written are written together, next. Each is
made, and answered, when the file that has it is on disk; one that could not be written is not made.

A file that cannot be read does not prevent a start: it is renamed, and logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.nameserver import KvFile

FILE_NAME: Final = "kvConfig.json"
TEMPORARY: Final = f"{FILE_NAME}.writing-"
NAME_CHARS_MAX: Final = 255
"""Maximum length of a namespace and of a key."""
VALUE_CHARS_MAX: Final = 65_536
COUNT_MAX: Final = 10_000
CHARS_MAX: Final = 2 << 20
"""Total maximum: the whole file is written at each change."""
FILE_BYTES_MAX: Final = 64 << 20
"""Maximum size of the file at startup."""
log = logging.getLogger(__name__)


class _Change(NamedTuple):
    """A value to set, or to remove if it is None, with its waiter."""

    namespace: str
    key: str
    value: str | None
    done: asyncio.Future[None]


class _Table:
    """Values by namespace and key, with their count and size."""

    def __init__(self, spaces: dict[str, dict[str, str]]) -> None:
        self.spaces = spaces
        self._own: set[str] = set()
        self.count = sum(map(len, spaces.values()))
        self.chars = sum(
            len(space) + len(key) + len(value)
            for space, values in spaces.items()
            for key, value in values.items()
        )

    def copy(self) -> _Table:
        """A copy to change: a namespace is copied when something in it changes."""
        copied = _Table.__new__(_Table)
        copied.spaces, copied._own = dict(self.spaces), set()
        copied.count, copied.chars = self.count, self.chars
        return copied

    def set(self, space: str, key: str, value: str | None) -> bool:
        """Change one value; returns whether anything changed. ValueError beyond the limits."""
        old = self.spaces.get(space, {}).get(key)
        if old == value:
            return False
        chars = 0 if old is None else -len(space) - len(key) - len(old)
        chars += 0 if value is None else len(space) + len(key) + len(value)
        count = (value is not None) - (old is not None)
        if count > 0 and self.count >= COUNT_MAX:
            raise ValueError(f"the maximum of {COUNT_MAX:,} keys has been reached")
        if chars > 0 and self.chars + chars > CHARS_MAX:
            raise ValueError(f"keys and values would exceed {CHARS_MAX:,} characters in total")
        if space not in self._own:
            self._own.add(space)
            self.spaces[space] = dict(self.spaces.get(space, {}))
        if value is None:
            del self.spaces[space][key]
            if not self.spaces[space]:
                del self.spaces[space]
                self._own.discard(space)
        else:
            self.spaces[space][key] = value
        self.count += count
        self.chars += chars
        return True


class KeyValues:
    """All values, as they are on disk. Used from the loop; a thread writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._waiting: list[_Change] = []
        self._writing: asyncio.Task[None] | None = None
        self._table = _Table(self._read())
        self._remove_temporaries()

    # Reading

    def get(self, namespace: str, key: str) -> str | None:
        """A value, if it exists."""
        return self._table.spaces.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All values of a namespace, if it has any."""
        return self._table.spaces.get(namespace)

    # Changing

    def put(self, namespace: str, key: str, value: str) -> asyncio.Future[None]:
        """Set a value; done when it is on disk. ValueError if it is too large, or OSError."""
        if max(len(namespace), len(key)) > NAME_CHARS_MAX:
            raise ValueError(f"namespace or key exceeds {NAME_CHARS_MAX:,} characters")
        if len(value) > VALUE_CHARS_MAX:
            raise ValueError(f"value exceeds {VALUE_CHARS_MAX:,} characters")
        return self._change(namespace, key, value)

    def delete(self, namespace: str, key: str) -> asyncio.Future[None]:
        """Remove a value; done when that is on disk. Removing a missing one succeeds."""
        return self._change(namespace, key, None)

    def _change(self, namespace: str, key: str, value: str | None) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Change(namespace, key, value, future))
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_all())
        return future

    async def _write_all(self) -> None:
        """Write until no change is waiting: all that have arrived meanwhile, at once."""
        try:
            while self._waiting:
                changes, self._waiting = self._waiting, []
                await self._write(changes)
        finally:
            self._writing = None

    async def _write(self, changes: list[_Change]) -> None:
        table, taken, is_changed = self._table.copy(), [], False
        for change in changes:
            try:
                is_changed |= table.set(change.namespace, change.key, change.value)
            except ValueError as refused:
                _end(change, refused)
            else:
                taken.append(change)
        failure: OSError | None = None
        if is_changed:
            try:
                await asyncio.to_thread(self._save, table.spaces)
                self._table = table
            except OSError as error:
                failure = error
        for change in taken:
            _end(change, failure)

    # The file

    def _save(self, spaces: dict[str, dict[str, str]]) -> None:
        """Replace the file atomically and durably; a reader sees the old one or the new one."""
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True)
        data = javajson.encode(KvFile(config_table=spaces))
        descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            with self._path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
            if len(data) > FILE_BYTES_MAX:
                raise ValueError(f"file exceeds {FILE_BYTES_MAX:,} bytes")
            found = msgspec.json.decode(data)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self._quarantine(str(error))
            return {}
        spaces, is_whole = _readable(found)
        if not is_whole:
            self._quarantine("some values are not strings by namespace and key")
        return spaces

    def _quarantine(self, reason: str) -> None:
        """Rename a file that cannot be read, so that it is not overwritten."""
        aside = self._path.with_name(f"{FILE_NAME}.damaged-{time.time_ns() // 1_000_000}")
        try:
            self._path.rename(aside)
        except OSError as error:
            reason, aside = f"{reason}; renaming it failed: {error}", self._path
        log.error(
            "key-value file is damaged, continuing with its readable entries path=%s saved=%s: %s",
            self._path,
            aside,
            reason,
        )

    def _remove_temporaries(self) -> None:
        """Left by writes that a crash interrupted."""
        with contextlib.suppress(OSError):
            for each in self._path.parent.glob(f"{TEMPORARY}*"):
                each.unlink(missing_ok=True)


def _readable(found: Any) -> tuple[dict[str, dict[str, str]], bool]:
    """The strings of a file by namespace and key, and whether it has nothing else."""
    table = found.get("configTable", {}) if isinstance(found, dict) else None
    if not isinstance(table, dict):
        return {}, False
    spaces: dict[str, dict[str, str]] = {}
    is_whole = True
    for space, values in table.items():
        if not isinstance(values, dict):
            is_whole = False
            continue
        texts = {key: value for key, value in values.items() if isinstance(value, str)}
        is_whole = is_whole and len(texts) == len(values)
        if texts:
            spaces[space] = texts
    return spaces, is_whole


def _end(change: _Change, failure: Exception | None) -> None:
    if change.done.done():
        return
    if failure is None:
        change.done.set_result(None)
    else:
        change.done.set_exception(failure)
