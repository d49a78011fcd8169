"""Undecided half messages, queried at RocketMQ's listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.bodies.admin import HalfList, HalfPage, HalfView, Resolved
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.admin import (
    DescribeHeader,
    ListHalvesHeader,
    ResolveHalfHeader,
)

_PAGE = 200


class Halves(NamedTuple):
    """The oldest undecided half messages, and how many there are in all."""

    undecided: int
    now_ms: int
    found: list[HalfView]
    has_more: bool


async def list_halves(
    remoting: RemotingConnection, *, limit: int, group: str | None, open_ms: int
) -> Halves:
    """The oldest, page after page, up to a limit."""
    found: list[HalfView] = []
    after = -1
    while True:
        header = ListHalvesHeader(
            after=after, limit=min(_PAGE, limit - len(found)), group=group, open_ms=open_ms
        )
        page = await remoting.ask(RequestCode.LIST_HALVES, header, HalfPage)
        found += page.halves
        after = page.next
        if after < 0 or len(found) >= limit:
            return Halves(page.undecided, page.now_ms, found, after >= 0)


async def describe(
    remoting: RemotingConnection, ids: Sequence[str], *, preview: int = 0
) -> dict[str, HalfView]:
    """Undecided ones, by the ids that were asked for; what is not known is left out."""
    body = msgspec.json.encode(list(ids))
    header = DescribeHeader(preview=preview)
    return (await remoting.ask(RequestCode.DESCRIBE_HALVES, header, HalfList, body)).found


async def resolve(remoting: RemotingConnection, id_: str, *, is_commit: bool) -> Resolved:
    """Decide one, if it is undecided."""
    header = ResolveHalfHeader(id=id_, commit=is_commit)
    return await remoting.ask(RequestCode.RESOLVE_HALF, header, Resolved)
