"""The largest requests of RocketMQ remoting and of the name server, for `bench.requests`.

A row is a request code at its legal worst; `frame` encodes it. Rows for the name server have the
listener "namesrv", those for the broker "remoting".
"""

import base64
import json
from collections.abc import Mapping

from bench.requests.world import GROUP_OF_ALL, WIDE, Loaded, Request
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command, encode
from rockgate.protocol.remoting.message import encode_batch

BEAT_MAX = 256 << 10
LOCKS_MAX = 512 << 10
TEXT = "x" * 60_000
LISTED = range(1_000)
HANDLE = "0 1 1 0 0 broker 0 0"


def frame(
    code: RequestCode, fields: Mapping[str, object] | None = None, body: bytes = b""
) -> bytes:
    """Encode a request."""
    texts = {name: str(value) for name, value in (fields or {}).items()}
    return encode(Command(code=code, fields=texts, body=body)) + body


def row(
    code: RequestCode,
    fields: Mapping[str, object] | None = None,
    *,
    what: str = "",
    listener: str = "remoting",
    is_changing: bool = False,
) -> Request:
    """A request without a body."""
    return Request(
        name=f"{int(code)} {code.name}{what and ', ' + what}",
        listener=listener,
        make=lambda _: [frame(code, fields)],
        is_changing=is_changing,
    )


def _batch_ack(_: Loaded) -> list[bytes]:
    """As many acknowledgements as one request may have."""
    ack = {
        "c": "poppers",
        "t": WIDE,
        "r": "0",
        "so": 0,
        "q": 0,
        "rq": 0,
        "pt": 1,
        "it": 1,
        "b": base64.b64encode(b"\xff" * 64).decode(),
    }
    return [frame(RequestCode.BATCH_ACK_MESSAGE, {}, json.dumps({"acks": [ack] * 64}).encode())]


def _query_assignment(_: Loaded) -> list[bytes]:
    asked = {
        "clientId": "bench",
        "consumerGroup": "poppers",
        "topic": WIDE,
        "messageModel": "BROADCASTING",
        "strategyName": "AVG",
    }
    return [frame(RequestCode.QUERY_ASSIGNMENT, {}, json.dumps(asked).encode())]


def _set_mode(_: Loaded) -> list[bytes]:
    mode = {"topic": WIDE, "consumerGroup": "poppers", "mode": "PULL", "popShareQueueNum": 0}
    return [frame(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, json.dumps(mode).encode())]


def _topic_list(_: Loaded) -> list[bytes]:
    topics = [{"topicName": f"listed-{n}", "readQueueNums": 1, "writeQueueNums": 1} for n in LISTED]
    body = json.dumps({"topicConfigList": topics}).encode()
    return [frame(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, {}, body)]


def _group_list(_: Loaded) -> list[bytes]:
    groups = [{"groupName": f"listed-{number}"} for number in LISTED]
    body = json.dumps({"groupConfigList": groups}).encode()
    return [frame(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, body)]


def _heartbeat(consumers: int, producers: int, topics: int) -> bytes:
    """Groups with long names, each with a new retry topic."""
    groups = [
        {
            "groupName": f"g-{number}-" + "n" * 60,
            "subscriptionDataSet": [
                {"topic": f"t-{topic}", "subString": "*"} for topic in range(topics)
            ],
        }
        for number in range(consumers)
    ]
    names = [{"groupName": f"p-{number}"} for number in range(producers)]
    beat = {"clientID": "bench", "consumerDataSet": groups, "producerDataSet": names}
    body = json.dumps(beat).encode()
    return frame(RequestCode.HEART_BEAT, {}, body)


