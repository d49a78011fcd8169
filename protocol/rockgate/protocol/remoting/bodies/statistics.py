"""Bodies of statistics."""

import msgspec


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
