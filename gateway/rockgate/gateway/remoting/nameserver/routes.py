"""Routes: registered brokers, their topics, and when they expire.

A broker registers repeatedly; one that does not for a while, or whose connection is lost, loses its
routes. The broker of this process does not register: its state is read directly (`Local`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.nameserver import (
    BrokerData,
    ClusterInfo,
    MemberGroup,
    QueueData,
    RouteData,
)
from rockgate.protocol.remoting.bodies.topics import TopicConfig, TopicConfigTable
from rockgate.store.api.topics import READ, WRITE

MASTER_ID = 0
BROKERS_MAX = 1_000
TOPICS_MAX = 200_000


class Local(Protocol):
    """The broker of this process."""

    @property
    def broker_name(self) -> str:
        """Its name."""

    @property
    def cluster_name(self) -> str:
        """Its cluster's name."""

    def address(self, caller: Caller) -> str:
        """The address that the client should dial."""

    def topic(self, name: str) -> TopicConfig | None:
        """A topic by name."""

    def topic_names(self) -> Iterable[str]:
        """All topics."""

    def system_topic_names(self) -> Iterable[str]:
        """RocketMQ's system topics."""

    def wipe_write(self, is_wiped: bool) -> int:
        """Remove or restore the write permission of topics; returns how many there are."""


@dataclass(slots=True)
class Live:
    """A broker that has registered."""

    name: str
    cluster: str
    address: str
    broker_id: int
    caller: Caller
    seen_ms: int
    expiry_ms: int
    ha_address: str = ""
    version: DataVersion = field(default_factory=DataVersion)
    enables_acting_master: bool = False


def queues_of(broker: str, table: TopicConfigTable) -> dict[str, QueueData]:
    """The queues of each of a broker's topics."""
    return {
        name: QueueData(
            broker_name=broker,
            perm=config.perm,
            read_queue_nums=config.read_queue_nums,
            topic_sys_flag=config.topic_sys_flag,
            write_queue_nums=config.write_queue_nums,
        )
        for name, config in table.topic_config_table.items()
    }


