"""What every API takes: the operations on which resources, and how a refusal looks.

An entry is one of these:

    OPEN        no grant is needed
    Whole       checks of the whole request; its handler refuses it
    PerItem     these, then checks of the items of a list, which are refused one by one
    Custom      a guard of its own
    Within      the handler asks, because it lists, or is too frequent for a guard

`guarded` wraps the rows of a table of handlers. Only a server that authorizes calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

from rockgate.gateway.kafka.authorization import items, share_items
from rockgate.gateway.kafka.authorization.add_partitions import AddPartitionsGuard
from rockgate.gateway.kafka.authorization.checks import (
    Check,
    before,
    on_cluster,
    on_coordinator_key,
    on_group,
    on_new_producer,
    on_transaction,
)
from rockgate.gateway.kafka.authorization.guards import Context, Guard, Items, ItemsGuard
from rockgate.gateway.kafka.authorization.produce import ProduceGuard
from rockgate.gateway.kafka.request.handler import AnyHandler, Row
from rockgate.gateway.security.grants import AclOperation
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from rockgate.protocol.kafka.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from rockgate.protocol.kafka.messages.create_partitions import CreatePartitionsResponse
from rockgate.protocol.kafka.messages.create_topics import CreateTopicsResponse
from rockgate.protocol.kafka.messages.delete_groups import DeleteGroupsResponse
from rockgate.protocol.kafka.messages.delete_records import DeleteRecordsResponse
from rockgate.protocol.kafka.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.delete_topics import DeleteTopicsResponse
from rockgate.protocol.kafka.messages.describe_configs import DescribeConfigsResponse
from rockgate.protocol.kafka.messages.describe_groups import DescribeGroupsResponse
from rockgate.protocol.kafka.messages.describe_producers import DescribeProducersResponse
from rockgate.protocol.kafka.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.describe_transactions import DescribeTransactionsResponse
from rockgate.protocol.kafka.messages.find_coordinator import FindCoordinatorResponse
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from rockgate.protocol.kafka.messages.list_offsets import ListOffsetsResponse
from rockgate.protocol.kafka.messages.offset_commit import OffsetCommitResponse
from rockgate.protocol.kafka.messages.offset_delete import OffsetDeleteResponse
from rockgate.protocol.kafka.messages.offset_fetch import OffsetFetchResponse
from rockgate.protocol.kafka.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from rockgate.protocol.kafka.messages.share_group_describe import ShareGroupDescribeResponse
from rockgate.protocol.kafka.messages.streams_group_describe import (
    StreamsGroupDescribeResponse,
)
from rockgate.protocol.kafka.messages.txn_offset_commit import TxnOffsetCommitResponse

Services = TypeVar("Services")


@dataclass(frozen=True, slots=True)
class Open:
    """Needs no grant."""

    reason: str

    def guard(self, handler: AnyHandler, context: Context) -> AnyHandler:
        """The handler itself."""
        return handler


@dataclass(frozen=True, slots=True)
class Within(Open):
    """Its handler asks; `reason` says for what."""


class Whole:
    """Checked as a whole."""

    def __init__(self, *checks: Check) -> None:
        self._checks = checks

    def guard(self, handler: AnyHandler, context: Context) -> AnyHandler:
        """Wrap a handler."""
        return Guard(handler, context, self._checks)


class PerItem:
    """Checked as a whole, then item by item."""

    def __init__(self, response: type[Any], listed: Items, *checks: Check) -> None:
        self._response = response
        self._items = listed
        self._checks = checks

    def guard(self, handler: AnyHandler, context: Context) -> AnyHandler:
        """Wrap a handler."""
        return ItemsGuard(handler, context, self._checks, self._items, self._response)


@dataclass(frozen=True, slots=True)
class Custom:
    """Has a guard of its own."""

    make: Callable[[Any, Context], AnyHandler]

    def guard(self, handler: AnyHandler, context: Context) -> AnyHandler:
        """Wrap a handler."""
        return self.make(handler, context)


Rule: TypeAlias = Open | Whole | PerItem | Custom

_OP: Final = AclOperation
_ALTER: Final = Whole(on_cluster(_OP.ALTER))
_DESCRIBE: Final = Whole(on_cluster(_OP.DESCRIBE))
_DESCRIBE_CONFIGS: Final = Whole(on_cluster(_OP.DESCRIBE_CONFIGS))
_READ_GROUP: Final = Whole(on_group(_OP.READ))
_SASL: Final = Open("It is how a client authenticates.")
_TELEMETRY: Final = Within("No grant: the server asks its clients for their metrics.")
_OWN_TOKEN: Final = Within("Owner and renewers of the token may.")

RULES: Final[Mapping[int, Rule]] = {
    ApiKey.PRODUCE: Custom(ProduceGuard),
    ApiKey.FETCH: Within("READ on each topic, again whenever the response is made."),
    ApiKey.LIST_OFFSETS: PerItem(ListOffsetsResponse, items.list_offsets_items()),
    ApiKey.METADATA: Within("DESCRIBE on each topic; CREATE on it or the cluster to create it."),
    ApiKey.OFFSET_COMMIT: PerItem(
        OffsetCommitResponse, items.offset_commit_items(), on_group(_OP.READ)
    ),
    ApiKey.OFFSET_FETCH: PerItem(
        OffsetFetchResponse, items.offset_fetch_items(), before(8, on_group(_OP.DESCRIBE))
    ),
    ApiKey.FIND_COORDINATOR: PerItem(
        FindCoordinatorResponse, items.find_coordinator_items(), on_coordinator_key
    ),
    ApiKey.JOIN_GROUP: _READ_GROUP,
    ApiKey.HEARTBEAT: _READ_GROUP,
    ApiKey.LEAVE_GROUP: _READ_GROUP,
    ApiKey.SYNC_GROUP: _READ_GROUP,
    ApiKey.DESCRIBE_GROUPS: PerItem(DescribeGroupsResponse, items.describe_groups_items()),
    ApiKey.LIST_GROUPS: Within("DESCRIBE on the cluster, or on each group that is listed."),
    ApiKey.SASL_HANDSHAKE: _SASL,
    ApiKey.API_VERSIONS: Open("A client must know the versions before it authenticates."),
    ApiKey.CREATE_TOPICS: PerItem(CreateTopicsResponse, items.create_topics_items()),
    ApiKey.DELETE_TOPICS: PerItem(DeleteTopicsResponse, items.delete_topics_items()),
    ApiKey.DELETE_RECORDS: PerItem(DeleteRecordsResponse, items.delete_records_items()),
    ApiKey.INIT_PRODUCER_ID: Whole(on_new_producer),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: PerItem(
        OffsetForLeaderEpochResponse, items.leader_epoch_items()
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Custom(AddPartitionsGuard),
    ApiKey.ADD_OFFSETS_TO_TXN: Whole(on_transaction(_OP.WRITE), on_group(_OP.READ)),
    ApiKey.END_TXN: Whole(on_transaction(_OP.WRITE)),
    ApiKey.WRITE_TXN_MARKERS: Whole(on_cluster(_OP.ALTER, _OP.CLUSTER_ACTION)),
    ApiKey.TXN_OFFSET_COMMIT: PerItem(
        TxnOffsetCommitResponse,
        items.txn_offset_commit_items(),
        on_transaction(_OP.WRITE),
        on_group(_OP.READ),
    ),
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    ApiKey.DESCRIBE_CONFIGS: PerItem(DescribeConfigsResponse, items.describe_configs_items()),
    ApiKey.ALTER_CONFIGS: PerItem(
        AlterConfigsResponse, items.alter_configs_items(AlterConfigsResourceResponse)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBE,
    ApiKey.SASL_AUTHENTICATE: _SASL,
    ApiKey.CREATE_PARTITIONS: PerItem(CreatePartitionsResponse, items.create_partitions_items()),
    ApiKey.CREATE_DELEGATION_TOKEN: Within("CREATE_TOKENS on the owner, unless it is oneself."),
    ApiKey.RENEW_DELEGATION_TOKEN: _OWN_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _OWN_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Within(
        "One's own tokens; others with DESCRIBE on them, or DESCRIBE_TOKENS on the owner."
    ),
    ApiKey.DELETE_GROUPS: PerItem(DeleteGroupsResponse, items.delete_groups_items()),
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: PerItem(
        IncrementalAlterConfigsResponse, items.alter_configs_items(IncrementalResourceResponse)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.OFFSET_DELETE: PerItem(
        OffsetDeleteResponse, items.offset_delete_items(), on_group(_OP.DELETE)
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _DESCRIBE_CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS: Whole(on_cluster(_OP.ALTER_CONFIGS)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.DESCRIBE_QUORUM: _DESCRIBE,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.DESCRIBE_CLUSTER: Within("Anybody; the authorized operations take DESCRIBE."),
    ApiKey.DESCRIBE_PRODUCERS: PerItem(DescribeProducersResponse, items.describe_producers_items()),
    ApiKey.DESCRIBE_TRANSACTIONS: PerItem(
        DescribeTransactionsResponse, items.describe_transactions_items()
    ),
    ApiKey.LIST_TRANSACTIONS: Within("DESCRIBE on each transactional id that is listed."),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: PerItem(
        ConsumerGroupDescribeResponse, items.consumer_group_describe_items()
    ),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _TELEMETRY,
    ApiKey.PUSH_TELEMETRY: _TELEMETRY,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.STREAMS_GROUP_DESCRIBE: PerItem(
        StreamsGroupDescribeResponse, items.streams_group_describe_items()
    ),
    ApiKey.LIST_CONFIG_RESOURCES: _DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Within("DESCRIBE on each topic."),
    ApiKey.SHARE_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.SHARE_GROUP_DESCRIBE: PerItem(
        ShareGroupDescribeResponse, share_items.share_group_describe_items()
    ),
    ApiKey.SHARE_FETCH: _READ_GROUP,
    ApiKey.SHARE_ACKNOWLEDGE: _READ_GROUP,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: PerItem(
        DescribeShareGroupOffsetsResponse, share_items.describe_share_offsets_items()
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: PerItem(
        AlterShareGroupOffsetsResponse, share_items.alter_share_offsets_items(), on_group(_OP.READ)
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: PerItem(
        DeleteShareGroupOffsetsResponse,
        share_items.delete_share_offsets_items(),
        on_group(_OP.DELETE),
    ),
}


def guarded(rows: Sequence[Row[Services]], context: Context) -> tuple[Row[Services], ...]:
    """The table of handlers, each behind the guard of its API."""
    return tuple(replace(row, make=_guarding(row, context)) for row in rows)


def _guarding(row: Row[Services], context: Context) -> Callable[[Services], AnyHandler]:
    rule, make = RULES[row.key], row.make
    return lambda services: rule.guard(make(services), context)
