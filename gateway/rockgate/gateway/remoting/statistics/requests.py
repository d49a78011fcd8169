"""Statistics: 315 one label of one set, 28 the figures of the broker.

Behaviour
- 315 answers what a label did in the last minute, hour and day, up to now. RocketMQ's brokers
  answer as of their last snapshot, and of a label younger than ten minutes nothing for hour and
  day.
- 28 has the names that RocketMQ's brokers use, as far as there is such a thing here; `putTps` and
  the like are rates over 10, 60 and 600 seconds.

Departs from RocketMQ
- QUEUE_GET_NUMS, QUEUE_GET_SIZE, COMMERCIAL_… and …_FROM_DISK_… do not exist, and GROUP_GET_LATENCY
  is by group and topic, not by queue: as with `enableDetailStat=false`.
- Puts of Kafka producers are counted like those of RocketMQ's; a batch is one put of many messages.
- GROUP_GET_FALL_SIZE and GROUP_GET_FALL_TIME, which RocketMQ's brokers only log, can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.statistics.series import Field, Series, Span, Window
from rockgate.gateway.remoting.statistics.sets import StatisticSets
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.statistics import BrokerStatsData, BrokerStatsItem
from rockgate.protocol.remoting.bodies.topics import KeyValues
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.statistics import ViewStatsHeader
from rockgate.store.api.clock import Clock

NAME_CHARS_MAX = 1_000
"""Characters of a set or label that an answer repeats."""


class StatisticsRequests:
    """Answers questions about statistics."""

    def __init__(
        self,
        *,
        sets: StatisticSets,
        runtime: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._runtime = runtime
        self._clock = clock

    def view(self, command: Command, caller: Caller) -> Reply:
        """315: what one label did in the last minute, hour and day."""
        asked = headers.read(command, ViewStatsHeader)
        behind = self._sets.find_behind(asked.stats_name, asked.stats_key)
        if behind is not None:
            item = BrokerStatsItem(sum=behind)
            body = BrokerStatsData(stats_minute=item, stats_hour=item, stats_day=item)
            return Command(ResponseCode.SUCCESS, body=javajson.encode(body))
        found = self._sets.find(asked.stats_name, asked.stats_key)
        if found is None:
            name, key = asked.stats_name[:NAME_CHARS_MAX], asked.stats_key[:NAME_CHARS_MAX]
            raise Refused(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        series, field = found
        minute, hour, day = (_item(self._window(series, field, span)) for span in Span)
        body = BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))

    def _window(self, series: Series, field: Field, span: Span) -> Window:
        return series.window(span, field, self._clock.monotonic_ms())

    def runtime_info(self, command: Command, caller: Caller) -> Reply:
        """28: figures by name, as mqadmin prints them."""
        body = KeyValues(table=dict(self._runtime()))
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))


def _item(window: Window) -> BrokerStatsItem:
    return BrokerStatsItem(sum=window.total, tps=window.per_second, avgpt=window.average)
