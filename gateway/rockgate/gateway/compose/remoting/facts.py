"""The broker's settings that RocketMQ's tools only read, by RocketMQ's names."""

from __future__ import annotations

from rockgate.gateway.compose.config import Config
from rockgate.protocol.remoting.system_topics import TRACE_TOPIC
from rockgate.store.config import StoreConfig


def broker_facts(config: Config) -> dict[str, str]:
    """Return what is fixed at the start, by the names that RocketMQ's tools read."""
    remoting = config.remoting
    return {
        "brokerName": remoting.broker_name,
        "brokerClusterName": remoting.cluster_name,
        "brokerId": "0",
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": f"{config.store.flush.upper()}_FLUSH",
        **store_facts(config.store),
        "messageDelayLevel": remoting.delay_levels,
        "autoCreateTopicEnable": str(config.topics.auto_create).lower(),
        "defaultTopicQueueNums": str(config.topics.partitions),
        "autoCreateSubscriptionGroup": "true",
        "enablePropertyFilter": "true",
        "enableCalcFilterBitMap": "false",
        "filterServerNums": "0",
        "msgTraceTopicName": TRACE_TOPIC,
        "traceOn": "true",
        "traceTopicEnable": "true",
        "slaveReadEnable": "false",
        "useTLS": "false",
    }


def store_facts(config: StoreConfig) -> dict[str, str]:
    """Return what changes of the store's settings change."""
    retention_ms = config.retention_ms
    return {"fileReservedTime": str(-1 if retention_ms < 0 else retention_ms // 3_600_000)}
