"""The reference server for a kind of sequence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.peers.kafka import KafkaPeer
from bench.peers.rocketmq import RocketMQPeer
from tests.differential.player import Address


class Peer(NamedTuple):
    """A running server."""

    name: str
    address: Address


@contextmanager
def running(listener: str) -> Iterator[Peer]:
    """Apache Kafka, or Apache RocketMQ's broker for RocketMQ's protocol."""
    if listener == "kafka":
        with KafkaPeer() as kafka:
            yield Peer(f"Apache Kafka {kafka.version}", kafka.address)
    else:
        with RocketMQPeer() as rocketmq:
            yield Peer(f"Apache RocketMQ {rocketmq.version}", rocketmq.broker)
