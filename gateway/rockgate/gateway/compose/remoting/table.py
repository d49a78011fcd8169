"""The table of processors: every request code that the broker listener handles.

To answer another code, write a method in the module of its family and add its line here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rockgate.gateway.compose.remoting.services import HEADER_ROOM, RemotingServices
from rockgate.gateway.remoting.pop.assignment import AssignmentRequests
from rockgate.gateway.remoting.pop.requests import PopRequests
from rockgate.gateway.remoting.processors.admin import OperatorRequests
from rockgate.gateway.remoting.processors.broker import BrokerRequests
from rockgate.gateway.remoting.processors.clients import ClientRequests
from rockgate.gateway.remoting.processors.delays import DelayRequests
from rockgate.gateway.remoting.processors.groups import GroupRequests
from rockgate.gateway.remoting.processors.halves import HalfRequests
from rockgate.gateway.remoting.processors.locks import LockRequests
from rockgate.gateway.remoting.processors.offsets import OffsetRequests
from rockgate.gateway.remoting.processors.pull import Pulls
from rockgate.gateway.remoting.processors.query import Queries
from rockgate.gateway.remoting.processors.send import Sends
from rockgate.gateway.remoting.processors.send_back import RetryRequests
from rockgate.gateway.remoting.processors.topics import TopicRequests
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.dispatch import Handle
from rockgate.gateway.remoting.statistics.fall_behind import FallBehind
from rockgate.gateway.remoting.statistics.requests import StatisticsRequests
from rockgate.gateway.remoting.statistics.sets import StatisticSets
from rockgate.protocol.remoting.codes import RequestCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The processors of each family."""

    sends: Sends
    halves: HalfRequests
    delays: DelayRequests
    retries: RetryRequests
    pulls: Pulls
    offsets: OffsetRequests
    clients: ClientRequests
    locks: LockRequests
    topics: TopicRequests
    groups: GroupRequests
    queries: Queries
    broker: BrokerRequests
    statistics: StatisticsRequests
    pops: PopRequests
    assignments: AssignmentRequests
    operators: OperatorRequests


def families(services: RemotingServices, address: str) -> Families:
    """Create the processors of each family; `address` is the advertised one."""
    store, name = services.store, services.config.broker_name
    services.settings.advertise(address)
    topics, clients, puller = services.topics, services.clients, services.puller
    return Families(
        sends=Sends(
            sender=services.sender,
            clients=clients,
            clock=store.clock,
            store_host=services.store_host,
            address=address,
            broker_name=name,
            took=services.statistics.put_took,
        ),
        halves=_halves(services),
        delays=DelayRequests(
            delays=services.delays, admin=services.delay_admin, durability=services.durability
        ),
        retries=RetryRequests(retries=services.retries, lookup=services.lookup),
        pulls=_pulls(services),
        offsets=OffsetRequests(
            lookup=store.topics,
            queues=store.queues,
            progress=store.progress,
            topics=topics,
            puller=puller,
            offsets=services.offsets,
            clients=clients,
            durability=services.durability,
            clock=store.clock,
            broker_name=name,
            address=address,
            statistics=services.statistics,
            in_flight=services.folds.in_flight,
            notices=services.reset_notices,
        ),
        clients=ClientRequests(
            clients=clients,
            settings=services.folds.settings,
            topics=topics,
            lookup=services.lookup,
            clock=store.clock,
            broker_name=name,
        ),
        locks=LockRequests(services.locks, store.clock),
        topics=_topics(services),
        groups=_groups(services),
        queries=Queries(
            topics=topics,
            lookup=services.lookup,
            queues=store.queues,
            reader=store.reader,
            puller=puller,
            clients=clients,
        ),
        broker=BrokerRequests(
            store=store, settings=services.settings, durability=services.durability
        ),
        statistics=_statistics(services),
        pops=_pops(services),
        assignments=AssignmentRequests(
            modes=services.folds.modes,
            topics=topics,
            clients=clients,
            durability=services.durability,
            broker_name=name,
        ),
        operators=_operators(services),
    )


def _statistics(services: RemotingServices) -> StatisticsRequests:
    store = services.store
    return StatisticsRequests(
        sets=StatisticSets(
            statistics=services.statistics,
            behind=FallBehind(store.progress, store.log, store.clock),
            topics=store.topics,
            queues=store.queues,
        ),
        runtime=services.figures.table,
        clock=store.clock,
    )


def _topics(services: RemotingServices) -> TopicRequests:
    return TopicRequests(
        store=services.store,
        topics=services.topics,
        clients=services.clients,
        puller=services.puller,
        durability=services.durability,
        broker_name=services.config.broker_name,
        put_per_second=services.statistics.put_per_second,
    )


