"""A lite pull consumer while it is open: its membership, its queues, and what observes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rockgate.sdk.client.client import Client
from rockgate.sdk.consumer.observation import Observation
from rockgate.sdk.consumer.offsets.store import offset_store
from rockgate.sdk.consumer.pull.lite_queues import LiteCalls, LiteQueues
from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
from rockgate.sdk.consumer.pull.membership import Membership, MembershipSettings, OnShare
from rockgate.sdk.consumer.pull.polled import PolledCalls
from rockgate.sdk.consumer.queues.puller import PullCounts
from rockgate.sdk.consumer.server_requests import AskedMember, ServerRequests
from rockgate.sdk.consumer.subscription import Subscription


@dataclass(slots=True)
class LiteMember:
    """What an open consumer works with."""

    client: Client
    calls: LiteCalls
    membership: Membership
    held: LiteQueues
    polled: PolledCalls


def lite_member(
    client: Client,
    calls: LiteCalls,
    settings: LitePullSettings,
    observation: Observation,
    *,
    on_share: OnShare,
    subscription: Callable[[str], tuple[Subscription, int] | None],
    arrived: Callable[[], None],
) -> LiteMember:
    """One over a client, not started."""
    pulling = settings.pulling()
    membership = Membership(
        client,
        calls,
        calls.group,
        MembershipSettings(
            model=pulling.model,
            start=pulling.start_kind,
            allocation=pulling.allocation,
            rebalance_s=pulling.rebalance_s,
        ),
        on_share,
    )
    observed = observation.over(client, pulling.consume_timeout_s)
    statistics = observation.statistics
    held = LiteQueues(
        client,
        calls,
        offset_store(calls, client.id, pulling),
        settings,
        subscription,
        arrived,
        counts=PullCounts(statistics=statistics),
        hooks=observation.hooks,
    )
    membership.requests = ServerRequests(
        AskedMember(
            settings=pulling,
            queues=held,
            data=membership.data,
            wake=membership.wake,
            statistics=statistics.topics,
            started_ms=client.now_ms(),
            now_ms=client.now_ms,
            namespace=calls.namespace,
        )
    )
    return LiteMember(client, calls, membership, held, PolledCalls(observed))
