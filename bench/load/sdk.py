"""Load through `rockgate.sdk` in its own process: the counterpart of bench/load/RocketMQLoad.java.

    python -m bench.load.sdk NAMESRV one|many|batch TOPIC SECONDS NUMBER asyncio|uvloop

Prints one line: messages per second, and the median in microseconds with one in flight.
"""

import asyncio
import statistics
import sys
import time

import uvloop

from rockgate.sdk import Message, Producer

SIZE = 1024


class Load:
    """Sends for a time, and counts after the first third of it."""

    def __init__(self, producer: Producer, topic: str, seconds: float) -> None:
        self._producer = producer
        self._topic = topic
        self._seconds = seconds
        self._begin = time.perf_counter() + seconds / 3
        self._end = self._begin + seconds
        self._count = 0
        self._took_s: list[float] = []

    async def one(self, _: int) -> None:
        """One in flight."""
        now = time.perf_counter()
        while now < self._end:
            await self._producer.send(Message(self._topic, bytes(SIZE)))
            after = time.perf_counter()
            if now >= self._begin:
                self._count += 1
                self._took_s.append(after - now)
            now = after

    async def many(self, number: int) -> None:
        """A number in flight: as many tasks, each sending one message after the other."""
        await asyncio.gather(*(self._keep_sending() for _ in range(number)))

    async def batch(self, number: int) -> None:
        """Batches of a number of messages, one in flight."""
        while (now := time.perf_counter()) < self._end:
            messages = [Message(self._topic, bytes(SIZE)) for _ in range(number)]
            await self._producer.send_batch(messages)
            if now >= self._begin:
                self._count += number

    async def _keep_sending(self) -> None:
        while time.perf_counter() < self._end:
            await self._producer.send(Message(self._topic, bytes(SIZE)))
            if self._begin <= time.perf_counter() < self._end:
                self._count += 1

    def tell(self) -> None:
        """Print the results."""
        median_s = statistics.median(self._took_s) if self._took_s else 0.0
        print(f"@@ {self._count / self._seconds:.1f} {median_s * 1e6:.1f}")


async def main(namesrv: str, mode: str, topic: str, seconds: str, number: str) -> None:
    """Warm up, send, and print the results."""
    async with Producer(namesrv, group="python-load", timeout_s=30) as producer:
        await producer.send(Message(topic, bytes(SIZE)))
        load = Load(producer, topic, float(seconds))
        await {"one": load.one, "many": load.many, "batch": load.batch}[mode](int(number))
        load.tell()


if __name__ == "__main__":
    *words, loop = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        runner.run(main(*words))
