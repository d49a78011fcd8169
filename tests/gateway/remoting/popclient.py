"""A plain client that pops: over a socket, as Java's does."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.gateway.remoting.client import Client

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.message import Message, decode_all
from rockgate.protocol.remoting.pop import retry_topic


class Taken(NamedTuple):
    """A message with its handle."""

    message: Message
    handle: str
    topic: str
    """The topic that the handle is about."""


class PopClient(Client):
    """One connection of a member of a group."""

    def pop(self, topic: str, group: str = "poppers", **more: Any) -> Command:
        fields = {
            "consumerGroup": group,
            "topic": topic,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 60_000,
            "pollTime": 0,
            "bornTime": 0,
            "initMode": 0,
            "exp": "*",
            "expType": "TAG",
            **more,
        }
        return self.ask(RequestCode.POP_MESSAGE, fields)

    def take(self, topic: str, group: str = "poppers", **more: Any) -> list[Taken]:
        """Pop, and make handles of the answer."""
        answer = self.pop(topic, group, **more)
        if answer.code == ResponseCode.POLLING_TIMEOUT:
            return []
        assert answer.code == ResponseCode.SUCCESS, answer
        return taken(answer, topic, group)

    def ack(self, each: Taken, group: str = "poppers") -> Command:
        return self.ask(RequestCode.ACK_MESSAGE, handle_fields(each, group))

    def extend(self, each: Taken, invisible_ms: int, group: str = "poppers") -> Command:
        fields = {**handle_fields(each, group), "invisibleTime": invisible_ms}
        return self.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)


def taken(answer: Command, topic: str, group: str) -> list[Taken]:
    """What a client makes of the answer to a pop."""
    fields = answer.fields
    starts = dict(part.rsplit(" ", 1) for part in fields["startOffsetInfo"].split(";"))
    found = []
    for message in decode_all(answer.body):
        handle = message.properties.get("POP_CK")
        if handle is None:
            queue = message.queue_id
            times = (fields[name] for name in ("popTime", "invisibleTime", "reviveQid"))
            place = ("0", "broker", str(queue), str(message.queue_offset))
            handle = " ".join((starts[f"0 {queue}"], *times, *place))
        is_retry = handle.split(" ")[4] != "0"
        about = retry_topic(topic, group) if is_retry else topic
        found.append(Taken(message, handle, about))
    return found


def handle_fields(each: Taken, group: str) -> dict[str, object]:
    """The fields by which a request names a delivery."""
    return {
        "consumerGroup": group,
        "topic": each.topic,
        "queueId": each.message.queue_id,
        "extraInfo": each.handle,
        "offset": each.message.queue_offset,
    }
