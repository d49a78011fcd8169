"""The configs that a topic of a RocketMQ cluster may have: those of Kafka, ours, `queue.type`."""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.configs.checks import TOPICS, ConfigTable
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS, TopicConfig, one_of
from rockgate.gateway.rocketmq.topics.attributes import BATCH_QUEUES, QUEUE_TYPE, SIMPLE_QUEUES

CLUSTER_TOPICS: Final = ConfigTable(
    "topic",
    {
        **TOPIC_CONFIGS,
        QUEUE_TYPE: TopicConfig(
            QUEUE_TYPE,
            one_of(SIMPLE_QUEUES, BATCH_QUEUES),
            SIMPLE_QUEUES,
            None,
            "Type of the topic's queues; with BatchCQ a record batch is stored as one message.",
            is_ours=True,
        ),
    },
    TOPICS.check_together,
)
