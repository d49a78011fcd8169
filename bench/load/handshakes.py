"""A storm of TLS handshakes: processes that connect, complete the handshake, and close.

Each process has many handshakes on their way at once, so that the server always has another one to
begin; the client's half of a handshake costs about as much as the server's.
"""

import asyncio
import multiprocessing
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import uvloop

from bench.load.rdkafka import LoadFailed
from bench.peers.answers import Address

AT_ONCE = 64
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0
POLL_SECONDS = 0.02


@contextmanager
def storm(address: Address, ca: Path, processes: int) -> Iterator[Callable[[], int]]:
    """Keep handshaking meanwhile; the value returns how many were completed so far.

    It begins once every process has completed one.
    """
    spawning = multiprocessing.get_context("spawn")
    counts = [spawning.Value("q", 0) for _ in range(processes)]
    started = [
        spawning.Process(target=_run, args=(address, str(ca), count), daemon=True)
        for count in counts
    ]
    for process in started:
        process.start()
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not all(count.value for count in counts):
            if time.monotonic() > deadline:
                raise LoadFailed("no handshakes were completed")
            time.sleep(POLL_SECONDS)
        yield lambda: sum(count.value for count in counts)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.join(STOP_SECONDS_MAX)


def _run(address: Address, ca: str, count: "Synchronized[int]") -> None:
    async def one(context: ssl.SSLContext) -> None:
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(*address, ssl=context)
                count.value += 1
                writer.transport.abort()

    async def all_() -> None:
        context = ssl.create_default_context(cafile=ca)
        await asyncio.gather(*(one(context) for _ in range(AT_ONCE)))

    uvloop.run(all_())
