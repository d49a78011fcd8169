"""Rounds of assignment: when they run, and which queues of a topic a member is assigned.

Every member of a group computes its own share. A round runs every 20 s, at once when a broker
reports that members have changed, and within a second after one that could not do everything: a
retry topic, for example, has no route until its broker has registered it with the name servers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.sdk.client.client import Client
from rockgate.sdk.client.routes import UnknownTopic
from rockgate.sdk.consumer.allocation import Allocation
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

INCOMPLETE_S: Final = 1.0
GAP_S: Final = 0.5
"""The least time between two requested rounds."""
INCOMPLETE_ROUNDS_MAX: Final = 30
"""After this many incomplete rounds in a row, the rest waits for the regular ones."""

_log: Final = logging.getLogger(__name__)


class Rounds:
    """When rounds come."""

    def __init__(self, group: str, period_s: float) -> None:
        self._group = group
        self._period_s = period_s
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """A round at once."""
        self._wake.set()

    async def run(self, one: Callable[[], Awaitable[bool]], *, is_complete: bool) -> None:
        """Do rounds until the client is closed; each says whether everything could be done."""
        incomplete_count = 0
        while True:
            wait_s = self._period_s
            if not is_complete and incomplete_count < INCOMPLETE_ROUNDS_MAX:
                incomplete_count += 1
                wait_s = min(wait_s, INCOMPLETE_S)
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                is_complete = await one()
            except Closed:
                return
            except Exception:  # noqa: BLE001 # a hook of the application's may raise anything
                _log.exception("rebalance of group %s failed", self._group)
            if is_complete:
                incomplete_count = 0
            # A group that starts requests many rounds: they are coalesced.
            await asyncio.sleep(min(GAP_S, self._period_s))


async def over_topics(
    group: str, topics: Iterable[str], one: Callable[[str], Awaitable[bool]]
) -> bool:
    """Process topics one by one, even if one fails; returns whether all succeeded."""
    is_complete = True
    for topic in topics:
        try:
            is_complete &= await one(topic)
        except Closed:
            raise
        except UnknownTopic as missing:
            # A retry topic exists once a broker has registered it with its name servers.
            if not topic.startswith(RETRY_PREFIX):
                _log.warning("group %s: %s", group, missing)
            is_complete = False
        except SdkError as failed:
            _log.warning("group %s, topic %s: %s", group, topic, failed)
            is_complete = False
    return is_complete


@dataclass(frozen=True, slots=True)
class Share:
    """The queues of a topic, and those of them that are this member's."""

    queues: Sequence[Queue]
    mine: Sequence[Queue]


async def connect(client: Client, topic: str) -> list[Queue]:
    """The queues of a topic, sorted; every broker that has some knows this client."""
    route = await client.routes.readable(topic)
    for addresses in route.brokers.values():
        client.broker(addresses[min(addresses)])
    return sorted(route.readable)


async def share_of(
    client: Client, calls: BrokerCalls, group: str, topic: str, allocation: Allocation | None
) -> Share | None:
    """This member's part of a topic: all of it without an allocation; None if it is not known.

    Who is not known cannot be counted with, and a strategy may fail: then everything stays as it
    is.
    """
    queues = await connect(client, topic)
    if allocation is None:
        return Share(queues, queues)
    members = await calls.members(topic)
    if not members or not queues:
        return None
    try:
        return Share(queues, allocation.allocate(group, client.id, queues, members))
    except Exception:  # noqa: BLE001 # an allocation of the application's may raise anything
        _log.exception("allocation %s of group %s, topic %s", allocation.name, group, topic)
        return None
