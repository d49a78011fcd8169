"""A consumer's running info (307), the result of consuming one message (309), replicas (907)."""

from typing import Any

import msgspec

from rockgate.protocol.remoting.bodies.clients import SubscriptionData
from rockgate.protocol.remoting.bodies.queues import MessageQueue
from rockgate.protocol.remoting.javajson import Keyed


class RunningInfoBody(msgspec.Struct, kw_only=True, rename="camel"):
    """307's response."""

    properties: dict[str, str] = {}
    subscription_set: list[SubscriptionData] = []
    mq_table: Keyed[MessageQueue, dict[str, Any]] = msgspec.field(default_factory=Keyed)
    mq_pop_table: Keyed[MessageQueue, dict[str, Any]] = msgspec.field(default_factory=Keyed)
    status_table: dict[str, dict[str, float]] = {}
    user_consumer_info: dict[str, str] = {}
    jstack: str | None = None


class DirectConsumption(msgspec.Struct, kw_only=True, rename="camel"):
    """309's response."""

    order: bool = False
    auto_commit: bool = True
    consume_result: str | None = None
    remark: str | None = None
    spent_time_mills: int = 0


class ReplicaLink(msgspec.Struct, kw_only=True, rename="camel"):
    """One slave, as its master sees it."""

    slave_ack_offset: int = 0


class ReplicaStatus(msgspec.Struct, kw_only=True, rename="camel"):
    """907's response of a master: the end of its log, and how far its slaves are."""

    master_commit_log_max_offset: int = 0
    ha_connection_info: list[ReplicaLink] = []
