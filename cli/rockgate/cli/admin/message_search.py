"""Finding the messages of a topic that have a key, by reading the topic.

The key index answers at once (`messages.by_key`), but of Kafka's records it has only those that
were appended while the topic's config message.index was true. Reading finds everything, on any
Kafka server, and takes as long as the topic is large.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from rockgate.cli.admin import messages
from rockgate.cli.admin.messages import StoredMessage
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.protocol.remoting.properties import KEYS

Progress = Callable[[int, int], None]
"""Is called with how many messages were read, and their size."""


async def by_reading(
    cluster: Cluster,
    topic: str,
    key: bytes,
    *,
    since_ms: int | None,
    limit: int,
    progress: Progress = lambda count, size: None,
) -> list[StoredMessage]:
    """The first messages with a key, ordered by time."""
    known = await messages.limits(cluster, await messages.places_of(cluster, topic))
    if since_ms is None:
        starts = messages.at_offset(known, 0)
    else:
        starts = await messages.at_time(cluster, known, since_ms)
    found: list[StoredMessage] = []
    async with aclosing(messages.read(cluster, starts, known)) as chunks:
        async for chunk in chunks:
            progress(len(chunk), sum(each.size for each in chunk))
            found += [each for each in chunk if has_key(each, key)]
            if len(found) >= limit:
                break
    return sorted(found, key=lambda each: (each.timestamp_ms, each.place, each.offset))[:limit]


def has_key(message: StoredMessage, key: bytes) -> bool:
    """Whether a message has the key, as its only one or among those of a RocketMQ message."""
    if message.key == key:
        return True
    return any(name == KEYS and key in (value or b"").split() for name, value in message.headers)