def _groups(services: RemotingServices) -> GroupRequests:
    store = services.store

    def forget(group: str) -> None:
        services.receipts.forget_group(group)
        services.statistics.forget_group(group)

    return GroupRequests(
        settings=services.folds.settings,
        clients=services.clients,
        progress=store.progress,
        topics=store.topics,
        queues=store.queues,
        durability=services.durability,
        forget=forget,
        forbidden=services.folds.forbidden,
    )


def _halves(services: RemotingServices) -> HalfRequests:
    soon = asyncio.get_running_loop().call_soon
    return HalfRequests(
        halves=services.halves,
        lookup=services.lookup,
        durability=services.durability,
        soon=soon,
    )


def _pulls(services: RemotingServices) -> Pulls:
    config, store = services.config, services.store
    pulls = Pulls(
        puller=services.puller,
        topics=services.topics,
        queues=store.queues,
        clients=services.clients,
        settings=services.folds.settings,
        forbidden=services.folds.forbidden,
        offsets=services.offsets,
        poll_registry=services.poll_registry,
        count_max=config.pull_messages_max,
        size_max=_pull_bytes(config),
        suspend_ms_max=config.suspend_ms_max,
        polls=services.polls,
        got=services.statistics.got,
    )
    services.settings.on_changed.append(
        lambda config: pulls.limit(config.pull_messages_max, _pull_bytes(config))
    )
    return pulls


def _pull_bytes(config: RemotingConfig) -> int:
    """What a pull may return, so that it fits a frame."""
    return min(config.pull_bytes_max, config.frame_bytes_max - HEADER_ROOM)


def _pops(services: RemotingServices) -> PopRequests:
    config, store = services.config, services.store
    return PopRequests(
        acquirer=services.acquirer,
        receipts=services.receipts,
        puller=services.puller,
        topics=services.topics,
        queues=store.queues,
        settings=services.folds.settings,
        poll_registry=services.poll_registry,
        polls=services.polls,
        durability=services.durability,
        size_max=_pull_bytes(config),
        suspend_ms_max=config.suspend_ms_max,
    )


def _operators(services: RemotingServices) -> OperatorRequests:
    return OperatorRequests(
        delays=services.delay_admin,
        halves=services.half_admin,
        dead_letters=services.dead_letters,
        empty=services.empty_offsets.count,
        durability=services.durability,
        log_checks=services.log_checks,
    )


