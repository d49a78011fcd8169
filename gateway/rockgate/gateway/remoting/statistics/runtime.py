"""The figures of the broker by name, as `mqadmin brokerStatus` prints them.

A name of RocketMQ is included if its meaning exists here; docs/internals/statistics.md says what
the names of parts that do not exist stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.remoting.statistics.put_latency import PutLatency
from rockgate.gateway.remoting.statistics.request_queues import RequestQueues
from rockgate.gateway.telemetry.requests import ApiStats
from rockgate.protocol.remoting.codes import VERSION, ResponseCode
from rockgate.protocol.remoting.system_topics import TIMES_TOPIC
from rockgate.store.api.store import ReadOnlyStore

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_PUT, _FOUND, _MISSED, _GOT = range(4)
"""Places of the totals whose rates are measured."""
_NO_POOL: Final = 2**31 - 1
"""Free buffers of a pool that is not used, as RocketMQ's brokers give it."""
_FAILED: Final = (
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.MESSAGE_ILLEGAL,
    ResponseCode.SERVICE_NOT_AVAILABLE,
)
"""Answers to a send that the store would not take."""


class Flushed(Protocol):
    """How far the log is on disk."""

    @property
    def flushed(self) -> int:
        """Everything before this position is on disk."""


class DelayedMessages(Protocol):
    """Messages that wait for their time."""

    @property
    def waiting_count(self) -> int:
        """How many there are."""

    def late_ms(self) -> int:
        """Return for how long the first of them has been due."""


class Longest(Protocol):
    """Reads of messages."""

    @property
    def longest_seconds(self) -> float:
        """The longest one since the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFigures:
    """Where the figures come from."""

    store: ReadOnlyStore
    statistics: BrokerStatistics
    put_latency: PutLatency
    flushing: Flushed
    delays: DelayedMessages
    reads: Longest
    sends: Sequence[ApiStats]
    """The statistics of sends."""
    queues: RequestQueues
    stall_ms: Callable[[], int]
    """For how long appends have been waiting for the disk; 0 if they do not."""
    capacity: Callable[[], tuple[int, int]]
    """Size of the log's file system, and what is free of it."""
    started_ms: int

    def table(self) -> dict[str, str]:
        """Return every figure, as of now."""
        return {
            **self._broker(),
            **self._puts(),
            **self._gets(),
            **self._log(),
            **self._timers(),
            **self.queues.table(),
        }

    def _broker(self) -> dict[str, str]:
        uptime_s = max(0, self.store.clock.now_ms() - self.started_ms) // 1000
        (days, rest), mornings = divmod(uptime_s, 86_400), self.statistics.mornings
        clock = f"{rest // 3600} hours, {rest % 3600 // 60} minutes, {rest % 60} seconds"
        return {
            "bootTimestamp": str(self.started_ms),
            "runtime": f"[ {days} days, {clock} ]",
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": "rockgate as V5_5_0",
            "brokerRole": "ASYNC_MASTER",
            "brokerActive": "true",
            "startAcceptSendRequestTimeStamp": "0",
            "msgPutTotalYesterdayMorning": str(mornings.yesterday[0]),
            "msgPutTotalTodayMorning": str(mornings.today[0]),
            "msgPutTotalTodayNow": str(self.statistics.user_put_count()),
            "msgGetTotalYesterdayMorning": str(mornings.yesterday[1]),
            "msgGetTotalTodayMorning": str(mornings.today[1]),
            "msgGetTotalTodayNow": str(self.statistics.user_get_count()),
        }

    def _puts(self) -> dict[str, str]:
        statistics, latency = self.statistics, self.put_latency
        count, size = statistics.put_count(), statistics.put_bytes()
        failed = sum(each.errors.get(code, 0) for each in self.sends for code in _FAILED)
        return {
            "putMessageTimesTotal": str(count),
            "putMessageSizeTotal": str(size),
            "putMessageAverageSize": str(size / count if count else 0.0),
            "putMessageFailedTimes": str(failed),
            "putMessageEntireTimeMax": str(int(statistics.longest_put_seconds * 1000)),
            "putMessageDistributeTime": latency.by_class(),
            "putLatency99": f"{latency.percentile_ms(0.99):.2f}",
            "putLatency999": f"{latency.percentile_ms(0.999):.2f}",
            "putTps": statistics.rates.text(_PUT),
        }

    def _gets(self) -> dict[str, str]:
        rates = self.statistics.rates
        return {
            "getMessageEntireTimeMax": str(int(self.reads.longest_seconds * 1000)),
            "getFoundTps": rates.text(_FOUND),
            "getMissTps": rates.text(_MISSED),
            "getTotalTps": rates.text(_FOUND, _MISSED),
            "getTransferredTps": rates.text(_GOT),
            # RocketMQ 4 spells it so, and its tools read it.
            "getTransferedTps": rates.text(_GOT),
        }

    def _log(self) -> dict[str, str]:
        store, log = self.store, self.store.log
        used = f"{store.disk_used_percent / 100:.4f}"
        earliest = store.lookup.stored_ms(log.start)
        total, free = map(_bytes_text, self.capacity())
        return {
            "commitLogMinOffset": str(log.start),
            "commitLogMaxOffset": str(log.end),
            "commitLogDiskRatio": used,
            "consumeQueueDiskRatio": used,
            "commitLogDirCapacity": f"Total : {total}, Free : {free}.",
            "earliestMessageTimeStamp": str(-1 if earliest is None else earliest),
            # An entry is in its queue before its append returns, and no buffer is in between.
            "dispatchBehindBytes": "0",
            "dispatchMaxBuffer": "0",
            "pageCacheLockTimeMills": str(self.stall_ms()),
            "remainTransientStoreBufferNumbs": str(_NO_POOL),
            "remainHowManyDataToFlush": _bytes_text(log.end - self.flushing.flushed),
        }

    def _timers(self) -> dict[str, str]:
        topic = self.store.topics.find(TIMES_TOPIC)
        rate = 0.0 if topic is None else self.statistics.put_per_second(topic)
        return {
            "timerReadBehind": str(self.delays.late_ms() // 1000),
            # A message is in the schedule before its append returns.
            "timerOffsetBehind": "0",
            "timerCongestNum": str(self.delays.waiting_count),
            "timerEnqueueTps": str(rate),
            "timerDequeueTps": str(self.statistics.delivered_per_second()),
        }


def _bytes_text(size: int) -> str:
    """Return a size as RocketMQ's brokers write it."""
    number, unit = float(max(0, size)), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} B" if not unit else f"{number:.1f} {_UNITS[unit]}"
