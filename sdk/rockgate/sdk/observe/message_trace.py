"""The message trace: records of what was sent, in RocketMQ's own trace topic and form.

    Pub 1 time 1 region 1 group 1 topic 1 id 1 tag 1 keys 1 broker 1 size 1 ms 1 kind 1 place 1 ok 2
    EndTransaction 1 time 1 region 1 group 1 topic 1 id 1 tag 1 keys 1 broker 1 kind 1 transaction
                   1 state 1 by check 2

(1 and 2 are the bytes between fields and records.) RocketMQ's console and `mqadmin
queryMsgTraceById` find them by the message's id, which is a key of the trace message. Records are
sent after the messages they describe, many in one message; a failure is logged, and does not affect
the application's sends.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk.errors import SdkError
from rockgate.sdk.hooks import Ended, SendHook, Sending, SendKind
from rockgate.sdk.message import Message
from rockgate.sdk.results import Outcome, SendStatus

TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
REGION: Final = "DefaultRegion"
RECORDS_MAX: Final = 2048
"""Records that may wait; further ones are dropped, and counted."""
MESSAGE_SIZE_MAX: Final = 118_000
MESSAGE_RECORDS_MAX: Final = 100
GATHER_S: Final = 0.05
"""How long records are gathered before they are sent."""
SEND_S: Final = 5.0

_KINDS: Final = {SendKind.NORMAL: 0, SendKind.HALF: 1, SendKind.DELAYED: 3}
_COMMITTED_KIND: Final = 2
_STATES: Final = {
    Outcome.COMMIT: "COMMIT_MESSAGE",
    Outcome.ROLLBACK: "ROLLBACK_MESSAGE",
    Outcome.UNKNOWN: "UNKNOW",
}
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one message, and the keys by which it is found."""

    topic: str
    text: str
    keys: tuple[str, ...]


class TraceHook(SendHook):
    """Makes a record of every message that was sent, or was not."""

    def __init__(self, now_ms: Callable[[], int], take: Callable[[Record], None]) -> None:
        self._now_ms = now_ms
        self._take = take

    def before_send(self, sending: Sending) -> None:
        """Record when the send began."""
        sending.notes[self] = self._now_ms()

    def after_send(self, sending: Sending) -> None:
        """One record for each message whose id is known."""
        began_ms = sending.notes[self]
        took_ms = (self._now_ms() - began_ms) // len(sending.messages)
        results = {result.message_id: result for result in sending.results}
        for message, message_id in zip(sending.messages, sending.message_ids, strict=False):
            result = results.get(message_id)
            place = "" if result is None else result.offset_message_id
            is_ok = result is not None and result.status is SendStatus.OK
            self._take(
                record(
                    message.topic,
                    message_id,
                    message.keys,
                    *("Pub", began_ms, (result and result.region) or REGION, sending.group),
                    *(message.topic, message_id, message.tag or "", " ".join(message.keys)),
                    *(_host(place), len(message.body), took_ms, _KINDS[sending.kind], place),
                    "true" if is_ok or (sending.is_oneway and sending.error is None) else "false",
                )
            )

    def after_end(self, ended: Ended) -> None:
        """One record of how it ended."""
        keys = (ended.keys or "").split()
        self._take(
            record(
                ended.topic,
                ended.message_id,
                keys,
                *("EndTransaction", self._now_ms(), REGION, ended.group, ended.topic),
                *(ended.message_id, ended.tag or "", " ".join(keys), ended.store_host),
                *(_COMMITTED_KIND, ended.transaction_id, _STATES[ended.outcome]),
                "true" if ended.is_from_check else "false",
            )
        )


def record(topic: str, message_id: str, keys: Sequence[str], *fields: object) -> Record:
    """The record of one message, of these fields."""
    # A key may hold the byte between fields; the record must not have more of them.
    text = "\x01".join(str(field).replace("\x01", " ") for field in fields) + "\x02"
    return Record(topic, text, (message_id, *keys))


def _host(offset_message_id: str) -> str:
    """The broker's address, of which the id is made."""
    try:
        address, port, _ = parse_offset_message_id(offset_message_id)
    except MalformedContent:
        return ""
    return f"{ipaddress.ip_address(address)}:{port}"


class Tracer:
    """Gathers records and sends them, one message of them at a time."""

    def __init__(self, send: Callable[[Message], Awaitable[object]], topic: str) -> None:
        """`send` sends one message, without telling hooks of it."""
        self._send_message = send
        self._topic = topic
        self._records: list[Record] = []
        self._dropped_count = 0
        self._task: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()

    def take(self, record: Record) -> None:
        """Send this record soon."""
        if len(self._records) >= RECORDS_MAX or self._is_closing.is_set():
            self._dropped_count += 1
            return
        self._records.append(record)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self, timeout_s: float) -> None:
        """Send the remaining records, within the time-out."""
        self._is_closing.set()
        if self._task is None:
            return
        try:
            _, late = await asyncio.wait([self._task], timeout=timeout_s)
        finally:
            self.cancel()
        if late:
            _log.warning(
                "the message trace was not written within %.3g s; some of it is lost", timeout_s
            )

    def cancel(self) -> None:
        """Discard the remaining records."""
        self._is_closing.set()
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        while self._records:
            if not self._is_closing.is_set():
                try:
                    async with asyncio.timeout(GATHER_S):
                        await self._is_closing.wait()
                except TimeoutError:
                    pass
            records, self._records = self._records, []
            for message in _messages(self._topic, records):
                await self._send(message)
            if self._dropped_count:
                _log.warning("%d trace records were dropped", self._dropped_count)
                self._dropped_count = 0
        self._task = None

    async def _send(self, message: Message) -> None:
        try:
            await self._send_message(message)
        except SdkError as failed:
            _log.warning("the message trace was not written: %s", failed)
        except Exception:  # noqa: BLE001 # a hook of the application's may raise anything
            _log.exception("the message trace was not written")


def _messages(topic: str, records: Sequence[Record]) -> list[Message]:
    """As few messages as can hold the records; each is about one topic."""
    by_topic: dict[str, list[Record]] = {}
    for record in records:
        by_topic.setdefault(record.topic, []).append(record)
    made: list[Message] = []
    for each in by_topic.values():
        part: list[Record] = []
        size = 0
        for record in each:
            taken = len(record.text.encode())
            if part and (size + taken > MESSAGE_SIZE_MAX or len(part) == MESSAGE_RECORDS_MAX):
                made.append(_message(topic, part))
                part, size = [], 0
            part.append(record)
            size += taken
        made.append(_message(topic, part))
    return made


def _message(topic: str, part: Sequence[Record]) -> Message:
    keys = dict.fromkeys(key for record in part for key in record.keys)
    return Message(topic, "".join(record.text for record in part).encode(), keys=list(keys))