def table(families: Families) -> dict[RequestCode, Handle]:
    """The processor of each code."""
    f = families
    return {
        RequestCode.SEND_MESSAGE: f.sends.send,
        RequestCode.PULL_MESSAGE: f.pulls.pull,
        RequestCode.QUERY_MESSAGE: f.queries.by_key,
        RequestCode.QUERY_CONSUMER_OFFSET: f.offsets.query,
        RequestCode.UPDATE_CONSUMER_OFFSET: f.offsets.update,
        RequestCode.UPDATE_AND_CREATE_TOPIC: f.topics.update,
        RequestCode.GET_ALL_TOPIC_CONFIG: f.topics.all_configs,
        RequestCode.UPDATE_BROKER_CONFIG: f.broker.set_config,
        RequestCode.GET_BROKER_CONFIG: f.broker.config,
        RequestCode.TRIGGER_DELETE_FILES: f.broker.tidy_up,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: f.broker.tidy_up,
        RequestCode.CLEAN_UNUSED_TOPIC: f.broker.tidy_up,
        RequestCode.DELETE_EXPIRED_COMMITLOG: f.broker.tidy_up,
        RequestCode.GET_ALL_PRODUCER_INFO: f.clients.all_producers,
        RequestCode.GET_BROKER_RUNTIME_INFO: f.statistics.runtime_info,
        RequestCode.VIEW_BROKER_STATS_DATA: f.statistics.view,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: f.offsets.search,
        RequestCode.GET_MAX_OFFSET: f.offsets.max_offset,
        RequestCode.GET_MIN_OFFSET: f.offsets.min_offset,
        RequestCode.GET_EARLIEST_MSG_STORETIME: f.offsets.earliest,
        RequestCode.VIEW_MESSAGE_BY_ID: f.queries.view,
        RequestCode.HEART_BEAT: f.clients.heartbeat,
        RequestCode.UNREGISTER_CLIENT: f.clients.unregister,
        RequestCode.CONSUMER_SEND_MSG_BACK: f.retries.give_back,
        RequestCode.END_TRANSACTION: f.halves.end,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: f.clients.members,
        RequestCode.LOCK_BATCH_MQ: f.locks.lock,
        RequestCode.UNLOCK_BATCH_MQ: f.locks.unlock,
        RequestCode.CHECK_CLIENT_CONFIG: f.clients.check,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: f.groups.update,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: f.groups.all,
        RequestCode.GET_TOPIC_STATS_INFO: f.topics.stats,
        RequestCode.GET_CONSUMER_CONNECTION_LIST: f.clients.consumer_connections,
        RequestCode.GET_PRODUCER_CONNECTION_LIST: f.clients.producer_connections,
        RequestCode.DELETE_SUBSCRIPTIONGROUP: f.groups.delete,
        RequestCode.GET_CONSUME_STATS: f.offsets.consume_stats,
        RequestCode.GET_BROKER_CONSUME_STATS: f.offsets.all_consume_stats,
        RequestCode.QUERY_CONSUME_QUEUE: f.queries.by_offset,
        RequestCode.DELETE_TOPIC_IN_BROKER: f.topics.delete,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: f.offsets.reset,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: f.clients.status,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: f.topics.readers,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: f.topics.system,
        RequestCode.GET_CONSUMER_RUNNING_INFO: f.clients.running_info,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: f.clients.consume_directly,
        RequestCode.CLONE_GROUP_OFFSET: f.offsets.clone,
        RequestCode.SEND_MESSAGE_V2: f.sends.send,
        RequestCode.SEND_BATCH_MESSAGE: f.sends.send_batch,
        RequestCode.SEND_REPLY_MESSAGE: f.sends.reply,
        RequestCode.SEND_REPLY_MESSAGE_V2: f.sends.reply,
        RequestCode.QUERY_TOPICS_BY_CONSUMER: f.groups.topics_of,
        RequestCode.GET_TOPIC_CONFIG: f.topics.config,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: f.groups.one,
        RequestCode.LITE_PULL_MESSAGE: f.pulls.pull,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: f.topics.update_many,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: f.groups.update_many,
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: f.groups.subscription,
        RequestCode.QUERY_CONSUME_TIME_SPAN: f.offsets.time_spans,
        RequestCode.QUERY_CORRECTION_OFFSET: f.groups.correction,
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: f.groups.forbid,
        RequestCode.RESUME_CHECK_HALF_MESSAGE: f.halves.resume,
        RequestCode.GET_BROKER_HA_STATUS: f.broker.ha_status,
        **_delay_table(f),
        **_pop_table(f),
        **_own_table(f),
    }


def _delay_table(f: Families) -> dict[RequestCode, Handle]:
    """The processors of delayed messages."""
    return {
        RequestCode.RECALL_MESSAGE: f.delays.recall,
        RequestCode.GET_TIMER_METRICS: f.delays.metrics,
    }


def _pop_table(f: Families) -> dict[RequestCode, Handle]:
    """The processors of pops and assignments."""
    return {
        RequestCode.QUERY_ASSIGNMENT: f.assignments.query,
        RequestCode.SET_MESSAGE_REQUEST_MODE: f.assignments.set_mode,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: f.assignments.modes,
        RequestCode.POP_MESSAGE: f.pops.pop,
        RequestCode.ACK_MESSAGE: f.pops.ack,
        RequestCode.BATCH_ACK_MESSAGE: f.pops.batch_ack,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME: f.pops.change_invisible,
        RequestCode.PEEK_MESSAGE: f.pops.peek,
        RequestCode.NOTIFICATION: f.pops.notification,
        RequestCode.POLLING_INFO: f.pops.polling_info,
        RequestCode.POP_ROLLBACK: f.pops.rollback,
    }


def _own_table(f: Families) -> dict[RequestCode, Handle]:
    """The processors of our own codes."""
    return {
        RequestCode.SCAN_DELAYS: f.operators.scan_delays,
        RequestCode.DESCRIBE_DELAYS: f.operators.describe_delays,
        RequestCode.CANCEL_DELAY: f.operators.cancel_delay,
        RequestCode.DELIVER_DELAY: f.operators.deliver_delay,
        RequestCode.CHECK_LOG: f.operators.check_log,
        RequestCode.LIST_HALVES: f.operators.list_halves,
        RequestCode.DESCRIBE_HALVES: f.operators.describe_halves,
        RequestCode.RESOLVE_HALF: f.operators.resolve_half,
        RequestCode.LIST_DEAD_LETTER_QUEUES: f.operators.list_dead_letter_queues,
        RequestCode.READ_DEAD_LETTERS: f.operators.read_dead_letters,
        RequestCode.RESEND_DEAD_LETTER: f.operators.resend_dead_letter,
        RequestCode.COUNT_EMPTY_OFFSETS: f.operators.count_empty_offsets,
    }
