"""A local transaction between half a message and its end, and the answers to brokers that ask.

    async with producer.transaction(message) as tx:
        await orders.insert(…)          # raising Rollback, or tx.rollback(), rolls back

Leaving the block normally commits. Any other exception, a cancellation too, leaves the outcome
unknown: the broker asks later (39), and the checker of any live producer of the group answers.
While a block runs no checker of this process is asked about it. docs/reference/sdk.md has the
table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.headers.transactions import (
    EndTransactionHeader,
)
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk.client.checks import block_began, block_ended
from rockgate.sdk.client.connection import Link
from rockgate.sdk.errors import Refused, SdkError, SendFailed
from rockgate.sdk.results import Outcome, SendResult, SendStatus

POSITION_MAX: Final = (1 << 63) - 1

_log: Final = logging.getLogger(__name__)


class Rollback(Exception):
    """Raised in a transaction's block to roll back; it ends there."""


class HalfSender(Protocol):
    """What a transaction needs of its producer."""

    async def send_half(self, on_packed: Callable[[str], None]) -> tuple[SendResult, Link]:
        """Send the half message; where it is stored, and the connection to its broker.

        `on_packed` is called with the message's id before it is sent.
        """

    async def end(self, link: Link, result: SendResult, header: EndTransactionHeader) -> None:
        """Send the outcome to the broker and wait for its response."""


class Transaction:
    """One half message and its outcome."""

    def __init__(self, group: str, topic: str, sender: HalfSender) -> None:
        """`group` and `topic` are the names on the wire."""
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
        """Whether the broker has confirmed the outcome."""
        self.failure: Exception | None = None
        """Why it is not confirmed, once the block has ended: Refused, if the broker says no, with
        200 or 201 where it ended otherwise before. Anything else: it may not know, and will ask."""

    @property
    def result(self) -> SendResult:
        """Where the half message is stored."""
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
        block_began(message_id)

    def _over(self) -> None:
        if self._message_id is not None:
            block_ended(self._message_id)

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
            # The local work is done, and is not undone by this: the broker will send a check.
            self.failure = failed
            _log.warning("%s of %s is not confirmed: %s", outcome, result.message_id, failed)


def _position(result: SendResult) -> int:
    """The position of a half message in its broker's log."""
    try:
        _, _, position = parse_offset_message_id(result.offset_message_id)
    except MalformedContent as wrong:
        raise SendFailed(f"The half message was stored but cannot be resolved: {wrong}") from None
    if position > POSITION_MAX:
        raise SendFailed(
            "The half message was stored but cannot be resolved:"
            f" its position {position} is out of range."
        )
    return position
