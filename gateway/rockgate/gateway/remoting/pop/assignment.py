"""Allocates queues to members of a group: 400; and whether they pop or pull: 401, 402.

Behaviour
- A group pulls unless it was set to pop. A group that pops shares every queue, or with
  `popShareQueueNum` each member also gets the queues of that many members after it.
- Queues are allocated by the strategies AVG and AVG_BY_CIRCLE, as RocketMQ's brokers do. For
  others, for a topic that does not exist and for a group without members there is no assignment,
  and the client keeps what it has.
- Modes are in the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from rockgate.gateway.remoting.groups.clients import BROADCASTING, Clients
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import check_group, check_topic, group_of
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import (
    POP,
    PULL,
    AssignmentAnswer,
    AssignmentBody,
    MessageQueue,
    QueueAssignment,
    RequestModeBody,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX
from rockgate.store.api.folds import Fold, Journal, KeyedFold

T = TypeVar("T")
Allocate = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
MODES_TOPIC: Final = b"rmq_sys_rockgate_request_modes"
BODY_BYTES_MAX: Final = 16 << 10
MODES_MAX: Final = 10_000
Mode = tuple[str, int]
"""POP or PULL, and with how many members queues are shared."""


class RequestModes:
    """Whether groups pop or pull, by topic and group, in RocketMQ's form."""

    def __init__(self, journal: Journal) -> None:
        self._modes: KeyedFold[tuple[str, str], Mode] = KeyedFold(
            journal,
            name="request modes",
            topic=MODES_TOPIC,
            key=tuple[str, str],
            value=tuple[str, int],
        )

    @property
    def fold(self) -> Fold:
        """The fold."""
        return self._modes

    def of(self, topic: str, group: str) -> Mode:
        """Return the mode of a group in a topic; a retry topic is always pulled."""
        return self._modes.find((topic, group)) or (PULL, 0)

    def set(self, topic: str, group: str, mode: Mode) -> None:
        """Set the mode of a group in a topic; it is in the log when this returns."""
        if len(self._modes) >= MODES_MAX and self._modes.find((topic, group)) is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"{MODES_MAX:,} request modes are set; that is the maximum.",
            )
        self._modes.put({(topic, group): mode})

    def all(self) -> list[RequestModeBody]:
        """Return all that were set."""
        return [
            RequestModeBody(topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=share)
            for (topic, group), (mode, share) in self._modes.items()
        ]


class AssignmentRequests:
    """Processors of assignments and modes."""

    def __init__(
        self,
        *,
        modes: RequestModes,
        topics: TopicRegistry,
        clients: Clients,
        durability: Durability,
        broker_name: str,
    ) -> None:
        self._modes = modes
        self._topics = topics
        self._clients = clients
        self._durability = durability
        self._broker_name = broker_name

    def query(self, command: Command, caller: Caller) -> Reply:
        """400: the queues of one member."""
        asked = _read(command, AssignmentBody, "QUERY_ASSIGNMENT")
        check_group(asked.consumer_group)
        mode, share = self._modes.of(asked.topic, asked.consumer_group)
        queues = self._allocated(asked, mode, share)
        answer = AssignmentAnswer(
            message_queue_assignments=None
            if queues is None
            else [QueueAssignment(message_queue=queue, mode=mode) for queue in queues]
        )
        return Command(ResponseCode.SUCCESS, body=javajson.encode(answer))

    def _allocated(self, asked: AssignmentBody, mode: str, share: int) -> list[MessageQueue] | None:
        """Return the queues of a member; None if they cannot be determined."""
        topic = self._topics.find(asked.topic)
        if topic is None:
            return None
        queues = [self._queue(asked.topic, each) for each in range(topic.read_queues)]
        if asked.message_model == BROADCASTING:
            return queues
        group = self._clients.consumer_group(group_of(asked.consumer_group))
        allocate = STRATEGIES.get(asked.strategy_name or "")
        if group is None or allocate is None:
            return None
        members = sorted(group.client_ids)
        if mode == POP:
            return self._shared(asked, queues, members, share, allocate)
        return allocate(asked.client_id, queues, members)

    def _shared(
        self,
        asked: AssignmentBody,
        queues: list[MessageQueue],
        members: list[str],
        share: int,
        allocate: Allocate,
    ) -> list[MessageQueue]:
        """Return what a member pops: any queue of the broker, or some that it shares."""
        if share <= 0 or share >= len(members) - 1:
            return [self._queue(asked.topic, -1)]
        if asked.client_id not in members:
            return []
        index = members.index(asked.client_id)
        if len(members) > len(queues):
            return [queues[index % len(queues)]]
        mine: dict[MessageQueue, None] = {}
        for step in range(share + 1):
            member = members[(index + step) % len(members)]
            mine.update(dict.fromkeys(allocate(member, queues, members)))
        return list(mine)

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(broker_name=self._broker_name, queue_id=queue_id, topic=topic)

    def set_mode(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """401: set whether a group pops or pulls a topic."""
        asked = _read(command, RequestModeBody, "SET_MESSAGE_REQUEST_MODE")
        check_group(asked.consumer_group)
        check_topic(asked.topic)
        if asked.topic.startswith(RETRY_PREFIX):
            raise Refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if asked.mode not in (POP, PULL):
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"mode must be POP or PULL, not {asked.mode[:40]!r}.",
            )
        self._topics.get(asked.topic)
        self._modes.set(asked.topic, asked.consumer_group, (asked.mode, asked.pop_share_queue_num))
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def modes(self, command: Command, caller: Caller) -> Reply:
        """402: the modes that were set."""
        table: dict[str, dict[str, RequestModeBody]] = {}
        for each in self._modes.all():
            table.setdefault(each.topic, {})[each.consumer_group] = each
        return Command(ResponseCode.SUCCESS, body=javajson.encode({"messageRequestModeMap": table}))


def averagely(
    member: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[MessageQueue]:
    """Return a contiguous block; where it does not divide, the first members have one more."""
    if member not in members:
        return []
    index = members.index(member)
    least, more = divmod(len(queues), len(members))
    begin = index * least + min(index, more)
    return list(queues[begin : begin + least + (index < more)])


def averagely_by_circle(
    member: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[MessageQueue]:
    """Return queues dealt in turn to the members."""
    return list(queues[members.index(member) :: len(members)]) if member in members else []


STRATEGIES: Final[dict[str, Allocate]] = {"AVG": averagely, "AVG_BY_CIRCLE": averagely_by_circle}


def _read(command: Command, kind: type[T], name: str) -> T:
    return javajson.decode(command.body, kind, name, size_max=BODY_BYTES_MAX)
