"""Answers brokers' checks of local transactions, by the checkers of the group.

A check (39) is answered by our 37, or not at all: then its broker checks again later, with this
client or another of the group. No checker is called for a message whose block still runs in this
process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest
from rockgate.protocol.remoting.headers.transactions import (
    CheckTransactionHeader,
    EndTransactionHeader,
)
from rockgate.protocol.remoting.properties import KEYS, PRODUCER_GROUP, TAGS
from rockgate.sdk.client.connection import Link
from rockgate.sdk.hooks import Ended, SendHook, notify_ended
from rockgate.sdk.namespaces import unwrap
from rockgate.sdk.received import Received, read_one
from rockgate.sdk.results import Outcome

CHECKS_MAX: Final = 256
"""Checks in progress at most; a further one is ignored, and its broker asks again."""
END_S: Final = 1.0
"""How long a cancelled checker may take to end."""

_log: Final = logging.getLogger(__name__)
_running: Final[set[str]] = set()
"""Ids of half messages whose blocks run in this process, whichever client sent them: a check may
come to another client of the group."""

Checker = Callable[[Received], Awaitable[Outcome]]
"""Returns the state of the local transaction of a message. It is called again after UNKNOWN."""


def block_began(message_id: str) -> None:
    """A transaction's block runs: no checker can know how it will end."""
    _running.add(message_id)


def block_ended(message_id: str) -> None:
    """Checkers may be asked about it again."""
    _running.discard(message_id)


def running_blocks() -> Collection[str]:
    """Ids of the half messages whose blocks run in this process."""
    return _running


@dataclass(frozen=True, slots=True)
class _Check:
    """A check that came, and how it is answered."""

    link: Link
    header: CheckTransactionHeader
    group: str
    message: Received


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChecker:
    """The checker of a group."""

    checker: Checker
    namespace: str = ""
    """The namespace, which the application does not see."""
    hooks: Sequence[SendHook] = ()


class Checks:
    """Answers brokers that ask for outcomes, by the checkers of the groups."""

    def __init__(self) -> None:
        self._checkers: dict[str, GroupChecker] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, group: str, group_checker: GroupChecker) -> None:
        """Answer checks for the group with this from now on; `group` is its name on the wire."""
        self._checkers[group] = group_checker

    def remove(self, group: str) -> None:
        """Checks of the group are no longer answered here."""
        self._checkers.pop(group, None)

    @property
    def groups(self) -> Collection[str]:
        """The groups that have a checker."""
        return self._checkers.keys()

    def asked(self, link: Link, command: Command) -> None:
        """39: run the checker in the background. The only answer is our 37."""
        try:
            header = headers.read(command, CheckTransactionHeader)
            message = read_one(command.body, header.bname or "")
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
        asked = _Check(link, header, group, message)
        task = asyncio.get_running_loop().create_task(self._answer(asked, checker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Cancel the checks in progress, soon."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel the checks in progress; the brokers will ask other members."""
        tasks = list(self._tasks)
        self.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=END_S)
            if left:
                _log.warning("%d cancelled checkers are still running", len(left))

    async def _answer(self, asked: _Check, group_checker: GroupChecker) -> None:
        message = asked.message
        message.namespace = group_checker.namespace
        try:
            outcome = Outcome(await group_checker.checker(message))
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("the checker of %s failed; the outcome remains unknown", asked.group)
            return
        if outcome is Outcome.UNKNOWN:
            return
        header = EndTransactionHeader(
            producer_group=asked.group,
            topic=message.wire_topic,
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
        notify_ended(
            group_checker.hooks,
            Ended(
                group=unwrap(group_checker.namespace, asked.group),
                topic=message.topic,
                message_id=message.message_id,
                transaction_id=asked.header.transaction_id or "",
                store_host=asked.link.address,
                tag=message.properties.get(TAGS),
                keys=message.properties.get(KEYS),
                outcome=outcome,
                is_from_check=True,
            ),
        )
