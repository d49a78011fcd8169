"""Queue locks for orderly consumption.

A lock is renewed by asking again, and is free when that has not happened for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.protocol.remoting.bodies.queues import MessageQueue

LOCKS_MAX = 100_000
TURN_SECONDS = 0.005


class _Lock(NamedTuple):
    client_id: str
    at_ms: int


class Locks:
    """All locks, by group."""

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._count = 0
        self._unseen: list[str] = []
        """Groups whose locks have yet to be checked for expiry."""

    def __len__(self) -> int:
        return self._count

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ms: int
    ) -> list[MessageQueue]:
        """Acquire or renew locks; returns those that the client holds."""
        held = self._groups.setdefault(group, {})
        mine = []
        for queue in queues:
            lock = held.get(queue)
            is_free = lock is None or now_ms - lock.at_ms > self._expiry_ms
            if is_free or (lock is not None and lock.client_id == client_id):
                if lock is None:
                    if self._count >= LOCKS_MAX:
                        continue
                    self._count += 1
                held[queue] = _Lock(client_id, now_ms)
                mine.append(queue)
        return mine

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release locks; those of other clients stay."""
        held = self._groups.get(group, {})
        for queue in queues:
            lock = held.get(queue)
            if lock is not None and lock.client_id == client_id:
                del held[queue]
                self._count -= 1
        if not held:
            self._groups.pop(group, None)

    def is_held(self, group: str, now_ms: int) -> bool:
        """Whether a group has locked any queue."""
        held = self._groups.get(group)
        return held is not None and any(
            now_ms - lock.at_ms <= self._expiry_ms for lock in held.values()
        )

    def expire(self, now_ms: int) -> None:
        """Expire locks that were not renewed, of some groups; the next call covers others."""
        if not self._unseen:
            self._unseen = list(self._groups)
        share = TimeSlice(TURN_SECONDS)
        while self._unseen:
            group = self._unseen.pop()
            held = self._groups.get(group, {})
            for queue in [q for q, lock in held.items() if now_ms - lock.at_ms > self._expiry_ms]:
                del held[queue]
                self._count -= 1
            if not held:
                self._groups.pop(group, None)
            if share.is_over():
                return
