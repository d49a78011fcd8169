"""The store in a running server: opened in a thread, ticked by the event loop, closed at shutdown.

The store has no clock and never waits. Here it gets both: results of its threads are posted to the
loop, and one timer calls `tick` periodically, at short intervals while work is in progress.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.topics.policy import queue_policy
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreCorrupt, StoreError
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.keys.entrykeys import RecordKeys, no_keys
from rockgate.store.log.commitlog import NO_HOST
from rockgate.store.store import MakeFolds, Store
from rockgate.store.workers import Post

IDLE_SECONDS = 0.1
BUSY_SECONDS = 0.001
FAILED_SECONDS = 1.0
log = logging.getLogger(__name__)


async def open_store(
    path: Path,
    config: StoreConfig,
    folds: MakeFolds = lambda journal, topics: (),
    record_keys: RecordKeys = no_keys,
    store_host: bytes = NO_HOST,
    *,
    is_standby: bool = False,
) -> Store:
    """Recover and open the log in a thread, so that probes are answered meanwhile.

    StartError gives the reason: damage, another server, a disk that cannot be written.
    """
    given = (path, config, folds, record_keys, store_host)
    return await asyncio.to_thread(new_store, *given, is_standby=is_standby)


def new_store(
    path: Path,
    config: StoreConfig,
    folds: MakeFolds,
    record_keys: RecordKeys,
    store_host: bytes,
    *,
    is_standby: bool = False,
) -> Store:
    """Recover and open the log, in this thread; a standby begins no epoch."""
    try:
        store = Store(
            DiskDirectory(path),
            config,
            SystemClock(),
            folds=folds,
            record_keys=record_keys,
            policy_of=queue_policy,
            store_host=store_host,
        )
        return store if is_standby else store.begin_epoch()
    except (StoreError, ValueError) as error:
        advice = " To find a repair, run `rockgate log check`."
        reason = f"{str(error).rstrip('.')}.{advice if isinstance(error, StoreCorrupt) else ''}"
        raise StartError(f"Cannot open the store in {path}: {reason}") from error
    except OSError as error:
        raise StartError(f"Cannot open the store in {path}: {error.strerror or error}.") from error


def close_store(store: Store) -> None:
    """Flush everything to disk, and log how much was written."""
    store.close()
    log.info("closed end=%d fsyncs=%d", store.log.end, store.flusher.fsync_count)


def posting(loop: asyncio.AbstractEventLoop) -> Post:
    """How the store's threads reach the loop; what they post after its end is dropped.

    The loop's own thread may call this too; it need not wake itself.
    """
    own = threading.get_ident()

    def post(work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):
            if threading.get_ident() == own:
                loop.call_soon(work)
            else:
                loop.call_soon_threadsafe(work)

    return post


class Ticking:
    """Calls a store's `tick` for as long as the server runs. Owned by the app."""

    def __init__(self, tick: Callable[[], bool], clock: Clock) -> None:
        self._tick = tick
        self._clock = clock
        self._timer: Timer = clock.call_later(IDLE_SECONDS, self._step)

    def stop(self) -> None:
        """Stop ticking."""
        self._timer.cancel()

    def _step(self) -> None:
        try:
            seconds = BUSY_SECONDS if self._tick() else IDLE_SECONDS
        except Exception:
            # One failed round must not be the last: a full disk may have free space again.
            log.exception("store tick failed")
            seconds = FAILED_SECONDS
        self._timer = self._clock.call_later(seconds, self._step)
