"""How a lite pull consumer reads, with RocketMQ's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rockgate.sdk.consumer.allocation import Allocation, Averagely
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Start

COMMIT_S_MIN: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullSettings:
    """How a lite pull consumer reads."""

    start: Start | datetime = Start.END
    allocation: Allocation = field(default_factory=Averagely)
    flow: FlowLimits = field(default_factory=FlowLimits)
    pull_count_max: int = 32
    auto_commit: bool = True
    auto_commit_s: float = 5.0
    rebalance_s: float = 20.0
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        if self.auto_commit_s < COMMIT_S_MIN:
            raise ValueError(
                f"auto_commit_s must be at least {COMMIT_S_MIN:g}, not {self.auto_commit_s:g}."
            )
        # Checked there, and `Start.TIME` has become a time.
        object.__setattr__(self, "start", self.pulling().start)

    def pulling(self) -> ConsumerSettings:
        """The same for what pulls a queue."""
        return ConsumerSettings(
            start=self.start,
            allocation=self.allocation,
            flow=self.flow,
            pull_count_max=self.pull_count_max,
            # Queues that are assigned by hand are in no heartbeat.
            pulls_carry_expression=True,
            rebalance_s=self.rebalance_s,
            retry_s=self.retry_s,
        )
