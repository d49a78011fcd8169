"""RocketMQ requests about clients, topics and name servers at their worst, for `bench.requests`.

`DELETIONS` remove what other requests need, and so come last.
"""

import json
import socket

from bench.requests.messages import heavy_id
from bench.requests.remoting import TEXT, frame, registration, row
from bench.requests.world import GROUP_OF_ALL, SECONDS_MAX, WIDE, Loaded, Request, tell
from rockgate.protocol.remoting.codes import RequestCode

R = RequestCode
CROWD = "crowd"
MEMBERS = 4_000
RULES = " OR ".join(f"p{number} = {number}" for number in range(5_000))


def _beat(number: object) -> bytes:
    """A member of a broadcasting group, whose arrival notifies no other."""
    consumer = {"groupName": CROWD, "messageModel": "BROADCASTING", "subscriptionDataSet": []}
    beat = {
        "clientID": f"client-{number}",
        "consumerDataSet": [consumer],
        "producerDataSet": [{"groupName": CROWD}],
    }
    return frame(R.HEART_BEAT, {}, json.dumps(beat).encode())


def _crowd(world: Loaded) -> None:
    """Very many clients in one group, each with a connection."""
    count = MEMBERS * world.size.topics // 10_000 if world.listeners else 0
    for number in range(len(world.members), count):
        member = socket.create_connection(world.listeners["remoting"], timeout=SECONDS_MAX)
        world.members.append(member)
        tell(member, _beat(number))


def _among(code: RequestCode, fields: dict[str, object]) -> Request:
    def make(world: Loaded) -> list[bytes]:
        _crowd(world)
        return [frame(code, fields)]

    return Request(name=f"{int(code)} {code.name}, 4,000 members", listener="remoting", make=make)


def _asked(code: RequestCode) -> Request:
    """A request that is forwarded to a client: its sender, which is the last of very many."""

    def make(world: Loaded) -> list[bytes]:
        _crowd(world)
        fields = {"consumerGroup": CROWD, "clientId": "client-asked", "msgId": heavy_id(world)}
        return [_beat("asked"), frame(code, fields)]

    return Request(name=f"{int(code)} {code.name}, 4,000 members", listener="remoting", make=make)


def _status(world: Loaded) -> list[bytes]:
    _crowd(world)
    fields = {"topic": WIDE, "group": CROWD, "clientAddr": "client-asked"}
    return [_beat("asked"), frame(R.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)]


def _check(world: Loaded) -> list[bytes]:
    subscription = {"topic": WIDE, "subString": RULES, "expressionType": "SQL92"}
    body = {"clientId": "c", "group": "g", "subscriptionData": subscription}
    return [frame(R.CHECK_CLIENT_CONFIG, {}, json.dumps(body).encode())]


def _put(world: Loaded) -> list[bytes]:
    fields = {"namespace": "n", "key": "0", "value": TEXT}
    return [frame(R.PUT_KV_CONFIG, fields)]


BROKER = {
    "brokerName": "other",
    "brokerAddr": "127.0.0.1:1",
    "clusterName": "c",
    "brokerId": 0,
}
WIDE_TOPIC = {"readQueueNums": 1_000, "writeQueueNums": 1_000, "perm": 6, "defaultTopic": "TBW102"}
VERSION = b'{"counter":1,"stateVersion":0,"timestamp":1}'
LINES = "\n".join(f"name{number}=value" for number in range(4_000)).encode()

REQUESTS: tuple[Request, ...] = (
    _among(R.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": CROWD}),
    _among(R.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": CROWD}),
    _among(R.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": CROWD}),
    _among(R.UNREGISTER_CLIENT, {"clientID": "c", "consumerGroup": CROWD, "producerGroup": CROWD}),
    _asked(R.GET_CONSUMER_RUNNING_INFO),
    _asked(R.CONSUME_MESSAGE_DIRECTLY),
    Request(
        name="223 INVOKE_BROKER_TO_GET_CONSUMER_STATUS, 4,000 members",
        listener="remoting",
        make=_status,
    ),
    Request(name="46 CHECK_CLIENT_CONFIG, 85 KB of rules", listener="remoting", make=_check),
    row(R.GET_TOPIC_CONFIG, {"topic": WIDE}),
    row(R.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": GROUP_OF_ALL}),
    row(
        R.QUERY_CORRECTION_OFFSET,
        {"topic": WIDE, "compareGroup": GROUP_OF_ALL, "filterGroups": TEXT},
        what="10,000 queues, 60 KB of groups",
    ),
    row(
        R.UPDATE_AND_GET_GROUP_FORBIDDEN,
        {"topic": "forbidden", "group": "g", "readable": False},
        is_changing=True,
    ),
    row(R.GET_BROKER_HA_STATUS),
    row(R.GET_BROKER_CONFIG),
    Request(
        name="25 UPDATE_BROKER_CONFIG, 50 KB",
        listener="remoting",
        make=lambda _: [frame(R.UPDATE_BROKER_CONFIG, {}, LINES)],
    ),
    row(R.TRIGGER_DELETE_FILES),
    row(R.CLEAN_EXPIRED_CONSUMEQUEUE),
    row(R.CLEAN_UNUSED_TOPIC),
    row(R.DELETE_EXPIRED_COMMITLOG),
    row(
        R.UPDATE_AND_CREATE_TOPIC,
        {"topic": "broad", **WIDE_TOPIC},
        what="1,000 queues",
        is_changing=True,
    ),
    Request(name="100 PUT_KV_CONFIG, 60 KB", listener="namesrv", make=_put),
    row(R.GET_KV_CONFIG, {"namespace": "n", "key": "0"}, listener="namesrv"),
    row(R.DELETE_KV_CONFIG, {"namespace": "n", "key": "0"}, listener="namesrv"),
    Request(
        name="322 QUERY_DATA_VERSION, 40,000 topics",
        listener="namesrv",
        make=lambda w: [*registration(w), frame(R.QUERY_DATA_VERSION, BROKER, VERSION)],
    ),
    row(R.BROKER_HEARTBEAT, BROKER, listener="namesrv"),
    row(R.GET_BROKER_MEMBER_GROUP, {"clusterName": "c", "brokerName": "other"}, listener="namesrv"),
    row(R.DELETE_TOPIC_IN_NAMESRV, {"topic": "theirs-0"}, listener="namesrv"),
    Request(
        name="104 UNREGISTER_BROKER, 40,000 topics",
        listener="namesrv",
        make=lambda w: [*registration(w), frame(R.UNREGISTER_BROKER, BROKER)],
    ),
    row(R.GET_UNIT_TOPIC_LIST, listener="namesrv"),
    row(R.GET_HAS_UNIT_SUB_TOPIC_LIST, listener="namesrv"),
    row(R.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, listener="namesrv"),
    row(R.GET_NAMESRV_CONFIG, listener="namesrv"),
    Request(
        name="318 UPDATE_NAMESRV_CONFIG, 50 KB",
        listener="namesrv",
        make=lambda _: [frame(R.UPDATE_NAMESRV_CONFIG, {}, LINES)],
    ),
)
DELETIONS: tuple[Request, ...] = (
    row(
        R.DELETE_SUBSCRIPTIONGROUP,
        {"groupName": GROUP_OF_ALL, "cleanOffset": "true"},
        what="offsets in all topics",
        is_changing=True,
    ),
    row(R.DELETE_TOPIC_IN_BROKER, {"topic": WIDE}, what="10,000 queues", is_changing=True),
)
