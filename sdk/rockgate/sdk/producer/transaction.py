"""A local transaction between half a message and its end, and the answers to brokers that ask.

    async with producer.transaction(message) as tx:
        await orders.insert(…)          # raising Rollback, or tx.rollback(), rolls back

Leaving the block normally commits. Any other exception, a cancellation too, leaves the outcome
unknown: the broker asks later (39), and the checker of any live producer of the group answers.
While a block runs no checker of this process is asked about it. docs/reference/sdk.md has the
table.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Protocol, Self

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest
from rockgate.protocol.remoting.headers.transactions import (
    CheckTransactionHeader,
    EndTransactionHeader,
)
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.protocol.remoting.message import Message as Received
from rockgate.protocol.remoting.message import decode
from rockgate.protocol.remoting.properties import KEYS, PRODUCER_GROUP, TAGS
from rockgate.sdk.client.connection import Link
from rockgate.sdk.errors import Refused, SdkError, SendFailed
from rockgate.sdk.hooks import Ended, SendHook, tell_ended
from rockgate.sdk.results import Outcome, SendResult, SendStatus

CHECKS_MAX: Final = 256
"""Checks that may be under way; a further one is not answered, and its broker asks again."""

END_S: Final = 1.0
"""How long a checker that was cancelled may take to end."""
POSITION_MAX: Final = (1 << 63) - 1

_log: Final = logging.getLogger(__name__)
_running: Final[set[str]] = set()
"""Ids of half messages whose blocks run in this process, whichever client sent them: a check may
come to another client of the group."""


Checker = Callable[[Received], Awaitable[Outcome]]
"""Says what became of the local transaction of a message. It is asked again if that is UNKNOWN."""


class Rollback(Exception):
    """Raised in a transaction's block to roll back; it ends there."""


class HalfSender(Protocol):
    """What a transaction needs of its producer."""

    async def send_half(self, on_packed: Callable[[str], None]) -> tuple[SendResult, Link]:
        """Send half the message; where it lies, and the connection to whoever has it.

        `on_packed` is told the message's id before it leaves.
        """

    async def end(self, link: Link, result: SendResult, header: EndTransactionHeader) -> None:
        """Tell the broker the outcome and wait for its answer."""


class Transaction:
    """One half message and what becomes of it."""

    def __init__(self, group: str, topic: str, sender: HalfSender) -> None:
        """`group` and `topic` are the names that travel."""
        self._group = group
        self._topic = topic
        self._sender = sender
        self._link: Link | None = None
        self._message_id: str | None = None
        self._position = 0
        self._is_rolled_back = False
        self._result: SendResult | None = None
        self.outcome = Outcome.UNKNOWN
        self.is_confirmed = False
        """Whether the broker has said that the message ended so."""
        self.failure: Exception | None = None
        """Why it is not confirmed, once the block has ended: Refused, if the broker says no, with
        200 or 201 where it ended otherwise before. Anything else: it may not know, and will ask."""

    @property
    def result(self) -> SendResult:
        """Where the half message lies."""
        assert self._result is not None, "the block was not entered"
        return self._result

    def rollback(self) -> None:
        """Roll back when the block ends, however it ends."""
        self._is_rolled_back = True

    async def __aenter__(self) -> Self:
        if self._message_id is not None:
            raise SdkError(
                "The transaction was already entered; a transaction can be entered only once."
            )
        try:
            self._result, self._link = await self._sender.send_half(self._began)
            # Looked at before the local work: what cannot be named cannot be ended afterwards.
            self._position = _position(self._result)
            if self._result.status is not SendStatus.OK:
                await self._end(Outcome.ROLLBACK)
                raise SendFailed(
                    f"The half message was stored with {self._result.status.name} and rolled back."
                )
        except BaseException:
            self._over()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            if self._is_rolled_back or isinstance(error, Rollback):
                await self._end(Outcome.ROLLBACK)
            elif error is None:
                await self._end(Outcome.COMMIT)
        finally:
            self._over()
        return isinstance(error, Rollback)

    def _began(self, message_id: str) -> None:
        self._message_id = message_id
        _running.add(message_id)

    def _over(self) -> None:
        if self._message_id is not None:
            _running.discard(self._message_id)

    async def _end(self, outcome: Outcome) -> None:
        assert self._link is not None
        self.outcome = outcome
        result = self.result
        header = EndTransactionHeader(
            producer_group=self._group,
            topic=self._topic,
            tran_state_table_offset=result.offset,
            commit_log_offset=self._position,
            commit_or_rollback=outcome,
            msg_id=result.message_id,
            transaction_id=result.transaction_id,
            bname=result.queue.broker,
        )
        try:
            await self._sender.end(self._link, result, header)
            self.is_confirmed = True
        except Refused as refused:
            self.failure = refused
            _log.error("%s of %s was rejected: %s", outcome, result.message_id, refused)
        except Exception as failed:  # noqa: BLE001 # a hook of the application's may raise anything
            # The local work is done, and is not undone by this: the broker will ask.
            self.failure = failed
            _log.warning("%s of %s is not confirmed: %s", outcome, result.message_id, failed)


