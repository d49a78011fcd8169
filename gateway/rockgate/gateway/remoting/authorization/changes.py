"""Writes administrative changes to the audit: one line for each request that changes something.

Which requests do, their needs tell: those that take CREATE, ALTER or DELETE. Requests about users
and grants write their own lines, and brokers that register themselves change nothing that anyone
has decided. Wrapped around processors within their guards: a refusal has its own line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, Final, cast

from rockgate.gateway.remoting.authorization.broker_needs import CONSUMING, PRODUCING
from rockgate.gateway.remoting.authorization.needs import ALTER, CREATE, DELETE, Needs
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Handle, Later, Reply
from rockgate.gateway.security.audit import ChangeAudit
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode, request_name
from rockgate.protocol.remoting.command import Command

CHANGING: Final = frozenset({CREATE, ALTER, DELETE})
RESOURCES_MAX: Final = 20
"""Resources of one request that its line names."""
NAME_CHARS_MAX: Final = 300
ELSEWHERE: Final = frozenset(
    {
        RequestCode.AUTH_CREATE_USER,
        RequestCode.AUTH_UPDATE_USER,
        RequestCode.AUTH_DELETE_USER,
        RequestCode.AUTH_CREATE_ACL,
        RequestCode.AUTH_UPDATE_ACL,
        RequestCode.AUTH_DELETE_ACL,
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
    }
)
"""These write lines of their own, which say more."""
NO_CHANGES: Final = frozenset(
    {
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.BROKER_HEARTBEAT,
        RequestCode.DESCRIBE_DELAYS,
        RequestCode.DESCRIBE_HALVES,
    }
)
"""Brokers repeat these by themselves, or they show something that takes ALTER."""
UNCHANGING: Final = ELSEWHERE | NO_CHANGES | PRODUCING.keys() | CONSUMING.keys()
"""Nothing is wrapped around these: others write their lines, or there is nothing to write."""
ALWAYS: Final = frozenset({RequestCode.RESEND_DEAD_LETTER})
"""Changes that take other operations."""


def audited(
    table: Mapping[RequestCode, Handle], needs: Mapping[RequestCode, Needs], audit: ChangeAudit
) -> dict[RequestCode, Handle]:
    """The table, with processors of changes written down."""
    return {
        code: handle if code in UNCHANGING else _audited(handle, needs[code], code, audit)
        for code, handle in table.items()
    }


def _audited(handle: Handle, row: Needs, code: RequestCode, audit: ChangeAudit) -> Handle:
    def noted(command: Command, caller: Caller) -> Reply | Later:
        what = _changed(row, code, command)
        if not what:
            return handle(command, caller)

        def note(outcome: ResponseCode | int) -> None:
            peer = caller.peer
            audit.changed(
                peer.principal,
                peer.remote.host,
                api=request_name(code),
                what=what,
                outcome=_outcome(outcome),
            )

        try:
            reply = handle(command, caller)
        except Refused as error:
            note(error.code)
            raise
        if isinstance(reply, Command):
            note(reply.code)
        return reply if isinstance(reply, Command | list) else _later(reply, note)

    return noted


async def _later(reply: Later, note: Callable[[ResponseCode | int], None]) -> Reply:
    try:
        answer = await cast(Awaitable[Any], reply)
        if isinstance(answer, asyncio.Future):
            answer = await answer
    except Refused as error:
        note(error.code)
        raise
    if isinstance(answer, Command):
        note(answer.code)
    return cast(Reply, answer)


def _changed(row: Needs, code: RequestCode, command: Command) -> str:
    """What a request is about to change; empty if it changes nothing, or cannot be read."""
    try:
        found = islice(row(command), RESOURCES_MAX)
        named = [
            f"{each.resource_type.name}:{each.name[:NAME_CHARS_MAX]}"
            for each in found
            if code in ALWAYS or each.operation in CHANGING
        ]
    except Refused:
        return ""
    return " ".join(named)


def _outcome(code: ResponseCode | int) -> str:
    if code == ResponseCode.SUCCESS:
        return "ok"
    try:
        return ResponseCode(code).name
    except ValueError:
        return str(int(code))