def _malformed(size: int) -> bytes:
    body = (b'{"clientID":"c","consumerDataSet":[' + b'{"groupName":"g"},' * (size // 18))[:size]
    return frame(RequestCode.HEART_BEAT, {}, body)


def _locks(code: RequestCode) -> bytes:
    """As many queues as a body may contain."""
    one = {"topic": "t", "brokerName": "b", "queueId": 10_000}
    count = (LOCKS_MAX - 200) // (len(json.dumps(one)) + 2)
    queues = [{**one, "queueId": number} for number in range(count)]
    wanted = {"consumerGroup": "g", "clientId": "c", "mqSet": queues}
    return frame(code, {}, json.dumps(wanted).encode())


def _settings() -> bytes:
    attributes = {f"a{number}": "" for number in range(1_200)}
    body = json.dumps({"groupName": "set", "attributes": attributes}).encode()
    return frame(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)


def _pull(expression: str, kind: str = "SQL92") -> bytes:
    fields = {
        "consumerGroup": "set",
        "topic": "filtered",
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 1_024,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": expression,
        "subVersion": 0,
        "expressionType": kind,
    }
    return frame(RequestCode.PULL_MESSAGE, fields)


def _batch(count: int) -> bytes:
    """Messages with properties that a filter reads, and keys."""
    plain = b"".join(b"p%d\x01%d\x02" % (number, number) for number in range(20))
    keys = b"%bKEYS\x01k%d l%d\x02UNIQ_KEY\x01%032d\x02"
    body = encode_batch(
        [(0, b"x", keys % (plain, number, number, number)) for number in range(count)]
    )
    fields = {
        "a": "producers",
        "b": "filtered",
        "c": "TBW102",
        "d": 1,
        "e": 0,
        "f": 0,
        "g": 1_700_000_000_000,
        "h": 0,
        "i": "",
        "j": 0,
        "k": "false",
        "m": "true",
    }
    return frame(RequestCode.SEND_BATCH_MESSAGE, fields, body)


LARGE_FILTER = " OR ".join(f"p7 = {number}" for number in range(1_000, 1_990))


def _filtered(world: Loaded) -> list[bytes]:
    return [_batch(2_000), _pull(LARGE_FILTER)]


def _values(world: Loaded) -> list[bytes]:
    puts = [
        frame(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": str(number), "value": TEXT})
        for number in range(30)
    ]
    return [*puts, frame(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "n"})]


def _route(world: Loaded) -> list[bytes]:
    brokers = [
        {"brokerName": f"b{number}", "cluster": "c", "brokerAddrs": {"0": "h:1"}}
        for number in range(200)
    ]
    body = json.dumps({"brokerDatas": brokers, "queueDatas": []}).encode().replace(b'"0"', b"0")
    return [frame(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "t"}, body)]


def registration(world: Loaded) -> list[bytes]:
    """Another broker registers, with very many topics."""
    config = {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
    names = [f"theirs-{number}" for number in range(40_000 * len(world.topics) // 10_000)]
    table = {name: {**config, "topicName": name} for name in names}
    body = json.dumps({"topicConfigSerializeWrapper": {"topicConfigTable": table}}).encode()
    fields = {
        "brokerName": "other",
        "brokerAddr": "127.0.0.1:1",
        "clusterName": "c",
        "haServerAddr": "",
        "brokerId": 0,
    }
    return [frame(RequestCode.REGISTER_BROKER, fields, body[: 8 << 20])]


def _reset(world: Loaded) -> list[bytes]:
    fields = {"topic": WIDE, "group": GROUP_OF_ALL, "timestamp": 1, "isForce": "true"}
    return [frame(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)]


R = RequestCode
REQUESTS: tuple[Request, ...] = (
    row(R.GET_ALL_TOPIC_CONFIG),
    row(R.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    row(R.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {"maxGroupNum": 30_000}, what="30,000 of them"),
    row(R.GET_TOPIC_STATS_INFO, {"topic": WIDE}, what="10,000 queues"),
    row(R.GET_CONSUME_STATS, {"consumerGroup": GROUP_OF_ALL}, what="a group of all topics"),
    row(R.GET_BROKER_CONSUME_STATS, {"isOrder": "false"}),
    row(R.QUERY_TOPICS_BY_CONSUMER, {"group": GROUP_OF_ALL}),
    row(R.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": WIDE}, what="one group"),
    row(R.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "topic-00000"}, what="50,000 groups"),
    row(R.GET_BROKER_RUNTIME_INFO),
    row(R.VIEW_BROKER_STATS_DATA, {"statsName": "TOPIC_PUT_NUMS", "statsKey": WIDE}),
    row(R.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
    Request(
        name="222 INVOKE_BROKER_TO_RESET_OFFSET, 10,000 queues", listener="remoting", make=_reset
    ),
    row(
        R.CLONE_GROUP_OFFSET,
        {"srcGroup": GROUP_OF_ALL, "destGroup": "clone"},
        what="a group of all topics",
    ),
    Request(
        name="18 UPDATE_AND_CREATE_TOPIC_LIST, 1,000 topics",
        listener="remoting",
        make=_topic_list,
        is_changing=True,
    ),
    Request(
        name="225 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, 1,000 groups",
        listener="remoting",
        make=_group_list,
        is_changing=True,
    ),
    row(R.QUERY_CONSUME_TIME_SPAN, {"group": GROUP_OF_ALL, "topic": WIDE}, what="10,000 queues"),
    row(R.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": GROUP_OF_ALL, "topic": WIDE}),
    row(
        R.POP_MESSAGE,
        {
            "consumerGroup": "poppers",
            "topic": WIDE,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 60_000,
            "pollTime": 0,
            "bornTime": 0,
            "initMode": 1,
        },
        what="10,000 queues",
    ),
    row(
        R.NOTIFICATION,
        {
            "consumerGroup": "poppers",
            "topic": WIDE,
            "queueId": -1,
            "pollTime": 0,
            "bornTime": 0,
        },
        what="10,000 queues",
    ),
    row(
        R.PEEK_MESSAGE,
        {"consumerGroup": "poppers", "topic": WIDE, "queueId": -1, "maxMsgNums": 32},
        what="10,000 queues",
    ),
    row(R.POLLING_INFO, {"consumerGroup": "poppers", "topic": WIDE, "queueId": -1}),
    row(R.POP_ROLLBACK),
    row(
        R.ACK_MESSAGE,
        {"consumerGroup": "poppers", "topic": WIDE, "queueId": 0, "offset": 0, "extraInfo": HANDLE},
    ),
    row(
        R.CHANGE_MESSAGE_INVISIBLETIME,
        {
            "consumerGroup": "poppers",
            "topic": WIDE,
            "queueId": 0,
            "offset": 0,
            "extraInfo": HANDLE,
            "invisibleTime": 1,
        },
    ),
    Request(name="200151 BATCH_ACK_MESSAGE, 32,768 messages", listener="remoting", make=_batch_ack),
    Request(
        name="400 QUERY_ASSIGNMENT, 10,000 queues", listener="remoting", make=_query_assignment
    ),
    Request(
        name="401 SET_MESSAGE_REQUEST_MODE",
        listener="remoting",
        make=_set_mode,
        is_changing=True,
    ),
    row(R.GET_ALL_MESSAGE_REQUEST_MODE),
    Request(
        name="34 HEART_BEAT, 15 MB that are no JSON",
        listener="remoting",
        make=lambda _: [_malformed(15_000_000)],
    ),
    Request(
        name="34 HEART_BEAT, 256 KB that are no JSON",
        listener="remoting",
        make=lambda _: [_malformed(BEAT_MAX)],
    ),
    Request(
        name="34 HEART_BEAT, 1,000 groups with new retry topics",
        listener="remoting",
        make=lambda world: [_heartbeat(min(1_000, len(world.topics)), 0, 1)],
        is_changing=True,
    ),
    Request(
        name="34 HEART_BEAT, 1,000 producers",
        listener="remoting",
        make=lambda _: [_heartbeat(0, 1_000, 0)],
    ),
    Request(
        name="328 GET_ALL_PRODUCER_INFO",
        listener="remoting",
        make=lambda _: [_heartbeat(0, 1_000, 0), frame(R.GET_ALL_PRODUCER_INFO)],
    ),
    Request(
        name="41 LOCK_BATCH_MQ, 512 KB",
        listener="remoting",
        make=lambda _: [_locks(R.LOCK_BATCH_MQ)],
    ),
    Request(
        name="42 UNLOCK_BATCH_MQ, 512 KB",
        listener="remoting",
        make=lambda _: [_locks(R.UNLOCK_BATCH_MQ)],
    ),
    Request(
        name="200 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, 16 KB",
        listener="remoting",
        make=lambda _: [_settings()],
    ),
    Request(
        name="11 PULL_MESSAGE, by a group with large settings",
        listener="remoting",
        make=lambda _: [_settings(), _batch(10), _pull("*", "TAG")],
    ),
    Request(name="11 PULL_MESSAGE, a filter of 13 KB", listener="remoting", make=_filtered),
    Request(
        name="11 PULL_MESSAGE, 16 KB of tags",
        listener="remoting",
        make=lambda _: [_batch(10), _pull("||".join(map(str, range(2_700))), "TAG")],
    ),
    Request(
        name="320 SEND_BATCH_MESSAGE, 4,096 messages",
        listener="remoting",
        make=lambda _: [_batch(4_096)],
    ),
    row(R.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, listener="namesrv"),
    row(R.GET_TOPICS_BY_CLUSTER, {"cluster": "DefaultCluster"}, listener="namesrv"),
    row(R.GET_SYSTEM_TOPIC_LIST_FROM_NS, listener="namesrv"),
    row(R.GET_BROKER_CLUSTER_INFO, listener="namesrv"),
    row(R.GET_ROUTEINFO_BY_TOPIC, {"topic": WIDE}, listener="namesrv"),
    Request(name="219 GET_KVLIST_BY_NAMESPACE, 1.8 MB", listener="namesrv", make=_values),
    Request(name="217 REGISTER_TOPIC_IN_NAMESRV, 16 KB", listener="namesrv", make=_route),
    Request(name="103 REGISTER_BROKER, 40,000 topics", listener="namesrv", make=registration),
    row(R.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "rockgate"}, listener="namesrv"),
    row(R.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "rockgate"}, listener="namesrv"),
)
