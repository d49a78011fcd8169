"""Dead letters, queried at RocketMQ's listener."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.remoting.bodies.admin import (
    DeadLetter,
    DeadLetterPage,
    DeadLetterQueue,
    DeadLetterQueues,
    Resend,
)
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.admin import (
    ListDeadLettersHeader,
    ReadDeadLettersHeader,
    ResendDeadLetterHeader,
)

_PAGE: Final = 200
_PREFIXES: Final = ("%DLQ%", "rmq.dlq.")


class LetterId(NamedTuple):
    """The location of a dead letter."""

    group: str
    queue: int
    offset: int

    def __str__(self) -> str:
        return f"{self.group}/{self.queue}/{self.offset}"


class Filter(NamedTuple):
    """A filter of dead letters; a missing field matches all."""

    topic: str | None = None
    key: str | None = None
    reason: str | None = None
    since_ms: int = -1
    until_ms: int = 1 << 62

    def passes(self, letter: DeadLetter) -> bool:
        """Whether a dead letter matches."""
        message = letter.message
        at_ms = letter.dead_ms if letter.dead_ms >= 0 else message.stored_ms
        return (
            self.topic in (None, letter.origin_topic)
            and (self.key is None or self.key == message.keys or self.key in _words(message.keys))
            and self.reason in (None, letter.reason)
            and self.since_ms <= at_ms < self.until_ms
        )


def _words(keys: str | None) -> list[str]:
    return (keys or "").split(" ")


def group_of(name: str) -> str:
    """The group that a name refers to: a group, or the topic of its dead letters."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def read_id(text: str) -> LetterId:
    """`GROUP/QUEUE/OFFSET`, as it is listed."""
    parts = text.rsplit("/", 2)
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() for part in parts[1:]):
        raise ValueError(f"expected GROUP/QUEUE/OFFSET such as billing/0/17, got {text!r}")
    if not parts[0] or max(len(part) for part in parts[1:]) > 18:
        raise ValueError(f"expected GROUP/QUEUE/OFFSET such as billing/0/17, got {text!r}")
    return LetterId(group_of(parts[0]), int(parts[1]), int(parts[2]))


def id_of(letter: DeadLetter) -> LetterId:
    """The id of a dead letter."""
    return LetterId(letter.group, letter.queue, letter.offset)


async def queues(remoting: RemotingConnection, group: str | None = None) -> list[DeadLetterQueue]:
    """Where dead letters are stored: of all groups, or of one."""
    code = RequestCode.LIST_DEAD_LETTER_QUEUES
    found = (await remoting.ask(code, ListDeadLettersHeader(group=group), DeadLetterQueues)).queues
    matching = [each for each in found if group in (None, each.group)]
    return sorted(matching, key=lambda each: (each.group, each.queue))


async def read(
    remoting: RemotingConnection, queue: DeadLetterQueue, wanted: Filter, *, start: int = 0
) -> AsyncIterator[DeadLetter]:
    """The matching dead letters of a queue, up to its end when it was listed."""
    offset = max(start, queue.start)
    while 0 <= offset < queue.end:
        header = ReadDeadLettersHeader(
            group=queue.group, queue=queue.queue, offset=offset, limit=_PAGE
        )
        page = await remoting.ask(RequestCode.READ_DEAD_LETTERS, header, DeadLetterPage)
        for letter in page.letters:
            if letter.offset < queue.end and wanted.passes(letter):
                yield letter
        offset = page.next


async def show(remoting: RemotingConnection, id_: LetterId, *, preview: int) -> DeadLetter | None:
    """One of them with properties and the start of its body; None if there is none."""
    header = ReadDeadLettersHeader(
        group=id_.group, queue=id_.queue, offset=id_.offset, limit=1, preview=preview
    )
    page = await remoting.ask(RequestCode.READ_DEAD_LETTERS, header, DeadLetterPage)
    return next((each for each in page.letters if each.offset == id_.offset), None)


async def resend(
    remoting: RemotingConnection,
    id_: LetterId,
    *,
    to: str | None,
    is_again: bool,
    is_dry_run: bool = False,
) -> Resend:
    """Send one of them to its origin, or elsewhere; or have the server only check it."""
    header = ResendDeadLetterHeader(
        group=id_.group,
        queue=id_.queue,
        offset=id_.offset,
        to=to,
        again=is_again,
        dry_run=is_dry_run,
    )
    return await remoting.ask(RequestCode.RESEND_DEAD_LETTER, header, Resend)
