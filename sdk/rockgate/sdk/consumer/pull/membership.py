"""A pull consumer's group membership: heartbeats, and which queues of its topics it owns.

It is balanced like a consumer with listeners, but that pulls nothing: the owner is notified when
the queues of a topic change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.allocation import Allocation, Averagely
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.queues.rounds import Rounds, Share, connect, over_topics, share_of
from rockgate.sdk.consumer.server_requests import ServerRequests
from rockgate.sdk.consumer.settings import Model, Start
from rockgate.sdk.consumer.subscription import Subscription

ACTIVELY: Final = "CONSUME_ACTIVELY"

OnShare = Callable[[str, Share], Awaitable[None]]
"""Takes up the queues of a topic that are this member's now; called in every round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    """How a pull consumer takes part in its group."""

    model: Model = Model.CLUSTERING
    start: Start = Start.END
    allocation: Allocation = field(default_factory=Averagely)
    rebalance_s: float = 20.0


class Membership:
    """A client's membership of a group that pulls."""

    def __init__(
        self,
        client: Client,
        calls: BrokerCalls,
        group: str,
        settings: MembershipSettings,
        on_share: OnShare,
    ) -> None:
        self._client = client
        self._calls = calls
        self._group = group
        self._settings = settings
        self._on_share = on_share
        self._subscriptions: dict[str, Subscription] = {}
        self._version = client.now_ms()
        self._rounds = Rounds(group, settings.rebalance_s)
        self._task: asyncio.Task[None] | None = None
        self._shares: dict[str, Share] = {}
        self.requests: ServerRequests | None = None
        """Answers brokers, where there is something to say."""

    # Life

    async def start(self, subscriptions: Sequence[Subscription]) -> None:
        """Join the group; the topics must exist."""
        self._subscriptions = {each.topic: each for each in subscriptions}
        for topic in self._subscriptions:
            await connect(self._client, topic)
        self._client.add_consumer(self._group, self)
        try:
            await self._client.announce()
            is_complete = await self.rebalance()
        except BaseException:
            self._client.remove_consumer(self._group)
            raise
        rounds = self._rounds.run(self.rebalance, is_complete=is_complete)
        self._task = asyncio.get_running_loop().create_task(rounds)

    async def stop(self) -> None:
        """Stop notifications, and answers."""
        if self.requests is not None:
            await self.requests.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def wake(self) -> None:
        """A round at once."""
        self._rounds.wake()

    def leave(self) -> None:
        """Unregister from the brokers, so that other members take over at once."""
        self._client.remove_consumer(self._group)

    # Subscriptions

    def subscription(self, topic: str) -> Subscription | None:
        """The subscription to a topic, if there is one."""
        return self._subscriptions.get(topic)

    @property
    def topics(self) -> list[str]:
        """The topics that are subscribed."""
        return list(self._subscriptions)

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe to a topic, or change its filter."""
        await connect(self._client, subscription.topic)
        self._changed({**self._subscriptions, subscription.topic: subscription})
        await self._client.announce()
        self._rounds.wake()

    async def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        left = dict(self._subscriptions)
        left.pop(topic, None)
        self._shares.pop(topic, None)
        self._changed(left)
        await self._client.announce()

    def share(self, topic: str) -> Share:
        """The queues of a topic as the last round has found them."""
        return self._shares.get(topic, Share((), ()))

    # Heartbeats and brokers' requests

    def data(self) -> ConsumerData:
        """The subscriptions for heartbeats."""
        return ConsumerData(
            group_name=self._group,
            consume_type=ACTIVELY,
            message_model=self._settings.model.value,
            consume_from_where=self._settings.start.value,
            subscription_data_set=[
                each.data(self._version) for each in self._subscriptions.values()
            ],
        )

    def route_changed(self, topic: str) -> None:
        """The queues of a topic have changed: rebalance at once if it is consumed here."""
        if topic in self._subscriptions:
            self._rounds.wake()

    def asked(self, link: Link, command: Command) -> None:
        """Handle a broker's request."""
        if self.requests is not None:
            self.requests.asked(link, command)
        elif command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.wake()
        elif not command.is_oneway:
            unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            remark = f"a pull consumer does not answer request code {command.code}"
            link.respond(command, Command(unknown, remark=remark))

    # Rounds

    async def rebalance(self) -> bool:
        """One round; whether everything could be done."""
        return await over_topics(self._group, self.topics, self._rebalance_topic)

    async def _rebalance_topic(self, topic: str) -> bool:
        is_shared = self._settings.model is Model.CLUSTERING
        allocation = self._settings.allocation if is_shared else None
        share = await share_of(self._client, self._calls, self._group, topic, allocation)
        if share is None:
            return False
        if topic not in self._subscriptions:
            # It was unsubscribed while its members were queried.
            return True
        self._shares[topic] = share
        await self._on_share(topic, share)
        return True

    def _changed(self, subscriptions: dict[str, Subscription]) -> None:
        # Of two versions a broker accepts the later one, and a clock may not have advanced.
        self._version = max(self._version + 1, self._client.now_ms())
        self._subscriptions = subscriptions