class Routes:
    """All known routes. Time is a parameter."""

    def __init__(self, local: Local | None, expiry_ms: int, *, shares_topics: bool = True) -> None:
        """Without `shares_topics` a topic of our own broker is routed to no other broker."""
        self._local = local
        self._shares_topics = shares_topics
        self._expiry_ms = expiry_ms
        self._live: dict[tuple[str, str], Live] = {}
        self._topics: dict[str, dict[str, QueueData]] = {}

    # Requests of brokers

    def register(
        self,
        live: Live,
        table: TopicConfigTable | None,
        now_ms: int,
    ) -> tuple[str, str]:
        """Register a broker; returns the master's address and its replication address.

        ValueError if there are too many, or if it has the name of our own broker.
        """
        if self._local is not None and live.name == self._local.broker_name:
            raise ValueError(f"Broker name {live.name} is used by the built-in broker.")
        key = (live.cluster, live.address)
        known = self._live.get(key)
        if known is None and len(self._live) >= BROKERS_MAX:
            raise ValueError(f"The maximum of {BROKERS_MAX:,} brokers has been reached.")
        live.seen_ms = now_ms
        live.expiry_ms = live.expiry_ms or self._expiry_ms
        if table is not None:
            live.version = table.data_version
        self._live[key] = live
        if table is not None and live.broker_id == MASTER_ID:
            self._set_topics(live.name, queues_of(live.name, table))
        if live.broker_id == MASTER_ID:
            return "", ""
        master = self._master(live.cluster, live.name)
        return ("", "") if master is None else (master.address, master.ha_address)

    def add_topics(self, live: Live, queues: Mapping[str, QueueData]) -> bool:
        """Add topics of a registered broker; False once its connection is closed."""
        known = self._live.get((live.cluster, live.address))
        if known is None or known.caller is not live.caller:
            return False
        if live.broker_id == MASTER_ID:
            self._set_topics(live.name, queues)
        return True

    def register_topic(self, name: str, queues: Iterable[QueueData]) -> None:
        """Add a topic to known brokers, on request of an administrator."""
        known = {live.name for live in self._live.values()}
        for queue in queues:
            if queue.broker_name in known and (
                name in self._topics or len(self._topics) < TOPICS_MAX
            ):
                self._topics.setdefault(name, {})[queue.broker_name] = queue

    def _set_topics(self, broker: str, queues: Mapping[str, QueueData]) -> None:
        topics = self._topics
        for name, queue in queues.items():
            brokers = topics.get(name)
            if brokers is not None:
                brokers[broker] = queue
            elif len(topics) < TOPICS_MAX:
                topics[name] = {broker: queue}

    def unregister(self, cluster: str, address: str) -> None:
        """Unregister a broker."""
        self._drop([key for key in self._live if key == (cluster, address)])

    def alive(self, cluster: str, address: str, now_ms: int) -> None:
        """Heartbeat of a broker."""
        live = self._live.get((cluster, address))
        if live is not None:
            live.seen_ms = now_ms

    def version_of(self, cluster: str, address: str) -> DataVersion | None:
        """The data version of a broker's topics."""
        live = self._live.get((cluster, address))
        return None if live is None else live.version

    def expire(self, now_ms: int) -> list[str]:
        """Expire brokers that were silent for too long; returns their addresses."""
        late = [key for key, live in self._live.items() if live.seen_ms + live.expiry_ms < now_ms]
        self._drop(late)
        return [address for _, address in late]

    def lost(self, caller: Caller) -> None:
        """Remove the broker of a closed connection."""
        self._drop([key for key, live in self._live.items() if live.caller is caller])

    def _drop(self, keys: list[tuple[str, str]]) -> None:
        if not keys:
            return
        gone = {self._live.pop(key).name for key in keys}
        gone -= {live.name for live in self._live.values()}
        topics = self._topics
        for broker in gone:
            for name in [name for name, brokers in topics.items() if broker in brokers]:
                if len(topics[name]) == 1:
                    del topics[name]
                else:
                    del topics[name][broker]

    def _master(self, cluster: str, name: str) -> Live | None:
        for live in self._live.values():
            if (live.cluster, live.name, live.broker_id) == (cluster, name, MASTER_ID):
                return live
        return None

    # Requests of clients

    def route(self, topic: str, caller: Caller) -> RouteData | None:
        """The brokers that have a topic; None if there are none."""
        local = self._local
        config = local.topic(topic) if local is not None else None
        is_ours_alone = config is not None and not self._shares_topics
        queues = [] if is_ours_alone else list(self._topics.get(topic, {}).values())
        brokers = {queue.broker_name for queue in queues}
        datas = [data for data in self._brokers() if data.broker_name in brokers]
        if local is not None and config is not None:
            queues.append(
                QueueData(
                    broker_name=local.broker_name,
                    perm=config.perm,
                    read_queue_nums=config.read_queue_nums,
                    write_queue_nums=config.write_queue_nums,
                )
            )
            datas.append(self._local_data(local, caller))
        if not queues or not datas:
            return None
        return RouteData(broker_datas=datas, queue_datas=queues)

    def cluster(self, caller: Caller) -> ClusterInfo:
        """Every broker, by name and by cluster."""
        brokers = {data.broker_name: data for data in self._brokers()}
        if self._local is not None:
            brokers[self._local.broker_name] = self._local_data(self._local, caller)
        clusters: dict[str, list[str]] = {}
        for name, data in brokers.items():
            clusters.setdefault(data.cluster, []).append(name)
        return ClusterInfo(broker_addr_table=brokers, cluster_addr_table=clusters)

    def members(self, cluster: str, name: str, caller: Caller) -> MemberGroup | None:
        """The brokers of one name."""
        data = self.cluster(caller).broker_addr_table.get(name)
        if data is None or data.cluster != cluster:
            return None
        return MemberGroup(cluster=cluster, broker_name=name, broker_addrs=data.broker_addrs)

    def topics(self) -> list[str]:
        """The names of all topics."""
        found = set(self._topics)
        if self._local is not None:
            found.update(self._local.topic_names())
        return sorted(found)

    def topics_of(self, cluster: str) -> list[str]:
        """The names of a cluster's topics."""
        names = {live.name for live in self._live.values() if live.cluster == cluster}
        found = {topic for topic, brokers in self._topics.items() if names & brokers.keys()}
        if self._local is not None and self._local.cluster_name == cluster:
            found.update(self._local.topic_names())
        return sorted(found)

    def system_topics(self, caller: Caller) -> list[str]:
        """Clusters, brokers and RocketMQ's own topics."""
        info = self.cluster(caller)
        found = {*info.cluster_addr_table, *info.broker_addr_table}
        if self._local is not None:
            found.update(self._local.system_topic_names())
        return sorted(found)

    def delete_topic(self, topic: str, cluster: str | None) -> None:
        """Remove the routes of a topic; those of our own broker stay."""
        brokers = self._topics.get(topic)
        if brokers is None:
            return
        for name in list(brokers):
            live = next((each for each in self._live.values() if each.name == name), None)
            if cluster is None or live is None or live.cluster == cluster:
                del brokers[name]
        if not brokers:
            del self._topics[topic]

    def set_write(self, broker: str, *, is_wiped: bool) -> int:
        """Remove or restore the write permission of a broker's topics; returns how many."""
        if self._local is not None and broker == self._local.broker_name:
            return self._local.wipe_write(is_wiped)
        count = 0
        for brokers in self._topics.values():
            queue = brokers.get(broker)
            if queue is not None:
                queue.perm = queue.perm & ~WRITE if is_wiped else READ | WRITE
                count += 1
        return count

    def _brokers(self) -> list[BrokerData]:
        found: dict[tuple[str, str], BrokerData] = {}
        for live in self._live.values():
            data = found.setdefault(
                (live.cluster, live.name),
                BrokerData(
                    broker_addrs={},
                    broker_name=live.name,
                    cluster=live.cluster,
                    enable_acting_master=live.enables_acting_master,
                ),
            )
            data.broker_addrs[live.broker_id] = live.address
        return list(found.values())

    def _local_data(self, local: Local, caller: Caller) -> BrokerData:
        return BrokerData(
            broker_addrs={MASTER_ID: local.address(caller)},
            broker_name=local.broker_name,
            cluster=local.cluster_name,
        )
