"""Every fold of a server, in the order of a snapshot; to open its data directory takes all."""

from __future__ import annotations

from dataclasses import dataclass

from rockgate.gateway.compose.config.changeable import changeable_settings
from rockgate.gateway.compose.remoting.services import RemotingFolds
from rockgate.gateway.compose.security import SecurityFolds
from rockgate.gateway.kafka.configs.stored import ResourceConfigs
from rockgate.gateway.kafka.features.levels import FeatureLevels
from rockgate.gateway.kafka.groups.consumer.records import NAME as CONSUMERS
from rockgate.gateway.kafka.groups.consumer.records import TOPIC, Key
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.groups.share.member import NAME as SHARES
from rockgate.gateway.kafka.groups.share.member import TOPIC as SHARE_TOPIC
from rockgate.gateway.kafka.groups.share.member import Key as ShareKey
from rockgate.gateway.kafka.groups.streams.records import NAME as STREAMS
from rockgate.gateway.kafka.groups.streams.records import TOPIC as STREAMS_TOPIC
from rockgate.gateway.kafka.groups.streams.records import StreamsKey
from rockgate.gateway.kafka.internal_topics.writer import NAME as INTERNAL
from rockgate.gateway.kafka.internal_topics.writer import TOPIC as INTERNAL_TOPIC
from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.store.api.folds import KeyedFold
from rockgate.store.delay.held import HeldEntries
from rockgate.store.inflight.fold import ShareState
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


@dataclass(frozen=True, slots=True)
class KafkaFolds:
    """The folds of the Kafka listener. Created with the store, which feeds them."""

    producers: Producers
    groups: SavedGroups
    transactions: Transactions
    stable_offsets: StableOffsets
    held: HeldEntries
    configs: ResourceConfigs
    quotas: StoredQuotas
    empty: EmptyOffsets
    consumers: KeyedFold[Key, bytes]
    """Members of consumer groups, and what they have."""
    streams: KeyedFold[StreamsKey, bytes]
    """Topologies and members of streams groups, and the tasks that they have."""
    internal_topics: KeyedFold[str, int]
    """How far Kafka's internal topics are written."""
    shares: KeyedFold[ShareKey, bytes]
    """Members of share groups."""
    share_state: ShareState
    """Where share groups are, and which records are not finished."""
    features: FeatureLevels
    changed: ChangedSettings
    """Settings that were changed while the server ran, by either wire."""

    @classmethod
    def make(cls, journal: Journal, topics: Topics) -> KafkaFolds:
        """Create empty folds; the store restores them."""
        stable_offsets, empty = StableOffsets(topics), EmptyOffsets(topics)
        stable_offsets.on_ended.append(empty.marked)
        return cls(
            Producers(journal, topics),
            SavedGroups(journal),
            Transactions(),
            stable_offsets,
            HeldEntries(topics),
            ResourceConfigs(journal),
            StoredQuotas(journal),
            empty,
            KeyedFold(journal, name=CONSUMERS, topic=TOPIC, key=Key, value=bytes),
            KeyedFold(journal, name=STREAMS, topic=STREAMS_TOPIC, key=StreamsKey, value=bytes),
            KeyedFold(journal, name=INTERNAL, topic=INTERNAL_TOPIC, key=str, value=int),
            KeyedFold(journal, name=SHARES, topic=SHARE_TOPIC, key=ShareKey, value=bytes),
            ShareState(topics),
            FeatureLevels(journal),
            ChangedSettings(journal, changeable_settings()),
        )

    def all(self) -> list[Fold]:
        """All folds, in the order of a snapshot."""
        return [
            self.producers,
            self.groups,
            self.transactions,
            self.stable_offsets,
            self.held,
            self.configs.fold,
            self.quotas.fold,
            self.empty,
            self.consumers,
            self.streams,
            self.internal_topics,
            self.shares,
            self.share_state,
            self.features.fold,
            self.changed.fold,
        ]


@dataclass(frozen=True, slots=True)
class ServerFolds:
    """The folds of both wires and of security. Created with the store, which feeds them."""

    kafka: KafkaFolds
    remoting: RemotingFolds
    security: SecurityFolds

    @classmethod
    def make(cls, journal: Journal, topics: Topics) -> ServerFolds:
        """Create empty folds; the store restores them."""
        kafka = KafkaFolds.make(journal, topics)
        return cls(
            kafka,
            RemotingFolds.make(journal, topics, kafka.changed),
            SecurityFolds.make(journal),
        )

    def all(self) -> list[Fold]:
        """All folds, in the order of a snapshot."""
        return [*self.kafka.all(), *self.remoting.all(), *self.security.all()]


def server_folds(journal: Journal, topics: Topics) -> list[Fold]:
    """The folds alone, for who opens a data directory without serving it."""
    return ServerFolds.make(journal, topics).all()
