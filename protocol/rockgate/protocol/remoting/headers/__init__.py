"""Typed headers of requests and responses, by code: strings on the wire, values here.

A header is a msgspec struct whose fields are named as Java names them (in camel case on the wire).
Numbers and booleans are strings on the wire; undeclared fields are ignored, as in RocketMQ, and so
are the four that its clients add to every request (`bname`, `ReqT`, `lo`, `ns`).
"""

from typing import Any, Final, TypeVar

import msgspec

from rockgate.protocol.remoting.codes import RequestCode, request_name
from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers import (
    access,
    admin,
    clients,
    nameserver,
    offsets,
    pop,
    pull,
    query,
    send,
    topics,
    transactions,
)
from rockgate.protocol.remoting.headers.kinds import NoHeader

H = TypeVar("H", bound=msgspec.Struct)

REQUESTS: Final[dict[int, type[msgspec.Struct]]] = {
    RequestCode.SEND_MESSAGE: send.SendHeader,
    RequestCode.PULL_MESSAGE: pull.PullHeader,
    RequestCode.QUERY_MESSAGE: query.QueryMessageHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offsets.QueryConsumerOffsetHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: offsets.UpdateConsumerOffsetHeader,
    RequestCode.UPDATE_AND_CREATE_TOPIC: topics.CreateTopicHeader,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: NoHeader,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: NoHeader,
    RequestCode.GET_ALL_TOPIC_CONFIG: NoHeader,
    RequestCode.GET_BROKER_CONFIG: NoHeader,
    RequestCode.GET_BROKER_RUNTIME_INFO: NoHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offsets.SearchOffsetHeader,
    RequestCode.GET_MAX_OFFSET: offsets.MaxOffsetHeader,
    RequestCode.GET_MIN_OFFSET: offsets.QueueHeader,
    RequestCode.GET_EARLIEST_MSG_STORETIME: offsets.QueueHeader,
    RequestCode.VIEW_MESSAGE_BY_ID: query.ViewMessageHeader,
    RequestCode.HEART_BEAT: NoHeader,
    RequestCode.UNREGISTER_CLIENT: clients.UnregisterClientHeader,
    RequestCode.CONSUMER_SEND_MSG_BACK: send.SendBackHeader,
    RequestCode.END_TRANSACTION: transactions.EndTransactionHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: clients.ConsumerGroupHeader,
    RequestCode.CHECK_TRANSACTION_STATE: transactions.CheckTransactionHeader,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: clients.ConsumerGroupHeader,
    RequestCode.LOCK_BATCH_MQ: NoHeader,
    RequestCode.UNLOCK_BATCH_MQ: NoHeader,
    RequestCode.GET_ALL_CONSUMER_OFFSET: NoHeader,
    RequestCode.GET_ALL_DELAY_OFFSET: NoHeader,
    RequestCode.CHECK_CLIENT_CONFIG: NoHeader,
    RequestCode.PUT_KV_CONFIG: nameserver.PutKvHeader,
    RequestCode.GET_KV_CONFIG: nameserver.KvHeader,
    RequestCode.DELETE_KV_CONFIG: nameserver.KvHeader,
    RequestCode.REGISTER_BROKER: nameserver.RegisterBrokerHeader,
    RequestCode.UNREGISTER_BROKER: nameserver.UnregisterBrokerHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: nameserver.RouteHeader,
    RequestCode.GET_BROKER_CLUSTER_INFO: NoHeader,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: NoHeader,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: offsets.AllGroupsHeader,
    RequestCode.GET_TOPIC_STATS_INFO: topics.TopicHeader,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: clients.ConsumerGroupHeader,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: clients.ProducerGroupHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: nameserver.BrokerNameHeader,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: NoHeader,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: clients.DeleteGroupHeader,
    RequestCode.GET_CONSUME_STATS: offsets.ConsumeStatsHeader,
    RequestCode.DELETE_TOPIC_IN_BROKER: topics.TopicHeader,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: nameserver.DeleteTopicHeader,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: topics.TopicHeader,
    RequestCode.GET_KVLIST_BY_NAMESPACE: nameserver.NamespaceHeader,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET: offsets.ResetOffsetHeader,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: offsets.ConsumerStatusHeader,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: offsets.ResetOffsetHeader,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: offsets.ConsumerStatusHeader,
    RequestCode.GET_TOPICS_BY_CLUSTER: nameserver.ClusterHeader,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: topics.TopicHeader,
    RequestCode.QUERY_CONSUME_TIME_SPAN: offsets.ConsumeTimeSpanHeader,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: NoHeader,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: NoHeader,
    RequestCode.GET_CONSUMER_RUNNING_INFO: clients.RunningInfoHeader,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: clients.ConsumeDirectlyHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendHeaderV2,
    RequestCode.GET_UNIT_TOPIC_LIST: NoHeader,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: NoHeader,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: NoHeader,
    RequestCode.CLONE_GROUP_OFFSET: offsets.CloneOffsetsHeader,
    RequestCode.GET_BROKER_CONSUME_STATS: offsets.BrokerConsumeStatsHeader,
    RequestCode.UPDATE_NAMESRV_CONFIG: NoHeader,
    RequestCode.GET_NAMESRV_CONFIG: NoHeader,
    RequestCode.SEND_BATCH_MESSAGE: send.SendHeaderV2,
    RequestCode.QUERY_CONSUME_QUEUE: query.QueryQueueHeader,
    RequestCode.QUERY_DATA_VERSION: nameserver.DataVersionHeader,
    RequestCode.SEND_REPLY_MESSAGE: send.SendHeader,
    RequestCode.SEND_REPLY_MESSAGE_V2: send.SendHeaderV2,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: send.PushReplyHeader,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: nameserver.BrokerNameHeader,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: offsets.GroupHeader,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: offsets.SubscriptionByConsumerHeader,
    RequestCode.GET_TOPIC_CONFIG: topics.TopicHeader,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: offsets.GroupHeader,
    RequestCode.LITE_PULL_MESSAGE: pull.PullHeader,
    RequestCode.RECALL_MESSAGE: send.RecallHeader,
    RequestCode.QUERY_ASSIGNMENT: NoHeader,
    RequestCode.SET_MESSAGE_REQUEST_MODE: NoHeader,
    RequestCode.GET_BROKER_MEMBER_GROUP: nameserver.MemberGroupHeader,
    RequestCode.BROKER_HEARTBEAT: nameserver.BrokerHeartbeatHeader,
    RequestCode.POP_MESSAGE: pop.PopHeader,
    RequestCode.ACK_MESSAGE: pop.AckHeader,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: pop.ChangeInvisibleHeader,
    RequestCode.BATCH_ACK_MESSAGE: NoHeader,
    RequestCode.PEEK_MESSAGE: pop.PeekHeader,
    RequestCode.NOTIFICATION: pop.NotificationHeader,
    RequestCode.POLLING_INFO: pop.PollingInfoHeader,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: NoHeader,
    RequestCode.AUTH_CREATE_USER: access.UserHeader,
    RequestCode.AUTH_UPDATE_USER: access.UserHeader,
    RequestCode.AUTH_DELETE_USER: access.UserHeader,
    RequestCode.AUTH_GET_USER: access.UserHeader,
    RequestCode.AUTH_LIST_USER: access.ListUsersHeader,
    RequestCode.AUTH_CREATE_ACL: access.AclHeader,
    RequestCode.AUTH_UPDATE_ACL: access.AclHeader,
    RequestCode.AUTH_DELETE_ACL: access.DeleteAclHeader,
    RequestCode.AUTH_GET_ACL: access.AclHeader,
    RequestCode.AUTH_LIST_ACL: access.ListAclsHeader,
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: access.PlainAccessHeader,
    RequestCode.DELETE_ACL_CONFIG: access.AccessKeyHeader,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: NoHeader,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: NoHeader,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: NoHeader,
    RequestCode.SCAN_DELAYS: admin.ScanDelaysHeader,
    RequestCode.DESCRIBE_DELAYS: admin.DescribeHeader,
    RequestCode.CANCEL_DELAY: admin.NamedHeader,
    RequestCode.DELIVER_DELAY: admin.NamedHeader,
    RequestCode.CHECK_LOG: admin.CheckLogHeader,
    RequestCode.LIST_HALVES: admin.ListHalvesHeader,
    RequestCode.DESCRIBE_HALVES: admin.DescribeHeader,
    RequestCode.RESOLVE_HALF: admin.ResolveHalfHeader,
    RequestCode.LIST_DEAD_LETTER_QUEUES: admin.ListDeadLettersHeader,
    RequestCode.READ_DEAD_LETTERS: admin.ReadDeadLettersHeader,
    RequestCode.RESEND_DEAD_LETTER: admin.ResendDeadLetterHeader,
    RequestCode.COUNT_EMPTY_OFFSETS: NoHeader,
}
"""The header of each request. Headers of other requests are not read."""