def _position(result: SendResult) -> int:
    """Where a half message lies in its broker's log."""
    try:
        _, _, position = parse_offset_message_id(result.offset_message_id)
    except MalformedContent as wrong:
        raise SendFailed(f"The half message was stored but cannot be resolved: {wrong}.") from None
    if position > POSITION_MAX:
        raise SendFailed(
            "The half message was stored but cannot be resolved:"
            f" its position {position} is out of range."
        )
    return position


@dataclass(frozen=True, slots=True)
class _Asked:
    """A check that came, and how it is answered."""

    link: Link
    header: CheckTransactionHeader
    group: str
    message: Received


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """Who answers for a group."""

    checker: Checker
    shown: Callable[[str], str] = str
    """A topic's or group's name as the application knows it."""
    hooks: Sequence[SendHook] = ()


class Checks:
    """Answers brokers that ask for outcomes, by the checkers of the groups."""

    def __init__(self) -> None:
        self._checkers: dict[str, Checking] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, group: str, checking: Checking) -> None:
        """From now on this answers for the group, whose name is the one that travels."""
        self._checkers[group] = checking

    def remove(self, group: str) -> None:
        """Nobody answers for the group here any more."""
        self._checkers.pop(group, None)

    @property
    def groups(self) -> Collection[str]:
        """Those that somebody answers for."""
        return self._checkers.keys()

    def asked(self, link: Link, command: Command) -> None:
        """39: find out apart from everything else. It has no answer but a 37 of ours."""
        try:
            header = headers.read(command, CheckTransactionHeader)
            message = decode(command.body)
        except (MalformedRequest, MalformedContent) as wrong:
            _log.warning("cannot decode a check from %s: %s", link.address, wrong)
            return
        if message.message_id in _running:
            # Its block has not ended: no checker could know how it will.
            _log.info(
                "%s checks %s, whose block is still running", link.address, message.message_id
            )
            return
        group = message.properties.get(PRODUCER_GROUP, "")
        checker = self._checkers.get(group)
        if checker is None:
            _log.warning("%s checks group %r, which has no checker", link.address, group)
            return
        if len(self._tasks) >= CHECKS_MAX:
            _log.warning("%d checks are in progress; ignoring another one", len(self._tasks))
            return
        asked = _Asked(link, header, group, message)
        task = asyncio.get_running_loop().create_task(self._answer(asked, checker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Give up what is being found out, soon."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Give up what is being found out; the brokers will ask others."""
        tasks = list(self._tasks)
        self.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=END_S)
            if left:
                _log.warning("%d cancelled checkers are still running", len(left))

    async def _answer(self, asked: _Asked, checking: Checking) -> None:
        message = asked.message
        shown = replace(message, topic=checking.shown(message.topic))
        try:
            outcome = Outcome(await checking.checker(shown))
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("the checker of %s failed; the outcome remains unknown", asked.group)
            return
        if outcome is Outcome.UNKNOWN:
            return
        header = EndTransactionHeader(
            producer_group=asked.group,
            topic=asked.message.topic,
            tran_state_table_offset=asked.header.tran_state_table_offset,
            commit_log_offset=asked.header.commit_log_offset,
            commit_or_rollback=outcome,
            from_transaction_check=True,
            msg_id=asked.header.msg_id,
            transaction_id=asked.header.transaction_id,
            bname=asked.header.bname,
        )
        if not asked.link.notify(RequestCode.END_TRANSACTION, headers.write(header)):
            _log.warning("could not respond to a check from %s", asked.link.address)
            return
        tell_ended(
            checking.hooks,
            Ended(
                group=checking.shown(asked.group),
                topic=shown.topic,
                message_id=shown.message_id,
                transaction_id=asked.header.transaction_id or "",
                store_host=asked.link.address,
                tag=shown.properties.get(TAGS),
                keys=shown.properties.get(KEYS),
                outcome=outcome,
                is_from_check=True,
            ),
        )
