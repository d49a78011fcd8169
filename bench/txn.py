"""What do Kafka transactions cost a producer, on rockgate and on Apache Kafka in the same run?

One librdkafka producer sends 1 KB messages to four partitions, without transactions and in
transactions that are committed every 100 ms. Both kinds of runs take turns on one server, and the
servers take turns too. The bar: transactions reach 0.7 of the throughput without.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from itertools import count
from statistics import median

from bench.load.rdkafka import SECONDS_MAX, Delivery, Load, create_partitions, delete_topic
from bench.measure.results import Bar, Report
from bench.peers.kafka import KafkaPeer
from bench.peers.rockgate import RockgateServer

SIZE = 1_000
SECONDS = 5.0
ROUNDS = 3
PARTITIONS = 4
COMMIT_EVERY = 0.1
CHECK_EVERY = 50
RATIO_MIN = 0.7

_ids = count(1)


def plain(bootstrap: str, topic: str, seconds: float) -> Load:
    """Produce for a time, idempotently, and wait until everything is acknowledged."""
    deadline = time.monotonic() + seconds + SECONDS_MAX
    delivery = Delivery(bootstrap, **{"enable.idempotence": True})
    return _send(delivery, topic, seconds, deadline, lambda: None)


def transactional(bootstrap: str, topic: str, seconds: float) -> Load:
    """Produce for a time in transactions, each committed after a tenth of a second."""
    deadline = time.monotonic() + seconds + SECONDS_MAX
    delivery = Delivery(bootstrap, **{"transactional.id": f"bench-{next(_ids)}"})
    producer = delivery.producer
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    commit_at = time.perf_counter() + COMMIT_EVERY

    def commit_if_due() -> None:
        nonlocal commit_at
        if time.perf_counter() >= commit_at:
            producer.commit_transaction(SECONDS_MAX)
            producer.begin_transaction()
            commit_at = time.perf_counter() + COMMIT_EVERY

    load = _send(delivery, topic, seconds, deadline, commit_if_due)
    producer.commit_transaction(SECONDS_MAX)
    return load


def _send(delivery: Delivery, topic: str, seconds: float, deadline: float, between: object) -> Load:
    assert callable(between)
    value = bytes(SIZE)
    sent = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(CHECK_EVERY):
            delivery.send(topic, value, sent % PARTITIONS, deadline)
            sent += 1
        between()
    delivery.finish(deadline)
    taken = time.perf_counter() - began
    return Load(count=sent, payload_bytes=sent * SIZE, seconds=taken)


def run() -> Report:
    """Measure both servers in turns."""
    report = Report(
        name="txn",
        question="what do Kafka's transactions cost a producer, beside Apache Kafka?",
        peers={},
        notes={"message_bytes": SIZE, "commit_every_ms": COMMIT_EVERY * 1000, "seconds": SECONDS},
    )
    samples: dict[str, dict[str, list[float]]] = {"plain MB/s": {}, "transactional MB/s": {}}
    with ExitStack() as stack:
        ours = stack.enter_context(RockgateServer())
        theirs = stack.enter_context(KafkaPeer())
        report.peers["kafka"] = theirs.version
        servers = {"rockgate": ours.bootstrap, "kafka": theirs.bootstrap}
        for number in range(ROUNDS):
            for name, bootstrap in servers.items():
                topic = create_partitions(bootstrap, PARTITIONS)[0][0]
                work = ((plain, "plain MB/s"), (transactional, "transactional MB/s"))
                for send, case in work if number % 2 else reversed(work):
                    load = send(bootstrap, topic, SECONDS)
                    samples[case].setdefault(name, []).append(load.megabytes_per_second)
                delete_topic(bootstrap, topic)
    report.samples = samples
    for name in servers:
        ratio = median(samples["transactional MB/s"][name]) / median(samples["plain MB/s"][name])
        report.notes[f"{name}, transactional of plain"] = round(ratio, 3)
    report.bars.append(
        Bar(
            name="transactional produce of plain, 1 KB",
            measured=report.notes["rockgate, transactional of plain"],
            at_least=RATIO_MIN,
            unit="of plain",
        )
    )
    return report
