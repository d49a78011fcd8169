"""Single configs of topics, for commands that behave by them."""

from __future__ import annotations

from typing import Final

from rockgate.cli.client.admin.configs import Resource, ResourceType, describe
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unusable
from rockgate.protocol.kafka.errors import ErrorCode

MESSAGE_TYPE: Final = "message.type"
DELAYING_TYPES: Final = ("DELAY", "MIXED")
"""The types of topics in which a record's headers delay it."""
MESSAGE_INDEX: Final = "message.index"


async def value(cluster: Cluster, topic: str, name: str) -> str | None:
    """The value of a config; None where the server knows no such config. Refused if it refuses."""
    resource = Resource(ResourceType.TOPIC, topic)
    found = (await describe(cluster, [resource]))[resource]
    if isinstance(found, Refused):
        raise found
    return next((each.value for each in found if each.name == name), None)


async def value_or_none(cluster: Cluster, topic: str, name: str) -> str | None:
    """The same for who may not be allowed to ask: None then, too."""
    try:
        return await value(cluster, topic, name)
    except ClientError:
        return None


async def check_delays(cluster: Cluster, topic: str) -> None:
    """Unusable if a record would be delivered at once in spite of its headers.

    Not for users who may not read the topic's configs: the records may still be delayed.
    """
    try:
        kind = await value(cluster, topic, MESSAGE_TYPE)
    except Refused as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Unusable(
                f"Topic {topic} does not exist, and would not delay records if it were created now."
                f" Create it with `rockgate topics create {topic} --config {MESSAGE_TYPE}=DELAY`"
            ) from None
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return
        raise
    if kind is None:
        raise Unusable(f"The server of topic {topic} does not delay messages")
    if kind not in DELAYING_TYPES:
        raise Unusable(
            f"Topic {topic} has {MESSAGE_TYPE}={kind} and delivers records at once, whatever their"
            f" headers say. Set it with `rockgate configs set topic {topic} {MESSAGE_TYPE}=MIXED`,"
            " or send as RocketMQ clients do"
        )
