"""What each request to the name server needs; RocketMQ's own name server checks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rockgate.gateway.remoting.authorization.needs import (
    ALTER,
    DESCRIBE,
    Need,
    Needs,
    cluster,
    nothing,
    of_topic,
)
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.system_topics import AUTO_CREATE_TOPIC


def _route(command: Command) -> Iterable[Need]:
    name = command.fields.get("topic", "")
    # Producers ask for it before they send to a topic that does not exist yet.
    return () if name == AUTO_CREATE_TOPIC else (of_topic(name, DESCRIBE),)


NAMESERVER: Final[Mapping[RequestCode, Needs]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _route,
    RequestCode.GET_BROKER_CLUSTER_INFO: cluster(DESCRIBE),
    # They list what the client may see: `visible_topics`.
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: nothing,
    RequestCode.GET_TOPICS_BY_CLUSTER: nothing,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: cluster(DESCRIBE),
    RequestCode.GET_UNIT_TOPIC_LIST: nothing,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: nothing,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: nothing,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: cluster(ALTER),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: cluster(ALTER),
    RequestCode.REGISTER_BROKER: cluster(ALTER),
    RequestCode.UNREGISTER_BROKER: cluster(ALTER),
    RequestCode.BROKER_HEARTBEAT: cluster(ALTER),
    RequestCode.QUERY_DATA_VERSION: cluster(DESCRIBE),
    RequestCode.GET_BROKER_MEMBER_GROUP: cluster(DESCRIBE),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: cluster(ALTER),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: cluster(ALTER),
    RequestCode.PUT_KV_CONFIG: cluster(ALTER),
    RequestCode.GET_KV_CONFIG: cluster(DESCRIBE),
    RequestCode.DELETE_KV_CONFIG: cluster(ALTER),
    RequestCode.GET_KVLIST_BY_NAMESPACE: cluster(DESCRIBE),
    RequestCode.UPDATE_NAMESRV_CONFIG: cluster(ALTER),
    RequestCode.GET_NAMESRV_CONFIG: cluster(DESCRIBE),
}
