"""Names of topics and groups on RocketMQ's wire.

    store, Kafka     RocketMQ
    orders.paid      orders|paid       RocketMQ's clients refuse a dot, Kafka's refuse a bar
    orders           orders            everything else is the same
    over 127 bytes   hidden            no client of RocketMQ's could name it

The store's names have dots and never bars, so no topic has two names and no two topics have one.
`rockgate.gateway.kafka.request.names` has the other side.
"""

from __future__ import annotations

from typing import Final

NAME_SIZE_MAX: Final = 127


def to_store(name: str) -> str:
    """Return the store's name of a topic or group that a RocketMQ client names."""
    return name.replace("|", ".")


def to_rocketmq(name: str) -> str:
    """Return the name under which RocketMQ clients know a topic or group."""
    return name.replace(".", "|")


def is_visible(name: str) -> bool:
    """Whether a store's topic has a name that RocketMQ clients accept."""
    return len(name.encode()) <= NAME_SIZE_MAX
