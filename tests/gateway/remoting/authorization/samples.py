"""One request of every code about the topic `orders` and the group `readers`, and users to ask it.

The recorder sends the same requests to Apache RocketMQ, so that the answers can be compared.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from rockgate.protocol.remoting.bodies.access import PolicyEntryInfo
from rockgate.protocol.remoting.codes import RequestCode

TOPIC: Final = "orders"
GROUP: Final = "readers"
SECRET: Final = "12345678"
ADMIN: Final = "admin"

Sample = tuple[dict[str, str], bytes]


class Case(NamedTuple):
    """A user who asks, and what was granted."""

    user: str | None
    entries: tuple[PolicyEntryInfo, ...] = ()


def _allow(resource: str, decision: str = "Allow", *actions: str) -> PolicyEntryInfo:
    return PolicyEntryInfo(resource=resource, actions=[*(actions or ("All",))], decision=decision)


MINE: Final = (f"Topic:{TOPIC}", f"Group:{GROUP}", "Cluster:*")
CASES: Final = {
    "no user": Case(None),
    "no grant": Case("nogrant"),
    "wrong resource": Case("wrong", (_allow("Topic:others"), _allow("Group:others"))),
    "grant": Case("granted", tuple(map(_allow, MINE))),
    "deny": Case("denied", tuple(_allow(each, "Deny") for each in MINE)),
}


def _json(**values: Any) -> bytes:
    return json.dumps(values).encode()


_SEND_V2 = {
    "a": "senders",
    "b": TOPIC,
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "0",
    "h": "0",
    "i": "",
    "j": "0",
    "k": "false",
    "m": "false",
}
_SEND = {
    "producerGroup": "senders",
    "topic": TOPIC,
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "0",
    "flag": "0",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}
_PULL = {
    "consumerGroup": GROUP,
    "topic": TOPIC,
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "1",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "0",
}
_QUEUE = {"topic": TOPIC, "queueId": "0"}
_TOPIC = {"topic": TOPIC}
_BOTH = {"topic": TOPIC, "group": GROUP}
_POP = {
    "consumerGroup": GROUP,
    "topic": TOPIC,
    "queueId": "0",
    "maxMsgNums": "1",
    "invisibleTime": "10000",
    "pollTime": "0",
    "bornTime": "0",
    "initMode": "0",
}
_ACK = {
    "consumerGroup": GROUP,
    "topic": TOPIC,
    "queueId": "0",
    "extraInfo": "0 1794800265333 60000 2 0 broker-a 0 0",
    "offset": "0",
}
_LOCK = _json(
    clientId="c", consumerGroup=GROUP, mqSet=[{"brokerName": "b", "queueId": 0, "topic": TOPIC}]
)
_USER = {"username": "someone"}
_SUBJECT = {"subject": "User:granted"}
_ACL = _json(
    subject="User:granted",
    policies=[
        {
            "policyType": "Custom",
            "entries": [{"resource": "Topic:orders", "actions": ["All"], "decision": "Allow"}],
        }
    ],
)
_NOTHING: Sample = ({}, b"")
_PLACE = "00000000000000000000000000000000"

C = RequestCode
BROKER: Final[dict[RequestCode, Sample]] = {
    C.SEND_MESSAGE: (_SEND, b"x"),
    C.PULL_MESSAGE: (_PULL, b""),
    C.QUERY_MESSAGE: (
        {
            "topic": TOPIC,
            "key": "k",
            "maxNum": "1",
            "beginTimestamp": "0",
            "endTimestamp": "9999999999999",
        },
        b"",
    ),
    C.QUERY_CONSUMER_OFFSET: ({"consumerGroup": GROUP, **_QUEUE}, b""),
    C.UPDATE_CONSUMER_OFFSET: ({"consumerGroup": GROUP, **_QUEUE, "commitOffset": "0"}, b""),
    C.UPDATE_AND_CREATE_TOPIC: (
        {
            "topic": TOPIC,
            "defaultTopic": "TBW102",
            "readQueueNums": "4",
            "writeQueueNums": "4",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        },
        b"",
    ),
    C.GET_ALL_TOPIC_CONFIG: _NOTHING,
    C.UPDATE_BROKER_CONFIG: _NOTHING,
    C.GET_BROKER_CONFIG: _NOTHING,
    C.TRIGGER_DELETE_FILES: _NOTHING,
    C.CLEAN_EXPIRED_CONSUMEQUEUE: _NOTHING,
    C.CLEAN_UNUSED_TOPIC: _NOTHING,
    C.DELETE_EXPIRED_COMMITLOG: _NOTHING,
    C.GET_ALL_PRODUCER_INFO: _NOTHING,
    C.GET_BROKER_RUNTIME_INFO: _NOTHING,
    C.VIEW_BROKER_STATS_DATA: ({"statsName": "TOPIC_PUT_NUMS", "statsKey": TOPIC}, b""),
    C.SEARCH_OFFSET_BY_TIMESTAMP: ({**_QUEUE, "timestamp": "0"}, b""),
    C.GET_MAX_OFFSET: (_QUEUE, b""),
    C.GET_MIN_OFFSET: (_QUEUE, b""),
    C.GET_EARLIEST_MSG_STORETIME: (_QUEUE, b""),
    C.VIEW_MESSAGE_BY_ID: ({**_TOPIC, "offset": "0"}, b""),
    C.HEART_BEAT: (
        {},
        _json(
            clientID="c",
            consumerDataSet=[
                {
                    "groupName": GROUP,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "CLUSTERING",
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "subscriptionDataSet": [{"topic": TOPIC, "subString": "*"}],
                    "unitMode": False,
                }
            ],
            producerDataSet=[{"groupName": "senders"}],
        ),
    ),
    C.UNREGISTER_CLIENT: ({"clientID": "c", "consumerGroup": GROUP}, b""),
    C.CONSUMER_SEND_MSG_BACK: (
        {"offset": "0", "group": GROUP, "delayLevel": "1", "originTopic": TOPIC},
        b"",
    ),
    C.END_TRANSACTION: (
        {
            "producerGroup": "senders",
            "topic": TOPIC,
            "tranStateTableOffset": "0",
            "commitLogOffset": "0",
            "commitOrRollback": "12",
            "fromTransactionCheck": "false",
            "msgId": "m",
            "transactionId": "t",
        },
        b"",
    ),
    C.RECALL_MESSAGE: ({**_TOPIC, "recallHandle": "x"}, b""),
    C.GET_CONSUMER_LIST_BY_GROUP: ({"consumerGroup": GROUP}, b""),
    C.LOCK_BATCH_MQ: ({}, _LOCK),
    C.UNLOCK_BATCH_MQ: ({}, _LOCK),
    C.CHECK_CLIENT_CONFIG: (
        {},
        _json(
            clientId="c",
            group=GROUP,
            subscriptionData={"topic": TOPIC, "subString": "*", "expressionType": "TAG"},
        ),
    ),
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: ({}, _json(groupName=GROUP)),
    C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _NOTHING,
    C.GET_TOPIC_STATS_INFO: (_TOPIC, b""),
    C.GET_CONSUMER_CONNECTION_LIST: ({"consumerGroup": GROUP}, b""),
    C.GET_PRODUCER_CONNECTION_LIST: ({"producerGroup": "senders"}, b""),
    C.DELETE_SUBSCRIPTIONGROUP: ({"groupName": GROUP}, b""),
    C.GET_CONSUME_STATS: ({"consumerGroup": GROUP, **_TOPIC}, b""),
    C.GET_BROKER_CONSUME_STATS: ({"isOrder": "false"}, b""),
    C.QUERY_CONSUME_QUEUE: ({**_QUEUE, "index": "0", "count": "1", "consumerGroup": GROUP}, b""),
    C.DELETE_TOPIC_IN_BROKER: (_TOPIC, b""),
    C.INVOKE_BROKER_TO_RESET_OFFSET: ({**_BOTH, "timestamp": "0", "isForce": "true"}, b""),
    C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: (_BOTH, b""),
    C.QUERY_TOPIC_CONSUME_BY_WHO: (_TOPIC, b""),
    C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _NOTHING,
    C.GET_CONSUMER_RUNNING_INFO: ({"consumerGroup": GROUP, "clientId": "c"}, b""),
    C.CONSUME_MESSAGE_DIRECTLY: (
        {
            "consumerGroup": GROUP,
            "clientId": "c",
            "msgId": _PLACE,
            "brokerName": "b",
            **_TOPIC,
        },
        b"",
    ),
    C.CLONE_GROUP_OFFSET: ({"srcGroup": GROUP, "destGroup": GROUP, **_TOPIC}, b""),
    C.SEND_MESSAGE_V2: (_SEND_V2, b"x"),
    C.SEND_BATCH_MESSAGE: ({**_SEND_V2, "m": "true"}, b"x"),
    C.SEND_REPLY_MESSAGE: (_SEND, b"x"),
    C.SEND_REPLY_MESSAGE_V2: (_SEND_V2, b"x"),
    C.QUERY_TOPICS_BY_CONSUMER: ({"group": GROUP}, b""),
    C.GET_TOPIC_CONFIG: (_TOPIC, b""),
    C.GET_SUBSCRIPTIONGROUP_CONFIG: ({"group": GROUP}, b""),
    C.LITE_PULL_MESSAGE: (_PULL, b""),
    C.UPDATE_AND_CREATE_TOPIC_LIST: ({}, _json(topicConfigList=[{"topicName": TOPIC}])),
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: (
        {},
        _json(groupConfigList=[{"groupName": GROUP}]),
    ),
    C.QUERY_SUBSCRIPTION_BY_CONSUMER: (_BOTH, b""),
    C.QUERY_CONSUME_TIME_SPAN: (_BOTH, b""),
    C.QUERY_CORRECTION_OFFSET: ({**_TOPIC, "compareGroup": GROUP}, b""),
    C.UPDATE_AND_GET_GROUP_FORBIDDEN: (_BOTH, b""),
    C.RESUME_CHECK_HALF_MESSAGE: ({**_TOPIC, "msgId": _PLACE}, b""),
    C.GET_BROKER_HA_STATUS: _NOTHING,
    C.GET_TIMER_METRICS: _NOTHING,
    C.QUERY_ASSIGNMENT: (
        {},
        _json(clientId="c", consumerGroup=GROUP, topic=TOPIC, strategyName="AVG"),
    ),
    C.SET_MESSAGE_REQUEST_MODE: (
        {},
        _json(consumerGroup=GROUP, topic=TOPIC, mode="PULL", popShareQueueNum=0),
    ),
    C.GET_ALL_MESSAGE_REQUEST_MODE: _NOTHING,
    C.POP_MESSAGE: (_POP, b""),
    C.ACK_MESSAGE: (_ACK, b""),
    C.BATCH_ACK_MESSAGE: (
        {},
        _json(
            brokerName="b",
            acks=[
                {
                    "c": GROUP,
                    "t": TOPIC,
                    "r": "0",
                    "so": 0,
                    "q": 0,
                    "rq": 0,
                    "pt": 0,
                    "it": 0,
                    "b": "AQ==",
                }
            ],
        ),
    ),
    C.CHANGE_MESSAGE_INVISIBLETIME: ({**_ACK, "invisibleTime": "10000"}, b""),
    C.PEEK_MESSAGE: (_POP, b""),
    C.NOTIFICATION: (_POP, b""),
    C.POLLING_INFO: ({"consumerGroup": GROUP, **_QUEUE}, b""),
    C.POP_ROLLBACK: _NOTHING,
    C.AUTH_CREATE_USER: (_USER, _json(username="someone", password="secret12")),
    C.AUTH_UPDATE_USER: (_USER, _json(username="someone", password="secret34")),
    C.AUTH_DELETE_USER: (_USER, b""),
    C.AUTH_GET_USER: (_USER, b""),
    C.AUTH_LIST_USER: _NOTHING,
    C.AUTH_CREATE_ACL: (_SUBJECT, _ACL),
    C.AUTH_UPDATE_ACL: (_SUBJECT, _ACL),
    C.AUTH_GET_ACL: (_SUBJECT, b""),
    C.AUTH_LIST_ACL: _NOTHING,
    C.AUTH_DELETE_ACL: ({"subject": "User:nobody"}, b""),
    C.UPDATE_AND_CREATE_ACL_CONFIG: ({"accessKey": "someone", "secretKey": "secret12"}, b""),
    C.DELETE_ACL_CONFIG: ({"accessKey": "someone"}, b""),
    C.GET_BROKER_CLUSTER_ACL_INFO: _NOTHING,
    C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ({"globalWhiteAddrs": "10.0.0.1"}, b""),
    C.GET_BROKER_CLUSTER_ACL_CONFIG: _NOTHING,
    C.SCAN_DELAYS: _NOTHING,
    C.DESCRIBE_DELAYS: ({"preview": "10"}, b"[]"),
    C.CANCEL_DELAY: ({"id": "x"}, b""),
    C.DELIVER_DELAY: ({"id": "x"}, b""),
    C.CHECK_LOG: ({"action": "stop"}, b""),
    C.LIST_HALVES: _NOTHING,
    C.DESCRIBE_HALVES: _NOTHING,
    C.RESOLVE_HALF: ({"id": "x", "commit": "true"}, b""),
    C.LIST_DEAD_LETTER_QUEUES: _NOTHING,
    C.READ_DEAD_LETTERS: ({"group": GROUP}, b""),
    C.RESEND_DEAD_LETTER: ({"group": GROUP, "offset": "0", "to": TOPIC}, b""),
    C.COUNT_EMPTY_OFFSETS: _NOTHING,
}

NAMESERVER: Final[dict[RequestCode, Sample]] = {
    C.GET_ROUTEINFO_BY_TOPIC: (_TOPIC, b""),
}
