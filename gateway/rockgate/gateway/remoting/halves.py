"""Half messages: taken, ended by their producers, and asked about when those say nothing.

docs/half-messages.md is this module's twin. A decision is one append: the message in its real
queue, and the word that this half message is decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from rockgate.gateway.durability import Durability
from rockgate.gateway.remoting.errors import Refused
from rockgate.gateway.remoting.sending import CLIENT_FLAGS, Incoming, Taken
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    Entry,
    get_property,
    pack_properties,
    parse_properties,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.appending import Appended, Intake
from rockgate.store.commitlog import Draft
from rockgate.store.consumequeue import Queue
from rockgate.store.halfchanges import HALF_TOPIC, Decided, Outcome, Prepared, encode
from rockgate.store.halffold import MESSAGES, Half, HalfMessages
from rockgate.store.store import Store

INSPECTION: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE: Final = "REAL_QID"
PREPARED_MARK: Final = "TRAN_MSG"
GROUP: Final = b"PGROUP"
IMMUNITY: Final = b"CHECK_IMMUNITY_TIME_IN_SECONDS"
IMMUNE_SECONDS_MAX: Final = 366 * 86_400
_TRANSACTION: Final = TRANSACTION_ROLLBACK
log = logging.getLogger(__name__)

Place = Callable[[Queue, Draft], list[Intake]]
"""How a message is appended to its real queue: as it is, or together with its schedule."""


class Lying(NamedTuple):
    """A half message as it lies in the log."""

    entry: Entry
    body: memoryview
    properties: dict[str, str]


class Halves:
    """Takes half messages and carries out what is decided of them."""

    def __init__(self, *, store: Store, halves: HalfMessages, durability: Durability) -> None:
        self._store = store
        self._appender = store.appender
        self.undecided = halves
        self._durability = durability
        self.place: Place = lambda queue, draft: [Intake(queue, draft)]
        self.on_prepared: Callable[[Half], None] = lambda half: None
        """Told of every half message that is taken: somebody watches the time."""
        self.ended_counts = dict.fromkeys(Outcome, 0)

    # Taking

    def prepare(self, incoming: Incoming) -> Taken:
        """Append a half message, which nobody sees; its offset is its name from now on."""
        queue = self._queue()
        header, host = incoming.header, incoming.caller.peer.host
        group = get_property(incoming.properties, GROUP)
        name = header.producer_group if group is None else group.decode("utf-8", "replace")
        real = ((REAL_TOPIC, incoming.topic.name), (REAL_QUEUE, str(incoming.queue.queue_id)))
        draft = Draft(
            queue.topic,
            0,
            0,
            incoming.body,
            incoming.properties + pack_properties(real),
            0,
            header.born_timestamp,
            host.packed,
            header.flag,
            header.sys_flag & CLIENT_FLAGS | TRANSACTION_PREPARED | host.flag,
            header.reconsume_times or 0,
        )
        change = Prepared(queue.next_offset, name, _immunity(incoming.properties))
        appended, prepared = self._appender.group([Intake(queue, draft), _state(encode(change))])
        half = self.undecided.find(appended.offset)
        assert half is not None, "a half message that was appended is known"
        self.on_prepared(half)
        told = appended._replace(queue_id=incoming.queue.queue_id)
        if queue.is_sync or incoming.queue.is_sync:
            return self._durability.after(prepared.end, told)
        return told

    # Ending

    def commit(self, offset: int, group: str) -> Appended | None:
        """Deliver a half message; None if it was decided before."""
        half = self._undecided(offset, group)
        if half is None:
            return None
        lying = self.read(offset)
        queue = self._real_queue(lying)
        decided = _state(encode(Decided(offset, Outcome.COMMITTED)))
        properties = {
            name: value
            for name, value in lying.properties.items()
            if name not in (REAL_TOPIC, REAL_QUEUE, PREPARED_MARK)
        }
        draft = _draft(lying, properties, TRANSACTION_COMMIT)
        intakes = [*self.place(queue, draft), decided]
        done = self._appender.group(intakes)[0]
        self.ended_counts[Outcome.COMMITTED] += 1
        return done

    def roll_back(self, offset: int, group: str) -> bool:
        """Let a half message never be delivered; False if it was decided before."""
        if self._undecided(offset, group) is None:
            return False
        self._append(Decided(offset, Outcome.ROLLED_BACK))
        self.ended_counts[Outcome.ROLLED_BACK] += 1
        return True

    def give_up(self, half: Half) -> None:
        """Put a half message that nobody decides where people can look at it."""
        lying = self.read(half.offset)
        topic = self._store.topics.get(INSPECTION)
        queue = self._store.queue(topic, 0)
        decided = _state(encode(Decided(half.offset, Outcome.GIVEN_UP)))
        draft = _draft(lying, lying.properties, 0)
        self._appender.group([Intake(queue, draft), decided], is_upkeep=True)
        self.ended_counts[Outcome.GIVEN_UP] += 1
        log.warning(
            "given up a half message offset=%d group=%s checks=%d",
            half.offset,
            half.group,
            half.check_count,
        )

    def read(self, offset: int) -> Lying:
        """Return an undecided half message from the log."""
        queue = self._queue()
        unit = queue.find(offset)
        assert unit is not None, "an undecided half message is kept"
        view = self._store.bodies.entry(queue, unit).entry
        entry = envelope.read(view)
        body = view[entry.body_at : entry.body_at + entry.body_size]
        return Lying(entry, body, parse_properties(envelope.properties_of(view, entry)))

    def _undecided(self, offset: int, group: str) -> Half | None:
        half = self.undecided.find(offset)
        if half is None:
            return None
        if half.group != group:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"the half message {offset} is of producer group {half.group}, not {group}",
            )
        return half

    def _queue(self) -> Queue:
        topic = self._store.topics.get(MESSAGES.decode())
        return self._store.queue(topic, 0)

    def _real_queue(self, lying: Lying) -> Queue:
        name, queue_id = lying.properties[REAL_TOPIC], int(lying.properties[REAL_QUEUE])
        topic = self._store.topics.find(name)
        if topic is None or queue_id >= topic.queue_count:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic {name} is not there any more")
        return self._store.queue(topic, queue_id)

    def _append(self, change: Decided) -> None:
        self._appender.append_state(HALF_TOPIC, encode(change))


def _state(body: bytes) -> Intake:
    return Intake(None, Draft(HALF_TOPIC, 0, -1, body))


def _draft(lying: Lying, properties: dict[str, str], transaction: int) -> Draft:
    entry = lying.entry
    kept = entry.sys_flag & (CLIENT_FLAGS | envelope.BORN_HOST_V6)
    return Draft(
        b"",
        0,
        0,
        bytes(lying.body),
        pack_properties(properties.items()),
        0,
        entry.born_ms,
        entry.born_host,
        entry.flag,
        kept | transaction,
        entry.reconsume_times,
        entry.position,
    )


def _immunity(properties: bytes) -> int:
    """How old a message must be for its first check, by its own word; -1 if it says nothing."""
    text = get_property(properties, IMMUNITY)
    try:
        seconds = int(text) if text else -1
    except ValueError:
        return -1
    return min(seconds, IMMUNE_SECONDS_MAX) * 1000 if seconds >= 0 else -1