ANSWERS: Final[dict[int, type[msgspec.Struct]]] = {
    RequestCode.SEND_MESSAGE: send.SentHeader,
    RequestCode.SEND_MESSAGE_V2: send.SentHeader,
    RequestCode.SEND_BATCH_MESSAGE: send.SentHeader,
    RequestCode.SEND_REPLY_MESSAGE: send.SentHeader,
    RequestCode.SEND_REPLY_MESSAGE_V2: send.SentHeader,
    RequestCode.PULL_MESSAGE: pull.PulledHeader,
    RequestCode.LITE_PULL_MESSAGE: pull.PulledHeader,
    RequestCode.QUERY_MESSAGE: query.QueriedHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offsets.OffsetAnswer,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offsets.OffsetAnswer,
    RequestCode.GET_MAX_OFFSET: offsets.OffsetAnswer,
    RequestCode.GET_MIN_OFFSET: offsets.OffsetAnswer,
    RequestCode.GET_EARLIEST_MSG_STORETIME: offsets.TimestampAnswer,
    RequestCode.HEART_BEAT: clients.HeartbeatAnswer,
    RequestCode.GET_KV_CONFIG: nameserver.ValueAnswer,
    RequestCode.REGISTER_BROKER: nameserver.RegisteredAnswer,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: nameserver.WipedAnswer,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: nameserver.AddedAnswer,
    RequestCode.QUERY_DATA_VERSION: nameserver.DataVersionAnswer,
    RequestCode.RECALL_MESSAGE: send.RecalledHeader,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: access.AclVersionAnswer,
    RequestCode.POP_MESSAGE: pop.PoppedHeader,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: pop.ChangedInvisibleHeader,
    RequestCode.PEEK_MESSAGE: pop.PoppedHeader,
    RequestCode.NOTIFICATION: pop.NotifiedHeader,
    RequestCode.POLLING_INFO: pop.PollingInfoAnswer,
}
"""The header of the response to a request; other responses have no fields."""


def read(command: Command, header: type[H]) -> H:
    """The fields of a command with their types, or MalformedRequest."""
    if isinstance(command.header, header):
        return command.header
    try:
        return msgspec.convert(command.fields, header, strict=False)
    except msgspec.ValidationError as wrong:
        raise MalformedRequest(request_name(command.code), str(wrong)) from None


def write(header: msgspec.Struct) -> Fields:
    """A header's fields as strings by name; None is omitted, as Java omits null."""
    fields: Fields = {}
    values: dict[str, Any] = msgspec.to_builtins(header)
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            fields[name] = "true" if value else "false"
        else:
            fields[name] = value if isinstance(value, str) else str(value)
    return fields
