"""Bodies of statistics."""

import msgspec

from rockgate.protocol.remoting.bodies.clients import DataVersion


class BrokerStatsItem(msgspec.Struct, kw_only=True):
    """What one label of a set did in one window."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(msgspec.Struct, kw_only=True, rename="camel"):
    """315's response."""

    stats_minute: BrokerStatsItem
    stats_hour: BrokerStatsItem
    stats_day: BrokerStatsItem


class TimerCount(msgspec.Struct, kw_only=True, rename="camel"):
    """Delayed messages that wait for one topic, and when that was counted."""

    count: int
    time_stamp: int


class TimerMetrics(msgspec.Struct, kw_only=True, rename="camel"):
    """61's response: delayed messages by the topic that they are for."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    timing_count: dict[str, TimerCount] = {}
