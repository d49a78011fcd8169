"""How a lite pull consumer reads, with RocketMQ's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from rockgate.sdk.consumer.allocation import Allocation, Averagely
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Model, OffsetStore, Start

COMMIT_S_MIN: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullSettings:
    """How a lite pull consumer reads."""

    model: Model = Model.CLUSTERING
    start: Start | datetime = Start.END
    allocation: Allocation = field(default_factory=Averagely)
    flow: FlowLimits = field(default_factory=FlowLimits)
    pull_count_max: int = 32
    auto_commit: bool = True
    auto_commit_s: float = 5.0
    rebalance_s: float = 20.0
    retry_s: float = 1.0
    offsets_folder: Path | None = None
    """Where a broadcasting group keeps its offsets; else `~/.rocketmq_offsets/<client>/<group>`."""
    offset_store: OffsetStore | None = None
    """A store of the application's own for offsets, in place of brokers or the file."""

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
            model=self.model,
            start=self.start,
            allocation=self.allocation,
            flow=self.flow,
            pull_count_max=self.pull_count_max,
            # Queues that are assigned by hand are in no heartbeat.
            pulls_carry_expression=True,
            rebalance_s=self.rebalance_s,
            retry_s=self.retry_s,
            auto_commit=self.auto_commit,
            persist_s=self.auto_commit_s,
            offsets_folder=self.offsets_folder,
            offset_store=self.offset_store,
        )
