"""The name server's keys and values, by namespace, in `kvConfig.json` as RocketMQ keeps them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rockgate.gateway.errors import StartError
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.nameserver import KvFile
from rockgate.protocol.remoting.errors import MalformedRequest

FILE_NAME = "kvConfig.json"
TEXT_MAX = 65_536
COUNT_MAX = 10_000


class KeyValues:
    """All of them, in memory and in a file that is written anew at each change."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._table: dict[str, dict[str, str]] = {}
        if self._path.exists():
            try:
                self._table = javajson.decode(
                    self._path.read_bytes(), KvFile, FILE_NAME
                ).config_table
            except (MalformedRequest, OSError) as error:
                raise StartError(f"cannot read {self._path}: {error}") from error

    def get(self, namespace: str, key: str) -> str | None:
        """A value, if there is one."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All values of a namespace, if it has any."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value; ValueError if it is too large."""
        if max(len(namespace), len(key), len(value)) > TEXT_MAX:
            raise ValueError(f"a text of more than {TEXT_MAX} characters")
        if sum(map(len, self._table.values())) >= COUNT_MAX:
            raise ValueError(f"more than {COUNT_MAX} keys")
        self._table.setdefault(namespace, {})[key] = value
        self._save()

    def delete(self, namespace: str, key: str) -> None:
        """Remove a value."""
        values = self._table.get(namespace)
        if values is not None and values.pop(key, None) is not None:
            if not values:
                del self._table[namespace]
            self._save()

    def _save(self) -> None:
        aside = self._path.with_suffix(".tmp")
        aside.parent.mkdir(parents=True, exist_ok=True)
        data = javajson.encode(KvFile(config_table=self._table))
        try:
            with aside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fdatasync(file.fileno())
            aside.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
