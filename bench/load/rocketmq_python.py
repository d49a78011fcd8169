"""Apache's own Python client (PyPI: rocketmq-python-client), as a process of its own.

    python bench/load/rocketmq_python.py PROXY push GROUP TOPIC COUNT
    python bench/load/rocketmq_python.py PROXY simple GROUP TOPIC COUNT
    python bench/load/rocketmq_python.py PROXY latency GROUP TOPIC SECONDS RATE

Does what bench/load/push.py does with the SDK, and prints what that prints. It speaks gRPC to
RocketMQ's proxy. It imports nothing of this repository: it may run in another environment.
"""

import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
)

BATCH = 32
INVISIBLE_S = 60
STAMP = struct.Struct(">qq")
SECONDS_MAX = 240.0
WARM = 16
THREADS = 20
"""The default of its push consumer."""


class Counting(MessageListener):  # type: ignore[misc] # it has no types
    """Counts from the first message on, so that finding queues is not timed."""

    def __init__(self, count: int) -> None:
        self._count, self._seen = count, 0
        self._lock = threading.Lock()
        self._began = 0.0
        self.is_done = threading.Event()
        self.rate = 0.0

    def consume(self, message: Any) -> Any:
        """Called in one of its threads."""
        with self._lock:
            self._began = self._began or time.perf_counter()
            self._seen += 1
            if self._seen == self._count:
                self.rate = self._seen / (time.perf_counter() - self._began)
                self.is_done.set()
        return ConsumeResult.SUCCESS


class Timing(MessageListener):  # type: ignore[misc] # it has no types
    """How long messages were under way, without the first third."""

    def __init__(self, count: int) -> None:
        self._count, self._seen = count, 0
        self._lock = threading.Lock()
        self.is_warm = threading.Semaphore(0)
        self.is_done = threading.Event()
        self.took_s: list[float] = []

    def consume(self, message: Any) -> Any:
        """Called in one of its threads."""
        number, sent_ns = STAMP.unpack_from(message.body)
        now_ns = time.perf_counter_ns()
        if not number:
            self.is_warm.release()
            return ConsumeResult.SUCCESS
        with self._lock:
            if number > self._count // 3:
                self.took_s.append((now_ns - sent_ns) / 1e9)
            self._seen += 1
            if self._seen == self._count:
                self.is_done.set()
        return ConsumeResult.SUCCESS


def push(proxy: str, group: str, topic: str, count: str) -> list[float]:
    """Messages a second of its push consumer, whose listener is given one at a time."""
    listener = Counting(int(count))
    consumer = PushConsumer(configured(proxy), group, listener, {topic: FilterExpression()})
    consumer.startup()
    wait(listener.is_done)
    return [listener.rate]


def simple(proxy: str, group: str, topic: str, count: str) -> list[float]:
    """Messages a second of its simple consumer, which acknowledges each; in as many threads."""
    consumer = SimpleConsumer(configured(proxy), group, {topic: FilterExpression()})
    consumer.startup()
    counting = Counting(int(count))

    def work() -> None:
        while not counting.is_done.is_set():
            for message in consumer.receive(BATCH, INVISIBLE_S) or ():
                consumer.ack(message)
                counting.consume(message)

    pool = ThreadPoolExecutor(THREADS)
    for _ in range(THREADS):
        pool.submit(work)
    wait(counting.is_done)
    return [counting.rate]


def latency(proxy: str, group: str, topic: str, seconds: str, rate: str) -> list[float]:
    """From before a send to the listener, in microseconds: p50 and p99."""
    count = int(float(seconds) * int(rate))
    listener = Timing(count)
    consumer = PushConsumer(configured(proxy), group, listener, {topic: FilterExpression()})
    consumer.startup()
    producer = Producer(configured(proxy), (topic,))
    producer.startup()
    for _ in range(WARM):  # over all queues: it finds them some seconds after its start
        producer.send(stamped(topic, 0))
    for _ in range(WARM):
        if not listener.is_warm.acquire(timeout=SECONDS_MAX):
            raise TimeoutError("the consumer did not begin")
    began = time.perf_counter()
    for number in range(1, count + 1):
        time.sleep(max(0.0, began + number / int(rate) - time.perf_counter()))
        producer.send_async(stamped(topic, number))
    wait(listener.is_done)
    took_s = sorted(listener.took_s)
    return [took_s[len(took_s) // 2] * 1e6, took_s[len(took_s) * 99 // 100] * 1e6]


def stamped(topic: str, number: int) -> Any:
    """A message of 100 bytes that says when it was sent."""
    message = Message()
    message.topic = topic
    message.body = STAMP.pack(number, time.perf_counter_ns()).ljust(100, b"\0")
    return message


def configured(proxy: str) -> Any:
    """A client configuration for the proxy, without credentials."""
    return ClientConfiguration(proxy, Credentials())


def wait(is_done: threading.Event) -> None:
    """Until everything came, or too much time has passed."""
    if not is_done.wait(SECONDS_MAX):
        raise TimeoutError(f"not everything came within {SECONDS_MAX:g} s")


MODES: dict[str, Callable[..., list[float]]] = {"push": push, "simple": simple, "latency": latency}

if __name__ == "__main__":
    proxy, mode, *words = sys.argv[1:]
    print("@@", *(f"{number:.1f}" for number in MODES[mode](proxy, *words)), flush=True)
    # Its threads are not daemons, and its shutdown waits for long polls.
    os._exit(0)
