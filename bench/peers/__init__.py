"""Peers: Apache Kafka and Apache RocketMQ on loopback, from their own jars.

    with KafkaPeer() as kafka:
        Producer({"bootstrap.servers": kafka.bootstrap})

A peer is ready when it has responded to a request in its protocol, and it is stopped by the pid
that was started. Its data and logs are in its own directory.
"""

from bench.peers.errors import FetchFailed, NotReady, PeerError, ToolMissing
from bench.peers.kafka import KafkaPeer
from bench.peers.rocketmq import RocketMQPeer

__all__ = [
    "FetchFailed",
    "KafkaPeer",
    "NotReady",
    "PeerError",
    "RocketMQPeer",
    "ToolMissing",
]
