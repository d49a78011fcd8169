"""The SDK's push consumer in its own process: the counterpart of bench/load/RocketMQPush.java.

    python -m bench.load.push NAMESRV fill TOPIC COUNT SIZE         to be read, over all queues
    python -m bench.load.push NAMESRV consume TOPIC COUNT
    python -m bench.load.push NAMESRV latency TOPIC SECONDS RATE
    python -m bench.load.push NAMESRV cached TOPIC COUNT            bytes of memory for each message

Prints one line: messages per second; p50 and p99 in microseconds; bytes.
"""

import asyncio
import os
import struct
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from bench.measure.procfs import anonymous_bytes
from rockgate.sdk import Consumer, ConsumerSettings, FlowLimits, Message, Producer, Received, Start

BATCH = 32
STAMP = struct.Struct(">qq")
SETTINGS = ConsumerSettings(start=Start.BEGINNING, batch_max=BATCH)
SECONDS_MAX = 120.0


async def fill(name_server: str, topic: str, count: str, size: str) -> list[float]:
    """Send batches of 500, each to the next queue."""
    async with Producer(name_server, group="push", timeout_s=30) as producer:
        for _ in range(0, int(count), 500):
            await producer.send_batch([Message(topic, bytes(int(size))) for _ in range(500)])
    return [float(count)]


async def consume(name_server: str, topic: str, count: str) -> list[float]:
    """Count from the first message on, so that finding queues is not timed."""
    seen, began, is_done = 0, 0.0, asyncio.Event()
    consumer = Consumer(name_server, group=f"push{time.time_ns()}", settings=SETTINGS)

    @consumer.on(topic, batch=BATCH)
    async def listen(messages: Sequence[Received]) -> None:
        nonlocal seen, began
        began = began or time.perf_counter()
        seen += len(messages)
        if seen >= int(count):
            is_done.set()

    async with consumer, asyncio.timeout(SECONDS_MAX):
        await is_done.wait()
        return [seen / (time.perf_counter() - began)]


async def latency(name_server: str, topic: str, seconds: str, rate: str) -> list[float]:
    """Send at a rate for a time, the first third unmeasured."""
    count = int(float(seconds) * int(rate))
    took_s: list[float] = []
    seen, is_done = 0, asyncio.Event()
    consumer = Consumer(name_server, group=f"push{time.time_ns()}", settings=SETTINGS)

    @consumer.on(topic, batch=BATCH)
    async def listen(messages: Sequence[Received]) -> None:
        nonlocal seen
        for message in messages:
            number, sent_ns = STAMP.unpack_from(message.body)
            if not number:
                continue
            if number > count // 3:
                took_s.append((time.perf_counter_ns() - sent_ns) / 1e9)
            seen += 1
        if seen == count:
            is_done.set()

    async with Producer(name_server, group="push") as producer:
        await producer.send(Message(topic, bytes(16)))
        async with consumer, asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as sends:
            began = time.perf_counter()
            for number in range(1, count + 1):
                due = began + number / int(rate)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                body = STAMP.pack(number, time.perf_counter_ns()).ljust(100, b"\0")
                sends.create_task(producer.send(Message(topic, body)))
            await is_done.wait()
    took_s.sort()
    return [took_s[len(took_s) // 2] * 1e6, took_s[len(took_s) * 99 // 100] * 1e6]


async def cached(name_server: str, topic: str, count: str) -> list[float]:
    """Measure the growth of the process while no message is acknowledged."""
    many = FlowLimits(count_max=65_535, size_max=1 << 30, span_max=65_535)  # of each queue
    settings = ConsumerSettings(start=Start.BEGINNING, flow=many)
    before = anonymous_bytes(os.getpid())
    async with (
        Consumer(
            name_server, group=f"push{time.time_ns()}", topics=[topic], settings=settings
        ) as consumer,
        asyncio.timeout(SECONDS_MAX),
    ):
        while consumer.statistics.cached_count < int(count):  # noqa: ASYNC110 # a bound
            await asyncio.sleep(0.1)
        return [(anonymous_bytes(os.getpid()) - before) / int(count)]


MODES: dict[str, Callable[..., Coroutine[Any, Any, list[float]]]] = {
    "fill": fill,
    "consume": consume,
    "latency": latency,
    "cached": cached,
}

if __name__ == "__main__":
    name_server, mode, *words = sys.argv[1:]
    found = asyncio.run(MODES[mode](name_server, *words))
    print("@@", *(f"{number:.1f}" for number in found))
