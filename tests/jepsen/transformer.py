"""Reads numbers from one topic and writes them to another, exactly once; run as a process.

    python -m tests.jepsen.transformer BOOTSTRAP

Its consumed offsets are committed in the transaction that writes. It is made to be killed, and has
no state outside the log.
"""

from __future__ import annotations

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

SOURCE = "numbers"
TARGET = "copies"
GROUP = "transformer"
PARTITIONS = 2


def main() -> None:
    """Restart after every error, forever."""
    while True:
        try:
            transform(sys.argv[1])
        except (KafkaError, OSError, RuntimeError, AssertionError) as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")


def transform(bootstrap: str) -> None:
    """Copy batch by batch, each in a transaction."""
    partitions = [TopicPartition(SOURCE, index) for index in range(PARTITIONS)]
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id="transformer",
        max_block_ms=5_000,
        request_timeout_ms=5_000,
        linger_ms=0,
    )
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    try:
        producer.init_transactions()
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, consumer.committed(partition) or 0)
        while True:
            found = consumer.poll(timeout_ms=200, max_records=7)
            if not found:
                continue
            producer.begin_transaction()
            offsets = {}
            for partition, records in found.items():
                for record in records:
                    producer.send(TARGET, record.value, partition=partition.partition)
                offsets[partition] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            producer.send_offsets_to_transaction(offsets, GROUP)
            producer.commit_transaction()
    finally:
        producer.close(timeout=0)
        consumer.close(autocommit=False)


if __name__ == "__main__":
    main()
