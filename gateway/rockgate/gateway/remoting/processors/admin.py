"""Processors of rockgate's own codes: delays, half messages, dead letters, the log.

Behaviour
- Requests are headers; 31002 and 31012 have a JSON array of ids as their body. Answers are JSON
  (`rockgate.protocol.remoting.bodies.admin`).
- A request examines a bounded amount, a little in each turn of the loop; `next` in its answer says
  where the following one begins, and -1 that there is nothing left.
- The answer to a cancel, an early delivery or a resolve says whether it was this request that took
  effect: the first decision in the log wins.

Departs from RocketMQ
- It has none of this. Its broker answers these codes with 3, and so the command line can tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import msgspec

from rockgate.gateway.remoting.admin.dead_letters import DeadLetterAdmin
from rockgate.gateway.remoting.admin.delays import DelayAdmin
from rockgate.gateway.remoting.admin.halves import HalfAdmin
from rockgate.gateway.remoting.admin.log_checks import LogChecks
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.bodies.admin import (
    DelayedList,
    EmptyCounts,
    HalfList,
    OffsetRange,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.admin import (
    CheckLogHeader,
    DescribeHeader,
    ListDeadLettersHeader,
    ListHalvesHeader,
    NamedHeader,
    ReadDeadLettersHeader,
    ResendDeadLetterHeader,
    ResolveHalfHeader,
    ScanDelaysHeader,
)

IDS_MAX: Final = 200
RANGES_MAX: Final = 1_000
RANGES_IN_A_TURN: Final = 20
ID_SIZE_MAX: Final = 4_096
_encode: Final = msgspec.json.Encoder().encode
_ranges: Final = msgspec.json.Decoder(list[OffsetRange]).decode
_ids: Final = msgspec.json.Decoder(list[str]).decode


_Described = TypeVar("_Described")
CountEmpty = Callable[[OffsetRange], int]
"""How many offsets of a range are empty; -1 if there is no such partition."""


class OperatorRequests:
    """Processors for operators."""

    def __init__(
        self,
        *,
        delays: DelayAdmin,
        halves: HalfAdmin,
        dead_letters: DeadLetterAdmin,
        empty: CountEmpty,
        durability: Durability,
        log_checks: LogChecks,
    ) -> None:
        self._delays = delays
        self._halves = halves
        self._dead_letters = dead_letters
        self._empty = empty
        self._durability = durability
        self._log_checks = log_checks

    def scan_delays(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31001: a part of the delayed messages, counted, and the soonest of them."""
        return self._scan_delays(headers.read(command, ScanDelaysHeader))

    async def _scan_delays(self, asked: ScanDelaysHeader) -> Reply:
        return _answer(await self._delays.scan(asked))

    def describe_delays(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31002: details of delayed messages."""
        return self._describe_delays(_asked(command), headers.read(command, DescribeHeader))

    async def _describe_delays(self, ids: list[str], asked: DescribeHeader) -> Reply:
        found = await _each(
            ids, lambda id_: self._delays.describe(id_, asked.preview, with_due=asked.with_due)
        )
        return _answer(DelayedList(found=found))

    def cancel_delay(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31003: cancel a delayed message."""
        return self._cancel_delay(_checked(headers.read(command, NamedHeader).id))

    async def _cancel_delay(self, id_: str) -> Reply:
        return await self._safe(_answer(await self._delays.cancel(id_)))

    def deliver_delay(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31004: deliver a delayed message before it is due."""
        return self._deliver_delay(_checked(headers.read(command, NamedHeader).id))

    async def _deliver_delay(self, id_: str) -> Reply:
        return await self._safe(_answer(await self._delays.deliver(id_)))

    def list_halves(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31011: a page of undecided half messages."""
        return self._list_halves(headers.read(command, ListHalvesHeader))

    async def _list_halves(self, asked: ListHalvesHeader) -> Reply:
        return _answer(await self._halves.page(asked))

    def describe_halves(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31012: details of undecided half messages."""
        return self._describe_halves(_asked(command), headers.read(command, DescribeHeader))

    async def _describe_halves(self, ids: list[str], asked: DescribeHeader) -> Reply:
        found = await _each(ids, lambda id_: self._halves.describe(id_, asked.preview))
        return _answer(HalfList(found=found))

    def resolve_half(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31013: commit or roll back one."""
        return self._resolve_half(headers.read(command, ResolveHalfHeader))

    async def _resolve_half(self, asked: ResolveHalfHeader) -> Reply:
        done = await self._halves.resolve(_checked(asked.id), is_commit=asked.commit)
        return await self._safe(_answer(done))

    def list_dead_letter_queues(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31021: the groups with dead letters, how many and since when."""
        return self._list_dead_letter_queues(headers.read(command, ListDeadLettersHeader))

    async def _list_dead_letter_queues(self, asked: ListDeadLettersHeader) -> Reply:
        return _answer(await self._dead_letters.queues(asked.group))

    def read_dead_letters(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31022: a page of a group's dead letters."""
        return self._read_dead_letters(headers.read(command, ReadDeadLettersHeader))

    async def _read_dead_letters(self, asked: ReadDeadLettersHeader) -> Reply:
        return _answer(await self._dead_letters.page(asked))

    def resend_dead_letter(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31023: resend one to its original topic."""
        return self._resend_dead_letter(headers.read(command, ResendDeadLetterHeader))

    async def _resend_dead_letter(self, asked: ResendDeadLetterHeader) -> Reply:
        done, is_sync = await self._dead_letters.resend(asked)
        return await self._safe(_answer(done), is_sync=is_sync)

    def count_empty_offsets(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """31031: how many offsets of each range have no readable record."""
        try:
            ranges = _ranges(command.body)
        except msgspec.MsgspecError as error:
            raise Refused(
                ResponseCode.INVALID_PARAMETER, f"Body is not a list of ranges: {error}."
            ) from error
        if len(ranges) > RANGES_MAX:
            reason = f"{len(ranges):,} ranges exceed the maximum of {RANGES_MAX:,}."
            raise Refused(ResponseCode.INVALID_PARAMETER, reason)
        return self._count_empty_offsets(ranges)

    async def _count_empty_offsets(self, ranges: list[OffsetRange]) -> Reply:
        counts = []
        for number, each in enumerate(ranges):
            counts.append(self._empty(each))
            if number % RANGES_IN_A_TURN == RANGES_IN_A_TURN - 1:
                await asyncio.sleep(0)
        return _answer(EmptyCounts(counts=counts))

    def check_log(self, command: Command, caller: Caller) -> Reply:
        """31041: check the log in a process of its own, and say how far that is."""
        action = headers.read(command, CheckLogHeader).action
        actions = {
            "start": self._log_checks.start,
            "stop": self._log_checks.stop,
            "status": self._log_checks.status,
        }
        if action not in actions:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"Action {action[:40]!r} is not one of {', '.join(actions)}.",
            )
        return _answer(actions[action]())

    async def _safe(self, answer: Command, *, is_sync: bool = False) -> Reply:
        """The response, once the decision is as durable as the server's settings require."""
        held = self._durability.after_changes(answer, is_sync=is_sync)
        return held if isinstance(held, Command) else await held


async def _each(
    ids: Iterable[str], describe: Callable[[str], Awaitable[_Described | None]]
) -> dict[str, _Described]:
    """The details of each, a few in each turn: a description need not wait for anything."""
    found: dict[str, _Described] = {}
    share = TimeSlice(TURN_SECONDS)
    for id_ in ids:
        each = await describe(id_)
        if each is not None:
            found[id_] = each
        if share.is_over():
            await asyncio.sleep(0)
            share = TimeSlice(TURN_SECONDS)
    return found


def _answer(body: msgspec.Struct) -> Command:
    return Command(ResponseCode.SUCCESS, {}, _encode(body))


def _asked(command: Command) -> list[str]:
    try:
        ids = _ids(command.body)
    except msgspec.MsgspecError as error:
        raise Refused(
            ResponseCode.INVALID_PARAMETER, f"Body is not an array of ids: {error}."
        ) from None
    if len(ids) > IDS_MAX:
        raise Refused(
            ResponseCode.INVALID_PARAMETER, f"{len(ids):,} ids exceed the maximum of {IDS_MAX:,}."
        )
    return [_checked(id_) for id_ in ids]


def _checked(id_: str) -> str:
    if not 0 < len(id_) <= ID_SIZE_MAX:
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"Message id is {len(id_):,} characters; the range is 1 to {ID_SIZE_MAX:,}.",
        )
    return id_
