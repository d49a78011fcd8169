"""The trace of a message: what RocketMQ's clients wrote of its sends and deliveries.

Clients with tracing switched on send what happened to a topic of its own, as ordinary messages
whose keys are the ids of the messages that they are about. A body is text: records that end with
0x02, with fields that end with 0x01, of which later clients write more than earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rockgate.cli.admin.messages import by_key
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.system_topics import TRACE_TOPIC

RECORDS_MAX: Final = 1_000
"""Records of one trace message: a batch of messages has one for each."""
_RECORD: Final = "\x02"
_FIELD: Final = "\x01"
_SENT_KINDS: Final = ("normal", "half", "committed", "delayed", "ordered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One thing that happened to a message."""

    what: str
    at_ms: int = -1
    group: str = ""
    host: str = ""
    """Of the client that wrote it, or of the broker that it sent to."""
    cost_ms: int = -1
    is_success: bool | None = None
    tries: int = -1
    detail: str = ""


async def of_message(
    remoting: RemotingConnection, message_id: str, topic: str = TRACE_TOPIC
) -> list[Trace]:
    """Everything that was traced of a message, in the order of time."""
    found: list[Trace] = []
    for each in await by_key(remoting, topic, message_id):
        found += read(each.message.value or b"", message_id)
    return sorted(found, key=lambda trace: (trace.at_ms < 0, trace.at_ms))


def read(body: bytes, message_id: str) -> list[Trace]:
    """The records of a trace message that are about one message; what is none is left out."""
    found: list[Trace] = []
    starts: dict[str, Trace] = {}
    for record in body.decode("utf-8", "replace").split(_RECORD)[:RECORDS_MAX]:
        fields = record.split(_FIELD)
        trace = _trace(fields, message_id, starts)
        if trace is not None:
            found.append(trace)
    return found


def _trace(fields: list[str], message_id: str, starts: dict[str, Trace]) -> Trace | None:
    kind = fields[0]
    if kind == "Pub" and _is(fields, 5, message_id):
        return Trace(
            what="sent",
            at_ms=_number(fields, 1),
            group=_text(fields, 3),
            host=_text(fields, 8),
            cost_ms=_number(fields, 10),
            # Earlier clients wrote no id of the place.
            is_success=_truth(fields[-1] if len(fields) < 14 else fields[13]),
            detail=_sent_kind(_number(fields, 11)),
        )
    if kind == "SubBefore" and _is(fields, 5, message_id):
        trace = Trace(
            what="delivered",
            at_ms=_number(fields, 1),
            group=_text(fields, 3),
            tries=_number(fields, 6),
        )
        starts[_text(fields, 4)] = trace
        return trace
    if kind == "SubAfter" and _is(fields, 2, message_id):
        start = starts.get(_text(fields, 1))
        cost_ms = _number(fields, 3)
        at_ms = _number(fields, 7)
        if at_ms < 0 and start is not None and start.at_ms >= 0 <= cost_ms:
            at_ms = start.at_ms + cost_ms
        return Trace(
            what="consumed",
            at_ms=at_ms,
            group=_text(fields, 8) or (start.group if start is not None else ""),
            cost_ms=cost_ms,
            is_success=_truth(_text(fields, 4)),
        )
    if kind == "EndTransaction" and _is(fields, 5, message_id):
        return Trace(
            what="transaction ended",
            at_ms=_number(fields, 1),
            group=_text(fields, 3),
            host=_text(fields, 8),
            detail=_text(fields, 11).lower().replace("_", " "),
        )
    if kind == "Recall" and _is(fields, 5, message_id):
        return Trace(
            what="recalled",
            at_ms=_number(fields, 1),
            group=_text(fields, 3),
            is_success=_truth(_text(fields, 6)),
        )
    return None


def _is(fields: list[str], index: int, message_id: str) -> bool:
    return len(fields) > index and fields[index] == message_id


def _text(fields: list[str], index: int) -> str:
    found = fields[index] if index < len(fields) else ""
    return "" if found == "null" else found


def _number(fields: list[str], index: int) -> int:
    found = _text(fields, index)
    return int(found) if found.isascii() and found.isdecimal() and len(found) < 19 else -1


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _sent_kind(ordinal: int) -> str:
    return _SENT_KINDS[ordinal] if 0 <= ordinal < len(_SENT_KINDS) else ""
