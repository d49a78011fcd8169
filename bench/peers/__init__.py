"""The real thing beside us: Apache Kafka and Apache RocketMQ on loopback, from their own jars.

    with KafkaPeer() as kafka:
        Producer({"bootstrap.servers": kafka.bootstrap})

A peer is ready when it has answered a request on its wire, and it is stopped by the pid that was
started. Its data and logs lie in a directory of its own.
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
