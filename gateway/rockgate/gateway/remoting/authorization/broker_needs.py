"""What each request to the broker needs, as RocketMQ 5.5 has it, and more where that is too little.

Behaviour
- PUB is WRITE, SUB is READ, GET and LIST are DESCRIBE, UPDATE is ALTER; CREATE, DELETE as they are.
- A request that returns messages needs READ, and one that names a message by its place in the log
  needs it for the topic where the message is, whatever topic the client states.

Departs from RocketMQ, which serves these to everyone who is authenticated
- Requests about the broker or all topics and groups need the cluster; lists of new topics too.
- 324, 325: a reply needs WRITE on the topic of replies.
- 361 needs what 11 needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from rockgate.gateway.remoting.authorization.needs import (
    ALTER,
    CREATE,
    DELETE,
    DESCRIBE,
    READ,
    WRITE,
    Need,
    Needs,
    all_of,
    cluster,
    group,
    if_given,
    nothing,
    of_cluster,
    of_group,
    of_topic,
    placed,
    topic,
    topic_and_group,
)
from rockgate.gateway.remoting.pop.assignment import BODY_BYTES_MAX as ASSIGNMENT_BYTES_MAX
from rockgate.gateway.remoting.processors.clients import BEAT_BYTES_MAX, CHECK_BYTES_MAX
from rockgate.gateway.remoting.processors.groups import SETTINGS_BYTES_MAX
from rockgate.gateway.remoting.processors.locks import LOCK_BYTES_MAX
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import (
    CheckClientBody,
    HeartbeatBody,
    SubscriptionGroupConfig,
)
from rockgate.protocol.remoting.bodies.queues import AssignmentBody, LockBody, RequestModeBody
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.clients import ConsumeDirectlyHeader
from rockgate.protocol.remoting.headers.query import ViewMessageHeader
from rockgate.protocol.remoting.headers.send import SendBackHeader
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.protocol.remoting.pop import read_batch_ack


class Stored(Protocol):
    """Where messages are that requests name by their places."""

    def topic_at(self, address: int, /) -> str | None:
        """The topic of a message; None if there is none."""

    def target_of(self, half_offset: int, /) -> str | None:
        """The topic that an undecided half message is for; None if it is decided."""


PRODUCING: Final[Mapping[RequestCode, Needs]] = {
    RequestCode.SEND_MESSAGE: topic(WRITE),
    RequestCode.SEND_MESSAGE_V2: topic(WRITE, "b"),
    RequestCode.SEND_BATCH_MESSAGE: topic(WRITE, "b"),
    RequestCode.SEND_REPLY_MESSAGE: topic(WRITE),
    RequestCode.SEND_REPLY_MESSAGE_V2: topic(WRITE, "b"),
    RequestCode.RECALL_MESSAGE: topic(WRITE),
}


def _heartbeat(command: Command) -> Iterator[Need]:
    beat = javajson.decode(command.body, HeartbeatBody, "HEART_BEAT", size_max=BEAT_BYTES_MAX)
    for consumer in beat.consumer_data_set:
        yield of_group(consumer.group_name, READ)
        for each in consumer.subscription_data_set:
            yield of_topic(each.topic, READ)


def _check_client(command: Command) -> Iterable[Need]:
    what = "CHECK_CLIENT_CONFIG"
    asked = javajson.decode(command.body, CheckClientBody, what, size_max=CHECK_BYTES_MAX)
    return of_group(asked.group, READ), of_topic(asked.subscription_data.topic, READ)


def _lock(command: Command) -> Iterator[Need]:
    asked = javajson.decode(command.body, LockBody, "LOCK_BATCH_MQ", size_max=LOCK_BYTES_MAX)
    yield of_group(asked.consumer_group, READ)
    for name in {queue.topic for queue in asked.mq_set}:
        yield of_topic(name, READ)


def _assignment(command: Command) -> Iterable[Need]:
    asked = javajson.decode(
        command.body, AssignmentBody, "QUERY_ASSIGNMENT", size_max=ASSIGNMENT_BYTES_MAX
    )
    return of_group(asked.consumer_group, READ), of_topic(asked.topic, READ)


def _mode(command: Command) -> Iterable[Need]:
    asked = javajson.decode(
        command.body, RequestModeBody, "SET_MESSAGE_REQUEST_MODE", size_max=ASSIGNMENT_BYTES_MAX
    )
    return of_group(asked.consumer_group, ALTER), of_topic(asked.topic, READ)


def _batch_ack(command: Command) -> Iterator[Need]:
    pairs = {(each.consumer_group, each.topic) for each, _ in read_batch_ack(command.body)}
    for group_name, topic_name in pairs:
        yield of_group(group_name, READ)
        yield of_topic(topic_name, READ)


CONSUMING: Final[Mapping[RequestCode, Needs]] = {
    RequestCode.PULL_MESSAGE: topic_and_group(READ, READ),
    RequestCode.LITE_PULL_MESSAGE: topic_and_group(READ, READ),
    RequestCode.QUERY_MESSAGE: topic(READ),
    RequestCode.QUERY_CONSUMER_OFFSET: topic_and_group(DESCRIBE, DESCRIBE),
    RequestCode.UPDATE_CONSUMER_OFFSET: topic_and_group(READ, READ),
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UNREGISTER_CLIENT: if_given(group(READ), "consumerGroup"),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: group(DESCRIBE),
    RequestCode.LOCK_BATCH_MQ: _lock,
    RequestCode.UNLOCK_BATCH_MQ: _lock,
    RequestCode.CHECK_CLIENT_CONFIG: _check_client,
    RequestCode.QUERY_ASSIGNMENT: _assignment,
    RequestCode.POP_MESSAGE: topic_and_group(READ, READ),
    RequestCode.ACK_MESSAGE: topic_and_group(READ, READ),
    RequestCode.BATCH_ACK_MESSAGE: _batch_ack,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: topic_and_group(READ, READ),
    RequestCode.PEEK_MESSAGE: topic_and_group(READ, READ),
    RequestCode.NOTIFICATION: topic_and_group(READ, READ),
    RequestCode.POLLING_INFO: topic_and_group(DESCRIBE, DESCRIBE),
    # It moves nothing here.
    RequestCode.POP_ROLLBACK: nothing,
}


def _group_settings(command: Command) -> Iterable[Need]:
    asked = javajson.decode(
        command.body,
        SubscriptionGroupConfig,
        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
        size_max=SETTINGS_BYTES_MAX,
    )
    return (of_group(asked.group_name, ALTER),)


ADMINISTERING: Final[Mapping[RequestCode, Needs]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: topic(CREATE),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: cluster(CREATE),
    RequestCode.DELETE_TOPIC_IN_BROKER: topic(DELETE),
    RequestCode.GET_ALL_TOPIC_CONFIG: cluster(DESCRIBE),
    RequestCode.GET_TOPIC_CONFIG: topic(DESCRIBE),
    RequestCode.GET_TOPIC_STATS_INFO: topic(DESCRIBE),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: topic(DESCRIBE),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: cluster(DESCRIBE),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: topic(DESCRIBE),
    RequestCode.GET_MAX_OFFSET: topic(DESCRIBE),
    RequestCode.GET_MIN_OFFSET: topic(DESCRIBE),
    RequestCode.GET_EARLIEST_MSG_STORETIME: topic(DESCRIBE),
    RequestCode.QUERY_CONSUME_QUEUE: all_of(
        topic(DESCRIBE), if_given(group(DESCRIBE), "consumerGroup")
    ),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _group_settings,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: cluster(ALTER),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: cluster(DESCRIBE),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: group(DESCRIBE, "group"),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: group(DELETE, "groupName"),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: group(DESCRIBE),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: cluster(DESCRIBE),
    RequestCode.GET_ALL_PRODUCER_INFO: cluster(DESCRIBE),
    RequestCode.GET_CONSUME_STATS: all_of(group(DESCRIBE), if_given(topic(DESCRIBE), "topic")),
    RequestCode.GET_BROKER_CONSUME_STATS: cluster(DESCRIBE),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: topic_and_group(READ, ALTER, "group"),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: topic_and_group(DESCRIBE, DESCRIBE, "group"),
    RequestCode.GET_CONSUMER_RUNNING_INFO: group(DESCRIBE),
    RequestCode.CLONE_GROUP_OFFSET: all_of(
        group(DESCRIBE, "srcGroup"), group(ALTER, "destGroup"), if_given(topic(READ), "topic")
    ),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: group(DESCRIBE, "group"),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: topic_and_group(DESCRIBE, DESCRIBE, "group"),
    RequestCode.QUERY_CONSUME_TIME_SPAN: topic_and_group(DESCRIBE, DESCRIBE, "group"),
    RequestCode.QUERY_CORRECTION_OFFSET: topic_and_group(DESCRIBE, DESCRIBE, "compareGroup"),
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: topic_and_group(ALTER, ALTER, "group"),
    RequestCode.SET_MESSAGE_REQUEST_MODE: _mode,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: cluster(DESCRIBE),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: cluster(ALTER),
    RequestCode.UPDATE_BROKER_CONFIG: cluster(ALTER),
    RequestCode.GET_BROKER_CONFIG: cluster(DESCRIBE),
    RequestCode.TRIGGER_DELETE_FILES: cluster(ALTER),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: cluster(ALTER),
    RequestCode.CLEAN_UNUSED_TOPIC: cluster(ALTER),
    RequestCode.DELETE_EXPIRED_COMMITLOG: cluster(ALTER),
    RequestCode.GET_BROKER_RUNTIME_INFO: cluster(DESCRIBE),
    RequestCode.VIEW_BROKER_STATS_DATA: cluster(DESCRIBE),
    RequestCode.GET_BROKER_HA_STATUS: cluster(DESCRIBE),
    RequestCode.GET_TIMER_METRICS: cluster(DESCRIBE),
    RequestCode.AUTH_CREATE_USER: cluster(ALTER),
    RequestCode.AUTH_UPDATE_USER: cluster(ALTER),
    RequestCode.AUTH_DELETE_USER: cluster(ALTER),
    RequestCode.AUTH_GET_USER: cluster(DESCRIBE),
    RequestCode.AUTH_LIST_USER: cluster(DESCRIBE),
    RequestCode.AUTH_CREATE_ACL: cluster(ALTER),
    RequestCode.AUTH_UPDATE_ACL: cluster(ALTER),
    RequestCode.AUTH_DELETE_ACL: cluster(ALTER),
    RequestCode.AUTH_GET_ACL: cluster(DESCRIBE),
    RequestCode.AUTH_LIST_ACL: cluster(DESCRIBE),
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: cluster(ALTER),
    RequestCode.DELETE_ACL_CONFIG: cluster(ALTER),
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: cluster(DESCRIBE),
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: cluster(ALTER),
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: cluster(DESCRIBE),
}


def _describing(command: Command) -> Iterable[Need]:
    """Details, and with a preview the contents of any topic."""
    return (of_cluster(DESCRIBE if command.fields.get("preview", "0") == "0" else ALTER),)


def _resend(command: Command) -> Iterable[Need]:
    fields = command.fields
    target = fields.get("to")
    yield of_group(fields.get("group", ""), READ)
    # Where it came from is known only once it is read.
    yield of_topic(target, WRITE) if target else of_cluster(ALTER)


def _checking(command: Command) -> Iterable[Need]:
    # It costs the disk as much as it reads.
    asks = command.fields.get("action", "status") == "status"
    yield of_cluster(DESCRIBE if asks else ALTER)


OWN: Final[Mapping[RequestCode, Needs]] = {
    RequestCode.SCAN_DELAYS: cluster(DESCRIBE),
    RequestCode.DESCRIBE_DELAYS: _describing,
    RequestCode.CANCEL_DELAY: cluster(ALTER),
    RequestCode.DELIVER_DELAY: cluster(ALTER),
    RequestCode.LIST_HALVES: cluster(DESCRIBE),
    RequestCode.DESCRIBE_HALVES: _describing,
    RequestCode.RESOLVE_HALF: cluster(ALTER),
    RequestCode.LIST_DEAD_LETTER_QUEUES: cluster(DESCRIBE),
    RequestCode.READ_DEAD_LETTERS: group(READ, "group"),
    RequestCode.RESEND_DEAD_LETTER: _resend,
    RequestCode.COUNT_EMPTY_OFFSETS: cluster(DESCRIBE),
    RequestCode.CHECK_LOG: _checking,
}


def broker_needs(stored: Stored) -> dict[RequestCode, Needs]:
    """The needs of every request that the broker serves."""
    return {**PRODUCING, **CONSUMING, **ADMINISTERING, **OWN, **_by_place(stored)}


def _by_place(stored: Stored) -> dict[RequestCode, Needs]:
    """Requests that name a message by its place in the log."""

    def view(command: Command) -> Iterator[Need]:
        asked = headers.read(command, ViewMessageHeader)
        yield from at(asked.offset)

    def give_back(command: Command) -> Iterator[Need]:
        asked = headers.read(command, SendBackHeader)
        yield of_group(asked.group, READ)
        yield from at(asked.offset)

    def consume(command: Command) -> Iterator[Need]:
        asked = headers.read(command, ConsumeDirectlyHeader)
        yield of_group(asked.consumer_group, READ)
        _, _, address = parse_offset_message_id(asked.msg_id or "")
        yield from at(address)

    def end(command: Command) -> Iterator[Need]:
        asked = headers.read(command, EndTransactionHeader)
        name = stored.target_of(asked.tran_state_table_offset)
        if name is not None:
            yield placed(of_topic(name, WRITE))
        elif asked.topic:
            yield of_topic(asked.topic, WRITE)

    def at(address: int) -> Iterator[Need]:
        name = stored.topic_at(address) if address >= 0 else None
        # One that does not exist is refused like one that the client may not read.
        yield placed(of_topic(name, READ) if name is not None else of_cluster(DESCRIBE))

    return {
        RequestCode.VIEW_MESSAGE_BY_ID: view,
        RequestCode.CONSUMER_SEND_MSG_BACK: give_back,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: consume,
        RequestCode.END_TRANSACTION: end,
    }
