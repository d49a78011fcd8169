"""How many offsets of ranges hold nothing to be read, asked at RocketMQ's listener of a rockgate.

Kafka's wire has no question for that: a delayed record leaves an offset behind that stays empty,
and so does the end of a transaction. A topic is named by its id, so that another server than the
one that speaks Kafka's wire has no answer, instead of a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError
from rockgate.cli.client.kafka.view import Place
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.bodies.admin import EmptyCounts, OffsetRange
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.kinds import NoHeader

_AT_ONCE: Final = 1_000


async def count(
    cluster: Cluster, remoting: RemotingConnection, ranges: Mapping[Place, tuple[int, int]]
) -> Mapping[Place, int] | None:
    """The empty offsets of each range, where they are known; None if no server reports them."""
    wanted = {place: each for place, each in ranges.items() if each[0] < each[1]}
    if not wanted:
        return dict.fromkeys(ranges, 0)
    view = await cluster.metadata({topic for topic, _ in wanted})
    asked: list[tuple[Place, OffsetRange]] = []
    for place, (first, end) in wanted.items():
        topic = view.topics.get(place[0])
        if topic is not None and any(topic.topic_id):
            asked.append((place, OffsetRange(topic.topic_id.hex(), place[1], first, end)))
    found: dict[Place, int] = {place: 0 for place in ranges if place not in wanted}
    for at in range(0, len(asked), _AT_ONCE):
        part = asked[at : at + _AT_ONCE]
        body = msgspec.json.encode([each for _, each in part])
        try:
            answer = await remoting.ask(
                RequestCode.COUNT_EMPTY_OFFSETS, NoHeader(), EmptyCounts, body
            )
        except ClientError:
            # It is no rockgate, or its other listener is closed: Kafka's own lag is all there is.
            return None
        counts = zip(part, answer.counts, strict=False)
        found.update((place, number) for (place, _), number in counts if number >= 0)
    return found
