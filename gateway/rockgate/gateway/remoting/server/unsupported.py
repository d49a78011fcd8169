"""Why request codes of RocketMQ's are not served: the text behind "request type … not supported".

An operator reads it in what mqadmin prints. A code that is served needs no reason; one that gets a
processor later loses its reason here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rockgate.protocol.remoting.codes import RequestCode as Code

_TO_CLIENTS: Final = "brokers send it to clients"
_NO_SLAVES: Final = "there is one copy of the log, and neither slaves nor a controller"
_NO_CONTAINER: Final = "it is for broker containers, and this is a single broker"
_NO_ROCKSDB: Final = "queues and settings are not stored in RocksDB"
_NO_STATIC: Final = "there are no static topics: a topic's queues stay on its broker"
_NO_LITE: Final = "there are no lite topics"
_NO_COLD_LIMITS: Final = "reads of old messages are not limited by group"
_NO_FILTER_SERVERS: Final = "there are no class filters; subscribe with tags or an SQL92 expression"
_RETIRED: Final = "RocketMQ's own brokers do not serve it any longer"

_BY_REASON: Final[Iterable[tuple[str, Iterable[int]]]] = (
    (
        _TO_CLIENTS,
        (
            Code.CHECK_TRANSACTION_STATE,
            Code.NOTIFY_CONSUMER_IDS_CHANGED,
            Code.RESET_CONSUMER_CLIENT_OFFSET,
            Code.GET_CONSUMER_STATUS_FROM_CLIENT,
            Code.PUSH_REPLY_MESSAGE_TO_CLIENT,
            Code.NOTIFY_UNSUBSCRIBE_LITE,
        ),
    ),
    (
        _NO_SLAVES,
        (
            # What a slave copies from its master.
            Code.GET_ALL_CONSUMER_OFFSET,
            Code.GET_ALL_DELAY_OFFSET,
            Code.GET_TIMER_CHECK_POINT,
            Code.NOTIFY_MIN_BROKER_ID_CHANGE,
            Code.EXCHANGE_BROKER_HA_INFO,
            Code.RESET_MASTER_FLUSH_OFFSET,
            *(code for code in Code if 1001 <= code <= 1018),
        ),
    ),
    (_NO_CONTAINER, (Code.ADD_BROKER, Code.REMOVE_BROKER)),
    # 50 to 54 are those of 4.9.
    (_NO_ROCKSDB, (Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, Code.EXPORT_ROCKSDB_CONFIG_TO_JSON)),
    (_NO_STATIC, (Code.UPDATE_AND_CREATE_STATIC_TOPIC,)),
    (
        _NO_LITE,
        (
            Code.POP_LITE_MESSAGE,
            Code.LITE_SUBSCRIPTION_CTL,
            Code.ACK_LITE_MESSAGE,
            Code.GET_BROKER_LITE_INFO,
            Code.GET_PARENT_TOPIC_INFO,
            Code.GET_LITE_TOPIC_INFO,
            Code.GET_LITE_CLIENT_INFO,
            Code.GET_LITE_GROUP_INFO,
            Code.TRIGGER_LITE_DISPATCH,
        ),
    ),
    (
        _NO_COLD_LIMITS,
        (
            Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.GET_COLD_DATA_FLOW_CTR_INFO,
        ),
    ),
    ("the server chooses how it reads ahead", (Code.SET_COMMITLOG_READ_MODE,)),
    ("there is one timer, and none to switch to", (Code.SWITCH_TIMER_ENGINE,)),
    (
        "states of messages in flight are in the log, and none are in an older store",
        (Code.POP_ROLLBACK,),
    ),
    (_NO_FILTER_SERVERS, (Code.REGISTER_FILTER_SERVER, Code.REGISTER_MESSAGE_FILTER_CLASS)),
    (
        _RETIRED,
        (
            Code.QUERY_BROKER_OFFSET,
            Code.GET_TOPIC_CONFIG_LIST,
            Code.GET_TOPIC_NAME_LIST,
            Code.GET_CLIENT_CONFIG,
            Code.SUSPEND_CONSUMER,
            Code.RESUME_CONSUMER,
            Code.RESET_CONSUMER_OFFSET_IN_CONSUMER,
            Code.RESET_CONSUMER_OFFSET_IN_BROKER,
            Code.ADJUST_CONSUMER_THREAD_POOL,
            Code.WHO_CONSUME_THE_MESSAGE,
        ),
    ),
)

REASONS: Final = {int(code): reason for reason, codes in _BY_REASON for code in codes}
"""By request code."""


def remark(code: int) -> str:
    """Return the text for a request that is not served: RocketMQ's, and the reason."""
    known = REASONS.get(code)
    text = f" request type {code} not supported"
    return text if known is None else f"{text}: {known}"
