"""Resending dead letters: which of them match, and sending one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rockgate.cli.client.kafka.errors import ClientError, Declined, Missed
from rockgate.cli.client.remoting import dead_letters as wire
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.cli.client.remoting.dead_letters import Filter, LetterId
from rockgate.protocol.remoting.bodies.admin import Resend


class Outcome(NamedTuple):
    """The outcome of one dead letter."""

    id: LetterId
    resend: Resend | None
    error: ClientError | None = None


async def matching(
    remoting: RemotingConnection, group: str, wanted: Filter, *, is_again: bool
) -> list[LetterId]:
    """The ids of a group's dead letters that a filter selects."""
    return [
        wire.id_of(letter)
        for queue in await wire.queues(remoting, group)
        async for letter in wire.read(remoting, queue, wanted)
        if is_again or not letter.is_resent
    ]


async def resend(
    remoting: RemotingConnection,
    named: Sequence[LetterId],
    to: str | None,
    done: list[Outcome],
    *,
    is_again: bool,
    is_dry_run: bool,
) -> None:
    """Send each; `done` grows meanwhile, so that an interrupted run can report it."""
    for id_ in named:
        try:
            answer = await wire.resend(
                remoting, id_, to=to, is_again=is_again, is_dry_run=is_dry_run
            )
        except Declined as no:
            done.append(Outcome(id_, None, Declined(no.code, no.message, what=str(id_))))
            continue
        missed = None
        if not answer.is_resent:
            missed = Missed(str(id_), "already resent. Use --again to resend it")
        done.append(Outcome(id_, answer, missed))
