"""The keys of now: fetched at the start, from time to time, and when a token has an unknown one.

Keys that cannot be fetched leave the last good ones in place; that is logged and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from rockgate.gateway.security.oauth.key_source import KeySource, KeysUnavailable
from rockgate.gateway.security.oauth.signing_keys import InvalidKeys, SigningKey, read_keys

AGAIN_MS_MIN: Final = 10_000
"""After this long an unknown key, or a failure, lets the keys be fetched again."""
CANDIDATES_MAX: Final = 4
"""Keys that a token without the id of its key is checked against."""
log = logging.getLogger(__name__)


class SigningKeys:
    """Finds the key of a token. Belongs to the loop; fetches in a thread."""

    def __init__(
        self, source: KeySource, *, refresh_ms: int, monotonic_ms: Callable[[], int]
    ) -> None:
        """A source that has a stamp is read when that changes, others every `refresh_ms`."""
        self._source = source
        self._refresh_ms = refresh_ms
        self._monotonic_ms = monotonic_ms
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="signing-keys")
        self._keys: list[SigningKey] = []
        self._stamp: object = None
        self._fetching: asyncio.Task[None] | None = None
        self._started_ms: int | None = None
        self._has_failed = False
        self.fetched_count = 0
        self.failed_count = 0
        """Fetches that failed."""

    async def fetched(self) -> None:
        """Wait for the fetch that is under way, if there is one."""
        if self._fetching is not None:
            # Shared by all who wait, and not cancelled with the first of them.
            await asyncio.shield(self._fetching)

    def close(self) -> None:
        """Fetch nothing more."""
        if self._fetching is not None:
            self._fetching.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def read_now(self) -> None:
        """Read the keys of a file, before anything is served; KeysUnavailable or InvalidKeys."""
        self._stamp = self._source.stamp()
        self._keys = read_keys(self._source.read())
        self.fetched_count += 1

    def renew(self, now_ms: int = 0) -> None:
        """Fetch the keys if it is time; called on the loop every few seconds."""
        if self._is_due():
            self._fetch()

    async def find(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        """The keys that a token may have been signed by; unknown ones are fetched once."""
        found = self._known(key_id, algorithm)
        if not found and (self._fetching is not None or self._may_fetch()):
            if self._fetching is None:
                self._fetch()
            await self.fetched()
            found = self._known(key_id, algorithm)
        return found[:CANDIDATES_MAX]

    def _known(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        return [
            each
            for each in self._keys
            if (key_id is None or each.id == key_id) and algorithm in each.algorithms
        ]

    def _is_due(self) -> bool:
        if self._fetching is not None:
            return False
        if self._started_ms is not None and self._has_failed:
            return self._may_fetch()
        if self._source.stamp() is not None:
            return self._source.stamp() != self._stamp
        started_ms = self._started_ms
        return started_ms is None or self._monotonic_ms() - started_ms >= self._refresh_ms

    def _may_fetch(self) -> bool:
        started_ms = self._started_ms
        return started_ms is None or self._monotonic_ms() - started_ms >= AGAIN_MS_MIN

    def _fetch(self) -> None:
        self._started_ms = self._monotonic_ms()
        self._fetching = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        loop, stamp = asyncio.get_running_loop(), self._source.stamp()
        try:
            text = await loop.run_in_executor(self._executor, self._source.read)
            self._keys = read_keys(text)
        except (KeysUnavailable, InvalidKeys) as error:
            self.failed_count += 1
            if not self._has_failed:
                log.error("signing keys not renewed source=%s: %s", self._source, error)
            self._has_failed = True
        else:
            self.fetched_count += 1
            self._stamp = stamp
            if self._has_failed or self.fetched_count == 1:
                log.info("signing keys read source=%s keys=%d", self._source, len(self._keys))
            self._has_failed = False
        finally:
            self._fetching = None
