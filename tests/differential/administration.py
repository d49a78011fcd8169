"""Sequences of topics that are created, grown, configured, truncated and deleted, valid or not.

create NAME COUNT CONFIG VALUE   CreateTopics; CONFIG "" is none
delete NAME                      DeleteTopics
grow NAME COUNT                  CreatePartitions
set NAME CONFIG VALUE            IncrementalAlterConfigs; VALUE None deletes
get NAME CONFIG                  DescribeConfigs
write NAME PARTITION             Produce of three records
cut NAME PARTITION OFFSET        DeleteRecords
ends NAME PARTITION TIME         ListOffsets; TIME -1 latest, -2 earliest
count NAME                       Metadata: partitions
"""

from __future__ import annotations

import time
from random import Random
from typing import Any, ClassVar

from tests.differential.player import Answer, KafkaPlayer, Step, code
from tests.waiting import wait_until

from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rockgate.protocol.kafka.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

NAMES = ("one", "two", "three.x", "bad name", "long" * 70)
CONFIGS = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "nonsense", ""),
    "retention.ms": ("60000", "-1", "-2", "soon"),
    "max.message.bytes": ("1000", "0", "-1", "1.5"),
    "min.insync.replicas": ("1", "0", "2"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime"),
    "compression.type": ("producer", "gzip", "zstd", "zip"),
    "no.such.config": ("1",),
}
TOPIC, DELETE, SET = 2, 1, 0
TIMEOUT_MS = 60_000


class AdminPlayer(KafkaPlayer):
    """Plays these steps."""

    def create(self, name: str, count: int, config: str, value: str) -> Answer:
        new = CreatableTopic(
            name=self._topic(name),
            num_partitions=count,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name=config, value=value)] if config else [],
        )
        request = CreateTopicsRequest(topics=[new], timeout_ms=TIMEOUT_MS, validate_only=False)
        made: Any = self.wire.ask(request, CreateTopicsResponse, 5).topics[0]
        if not made.error_code:
            self.wait_for_topic(self._topic(name), made.num_partitions)
        return [code(made.error_code), made.num_partitions]

    def delete(self, name: str) -> Answer:
        request = DeleteTopicsRequest(topic_names=[self._topic(name)], timeout_ms=TIMEOUT_MS)
        gone: Any = self.wire.ask(request, DeleteTopicsResponse, 5).responses[0]
        if not gone.error_code:
            wait_until(lambda: self._found(name).error_code, "the broker knows of the deletion")
        return code(gone.error_code)

    def grow(self, name: str, count: int) -> Answer:
        more = CreatePartitionsTopic(name=self._topic(name), count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[more], timeout_ms=TIMEOUT_MS, validate_only=False)
        grown: Any = self.wire.ask(request, CreatePartitionsResponse, 3).results[0]
        if not grown.error_code:
            self.wait_for_topic(self._topic(name), count)
        return code(grown.error_code)

    def set(self, name: str, config: str, value: str | None) -> Answer:
        change = AlterableConfig(
            name=config, config_operation=DELETE if value is None else SET, value=value
        )
        resource = AlterConfigsResource(
            resource_type=TOPIC, resource_name=self._topic(name), configs=[change]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer: Any = self.wire.ask(request, IncrementalAlterConfigsResponse, 1).responses[0]
        if not answer.error_code and value is not None:
            wait_until(lambda: self._config(name, config) != [], "the broker knows the config")
            wait_until(lambda: self.get(name, config)[1][0][1] == value, "the config has changed")
        elif not answer.error_code:
            wait_until(lambda: self._is_default(name, config), "the config has its default again")
        return code(answer.error_code)

    def get(self, name: str, config: str) -> Answer:
        found = self._described(name, config)
        shown = [[each.name, each.value, each.config_source] for each in found.configs]
        return [code(found.error_code), shown]

    def write(self, name: str, partition: int) -> Answer:
        now_ms = int(time.time() * 1000)
        records = [
            Record(offset=number, timestamp=now_ms, key=b"k", value=b"%d" % number)
            for number in range(3)
        ]
        data = PartitionProduceData(
            index=partition, records=bytes(build_batch(records, base_offset=0))
        )
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self._topic(name), partition_data=[data])],
        )
        answer = self.wire.ask(request, ProduceResponse, 9)
        written = answer.responses[0].partition_responses[0]
        return [code(written.error_code), written.base_offset]

    def cut(self, name: str, partition: int, offset: int) -> Answer:
        at = DeleteRecordsPartition(partition_index=partition, offset=offset)
        topic = DeleteRecordsTopic(name=self._topic(name), partitions=[at])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        (found,) = self.wire.ask(request, DeleteRecordsResponse, 2).topics[0].partitions
        return [code(found.error_code), found.low_watermark]

    def ends(self, name: str, partition: int, time_ms: int) -> Answer:
        at = ListOffsetsPartition(partition_index=partition, timestamp=time_ms)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self._topic(name), partitions=[at])]
        )
        (found,) = self.wire.ask(request, ListOffsetsResponse, 7).topics[0].partitions
        return [code(found.error_code), found.offset]

    def count(self, name: str) -> Answer:
        found = self._found(name)
        return [code(found.error_code), len(found.partitions)]

    steps: ClassVar = {
        "create": create,
        "delete": delete,
        "grow": grow,
        "set": set,
        "get": get,
        "write": write,
        "cut": cut,
        "ends": ends,
        "count": count,
    }

    # Shared by steps

    def _topic(self, name: str) -> str:
        return self.name(name) if name in NAMES[:3] else name

    def _found(self, name: str) -> Any:
        wanted = MetadataRequestTopic(name=self._topic(name))
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        return self.wire.ask(request, MetadataResponse, 8).topics[0]

    def _described(self, name: str, config: str) -> Any:
        resource = DescribeConfigsResource(
            resource_type=TOPIC, resource_name=self._topic(name), configuration_keys=[config]
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=False)
        return self.wire.ask(request, DescribeConfigsResponse, 4).results[0]

    def _config(self, name: str, config: str) -> list[Any]:
        return list(self._described(name, config).configs)

    def _is_default(self, name: str, config: str) -> bool:
        return all(each.config_source != 1 for each in self._config(name, config))


def sequence(random: Random, length: int) -> list[Step]:
    """A sequence that starts with a topic and continues with anything."""
    steps: list[Step] = [["create", "one", 2, "", ""]]
    while len(steps) < length:
        name = random.choice(("one", "one", "one", "two", *NAMES))
        steps.append(random.choice(_STEPS)(random, name))
    return [*steps, *(["count", name] for name in NAMES)]


def _config(random: Random) -> tuple[str, str]:
    name = random.choice(list(CONFIGS))
    return name, random.choice(CONFIGS[name])


_STEPS = (
    lambda random, name: ["create", name, random.choice((1, 2, 3, 0, -1)), "", ""],
    lambda random, name: ["create", name, 1, *_config(random)],
    lambda random, name: ["delete", name],
    lambda random, name: ["grow", name, random.choice((1, 2, 3, 4, 0, -1))],
    lambda random, name: ["set", name, *_config(random)],
    lambda random, name: ["set", name, random.choice(list(CONFIGS)), None],
    lambda random, name: ["get", name, random.choice(list(CONFIGS))],
    lambda random, name: ["write", name, random.randrange(4)],
    lambda random, name: ["write", name, 0],
    lambda random, name: ["cut", name, random.randrange(3), random.choice((0, 1, 3, 5, -1, -2))],
    lambda random, name: ["ends", name, random.randrange(3), random.choice((-1, -2, -3, 0))],
    lambda random, name: ["count", name],
)
