"""Pull consumers for programs without a loop: batches by poll, and pulls by queue and offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rockgate.sdk.blocking.face import Face, OnLoop, Waiting
from rockgate.sdk.consumer.pull.lite_pull import CLOSE_S, LitePullConsumer
from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
from rockgate.sdk.consumer.pull.membership import MembershipSettings
from rockgate.sdk.consumer.pull.pull_consumer import OnQueues, PullConsumer
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.observe.statistics import ConsumerStatistics
from rockgate.sdk.results import Queue

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class BlockingPullConsumer(Face):
    """A `PullConsumer` whose calls wait."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Sequence[str] = (),
        on_queues: OnQueues | None = None,
        settings: MembershipSettings | None = None,
        instance: str | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Parameters are those of `PullConsumer`; `on_queues` is called on its loop."""
        self.inner = PullConsumer(
            name_servers,
            group=group,
            topics=topics,
            on_queues=on_queues,
            settings=settings,
            instance=instance,
            credentials=credentials,
            tls=tls,
        )
        super().__init__(self.inner)

    queues = Waiting(PullConsumer.queues)
    balanced = OnLoop(PullConsumer.balanced)
    pull = Waiting(PullConsumer.pull)
    known_offset = OnLoop(PullConsumer.known_offset)
    committed = Waiting(PullConsumer.committed)
    commit = OnLoop(PullConsumer.commit)
    persist = Waiting(PullConsumer.persist)
    send_back = Waiting(PullConsumer.send_back)
    begin = Waiting(PullConsumer.begin)
    end = Waiting(PullConsumer.end)
    search = Waiting(PullConsumer.search)
    earliest = Waiting(PullConsumer.earliest)


class BlockingLitePullConsumer(Face):
    """A `LitePullConsumer` whose calls wait."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Mapping[str, str] | Sequence[str] = (),
        on_queues: OnQueues | None = None,
        settings: LitePullSettings | None = None,
        namespace: str = "",
        instance: str | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        hooks: Sequence[ConsumeHook] = (),
        tracer_provider: TracerProvider | None = None,
        trace: bool | str = False,
    ) -> None:
        """Parameters are those of `LitePullConsumer`; callbacks and hooks run on its loop."""
        self.inner = LitePullConsumer(
            name_servers,
            group=group,
            topics=topics,
            on_queues=on_queues,
            settings=settings,
            namespace=namespace,
            instance=instance,
            credentials=credentials,
            tls=tls,
            hooks=hooks,
            tracer_provider=tracer_provider,
            trace=trace,
        )
        super().__init__(self.inner)

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Commit what is settled unless commits are manual, and leave the group.

        The last to close ends the background loop.
        """
        self._close(partial(self.inner.close, timeout_s))

    subscribe = Waiting(LitePullConsumer.subscribe)
    unsubscribe = Waiting(LitePullConsumer.unsubscribe)
    assign = Waiting(LitePullConsumer.assign)
    assignment = OnLoop(LitePullConsumer.assignment)
    queues = Waiting(LitePullConsumer.queues)
    poll = Waiting(LitePullConsumer.poll)
    pause = OnLoop(LitePullConsumer.pause)
    resume = OnLoop(LitePullConsumer.resume)
    position = OnLoop(LitePullConsumer.position)
    seek = Waiting(LitePullConsumer.seek)
    seek_to_begin = Waiting(LitePullConsumer.seek_to_begin)
    seek_to_end = Waiting(LitePullConsumer.seek_to_end)
    offset_for_time = Waiting(LitePullConsumer.offset_for_time)
    committed = Waiting(LitePullConsumer.committed)
    commit = Waiting(LitePullConsumer.commit)

    @property
    def paused(self) -> list[Queue]:
        """Queues that are paused."""
        return self._asked(lambda: self.inner.paused)

    @property
    def statistics(self) -> ConsumerStatistics:
        """Its current state: rates over the last minute, cached messages, and lag."""
        return self._asked(lambda: self.inner.statistics)
