"""A member of a group that consumes in order, as a process of its own, and what it writes down.

    python -m tests.sdk.consumer.ordered_process <name server> <name> <record> <seed>

All members append to one record, a line for each event, so its order is that in which things
happened. `breach` reads it: a message begins when all before it in its queue have ended, and while
no other member runs one of that queue.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.sdk.memorynet import pass_time

from rockgate.sdk import Client, SdkError
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

TOPIC: Final = "ledger"
GROUP: Final = "ordered"
LOCK_S_MAX: Final = 2.0
LOCK_EXPIRY_MS: Final = 10_000
"""Of the server's. The rest is for a machine on which everything may stand still for seconds."""
SETTINGS: Final = ConsumerSettings(
    start=Start.BEGINNING,
    is_orderly=True,
    rebalance_s=1.0,
    persist_s=0.2,
    retry_s=0.2,
    suspend_s=0.05,
    lock_renew_s=0.5,
    lock_s_max=LOCK_S_MAX,
)
SLOW_S: Final = 0.5
RESTART_S: Final = 0.2


class Record:
    """The file that all processes append to."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *words: object) -> None:
        """One line, whole: appends of a few bytes are not torn."""
        os.write(self._file, f"{' '.join(map(str, words))} {time.monotonic()}\n".encode())

    def close(self) -> None:
        """No more lines."""
        os.close(self._file)


@dataclass(slots=True)
class _Seen:
    """One queue."""

    ended: set[int] = field(default_factory=set)
    next_offset: int = 0
    running: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By member what it runs, and since when."""


def breach(lines: Iterable[str]) -> str | None:
    """What went against the order, if anything did."""
    queues: defaultdict[str, _Seen] = defaultdict(_Seen)
    server_killed_s = float("-inf")
    for line in lines:
        kind, *words = line.split()
        at_s = float(words.pop())
        if kind == "server":
            server_killed_s = at_s
        elif kind == "killed":
            for seen in queues.values():
                seen.running.pop(words[0], None)
        else:
            member, queue, offset = words[0], words[1], int(words[2])
            seen = queues[queue]
            if kind == "begin":
                if offset > seen.next_offset:
                    return f"{line.strip()}: {seen.next_offset} has not ended"
                for other, (_, since_s) in seen.running.items():
                    # A server that was killed has forgotten whose the lock was.
                    may_overlap = since_s <= server_killed_s + LOCK_S_MAX
                    if other == member or not may_overlap:
                        return f"{line.strip()}: {other} runs one since {since_s}"
                seen.running[member] = (offset, at_s)
            else:
                seen.running.pop(member, None)
                if kind == "end":
                    seen.ended.add(offset)
                    while seen.next_offset in seen.ended:
                        seen.next_offset += 1
    return None


def ended(lines: Iterable[str]) -> set[str]:
    """The bodies of what was consumed."""
    return {line.split()[4] for line in lines if line.startswith("end ")}


async def main(name_server: str, name: str, path: str, seed: str) -> None:
    """Consume until killed, or asked to stop."""
    record, random = Record(path), Random(seed)
    while True:
        client = Client(name_server, instance=name)
        consumer = Consumer(client=client, group=GROUP, settings=SETTINGS)

        @consumer.on(TOPIC)
        async def listen(message: Received) -> None:
            where = name, message.queue.id, message.offset
            record.write("begin", *where)
            fate = random.random()
            if fate < 0.03:
                await pass_time(random.uniform(0.0, SLOW_S))
            elif fate < 0.06:
                record.write("failed", *where)
                raise ZeroDivisionError
            else:
                await asyncio.sleep(0)
            record.write("end", *where, message.body.decode())

        await client.open()
        try:
            await consumer.run()
            return
        except SdkError:
            # The server is away: as a supervisor would, start once more.
            await pass_time(RESTART_S)
        finally:
            await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
