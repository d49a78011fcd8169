"""The guard: authenticates a request, checks its needs against the grants, then has it served.

Processors are wrapped once, at the start, and only where something is checked. Whatever waited,
such as a pull, is checked once more before it is answered, if grants or users have changed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from rockgate.gateway.remoting.authorization.authentication import (
    RequestAuthentication,
    Unauthenticated,
)
from rockgate.gateway.remoting.authorization.needs import CLUSTER, DESCRIBE, Need, Needs, of_topic
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Handle, Later, Reply
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.security.access import Access
from rockgate.gateway.security.grants import CLUSTER_NAME
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.topics import TopicList
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode, request_name
from rockgate.protocol.remoting.command import Command

NEEDS_MAX: Final = 20_000
"""Resources that one request may name; more are refused."""
TURN_SECONDS: Final = 0.005
ALLOWED_CHARS_MAX: Final = 512
"""Longer names are decided anew, so that the cache cannot take much memory."""
SENDS: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)
PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
LISTS: Final = frozenset(
    {RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_TOPICS_BY_CLUSTER}
)
"""Requests whose answer lists the topics that the client may see."""


class RequestAudit(Protocol):
    """Where refusals are written down."""

    def refused(
        self, principal: Principal, host: str, /, *, api: str, operation: str, resource: str
    ) -> None:
        """A request was refused."""


class Failures(Protocol):
    """Counts failed authentications by address, and says what they cost."""

    def count(self, host: str, now: float, /) -> None:
        """An attempt has failed."""

    def delay_seconds(self, host: str, now: float, /, *, has_failed: bool) -> float:
        """How long after the client's message the response is sent, at the earliest."""


class RequestGuard:
    """What is checked on a listener. Without `access` every principal may do everything."""

    def __init__(
        self,
        *,
        authentication: RequestAuthentication,
        access: Access | None,
        audit: RequestAudit | None = None,
        failures: Failures | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        """`failures` takes the loop's time from `now`."""
        self._authentication = authentication
        self._access = access
        self._audit = audit
        self._failures = failures
        self._now = now or (lambda: asyncio.get_running_loop().time())

    def around(
        self, table: Mapping[RequestCode, Handle], needs: Mapping[RequestCode, Needs]
    ) -> dict[RequestCode, Handle]:
        """The table with every processor guarded; a code without needs is a mistake of ours."""
        guarded = {}
        for code, handle in table.items():
            guarded[code] = plain = self._guarded(handle, needs[code], code)
            if self._access is not None and code in SENDS:
                guarded[code] = self._sends(handle, needs[code], code, plain, self._access)
            elif self._access is not None and code in PULLS:
                guarded[code] = self._pulls(handle, needs[code], code, plain, self._access)
        return guarded

    def may(self, caller: Caller, need: Need) -> bool:
        """Whether whoever the latest request of a connection came from may do something."""
        peer = caller.peer
        return self._access is None or self._allows(peer.principal, peer.remote.host, need)

    def _guarded(self, handle: Handle, row: Needs, code: RequestCode) -> Handle:
        authenticate, access, lists = self._authentication.principal, self._access, code in LISTS

        def guarded(command: Command, caller: Caller) -> Reply | Later:
            try:
                principal = authenticate(command, caller)
            except Unauthenticated as error:
                return self._failed(error, caller)
            if access is None:
                return handle(command, caller)
            host = caller.peer.remote.host
            needs: Sequence[Need] = tuple(row(command))
            if len(needs) > NEEDS_MAX:
                raise Refused(
                    ResponseCode.NO_PERMISSION,
                    f"Request names {len(needs):,} resources; the maximum is {NEEDS_MAX:,}.",
                )
            self._check(principal, host, needs, command.code)
            # Before it is served: a processor may wait, and something may change meanwhile.
            generation = access.generation
            reply = handle(command, caller)
            if isinstance(reply, list):
                return reply
            if isinstance(reply, Command):
                return self._visible(reply, principal, host) if lists else reply
            return self._later(reply, principal, caller, needs, command.code, generation)

        return guarded

    # Of sends and pulls, what their connection was allowed is remembered by what a decision depends
    # on besides principal and host: a send's topic, or a pull's topic and group. A change of grants
    # makes all of it stale at once. The two repeat each other because a request of one message may
    # cost two per cent more, which is three calls.

    def _sends(
        self, handle: Handle, row: Needs, code: RequestCode, plain: Handle, access: Access
    ) -> Handle:
        """Guard sends."""
        authenticate = self._authentication.principal

        def guarded(command: Command, caller: Caller) -> Reply | Later:
            header = command.header
            if header is None:
                return plain(command, caller)
            peer, generation = caller.peer, access.generation
            principal = peer.unsigned
            if principal is None:
                try:
                    principal = authenticate(command, caller)
                except Unauthenticated as error:
                    return self._failed(error, caller)
            if peer.sendable.get(header.topic) != generation:
                self._check(principal, peer.remote.host, tuple(row(command)), code)
                if len(header.topic) <= ALLOWED_CHARS_MAX:
                    peer.allow_send(header.topic, generation)
            reply = handle(command, caller)
            if isinstance(reply, list):
                return reply
            if isinstance(reply, Command):
                return reply
            needs = tuple(row(command))
            return self._later(reply, principal, caller, needs, code, generation)

        return guarded

    def _pulls(
        self, handle: Handle, row: Needs, code: RequestCode, plain: Handle, access: Access
    ) -> Handle:
        """Guard pulls."""
        authenticate = self._authentication.principal

        def guarded(command: Command, caller: Caller) -> Reply | Later:
            header = command.header
            if header is None:
                return plain(command, caller)
            peer, generation = caller.peer, access.generation
            principal = peer.unsigned
            if principal is None:
                try:
                    principal = authenticate(command, caller)
                except Unauthenticated as error:
                    return self._failed(error, caller)
            groups = peer.pullable.get(header.topic)
            if groups is None or groups.get(header.consumer_group) != generation:
                self._check(principal, peer.remote.host, tuple(row(command)), code)
                if len(header.topic) + len(header.consumer_group) <= ALLOWED_CHARS_MAX:
                    peer.allow_pull(header.topic, header.consumer_group, generation)
            reply = handle(command, caller)
            if isinstance(reply, list):
                return reply
            if isinstance(reply, Command):
                return reply
            needs = tuple(row(command))
            return self._later(reply, principal, caller, needs, code, generation)

        return guarded

    def _failed(self, error: Unauthenticated, caller: Caller) -> Later:
        """The refusal of a request without a principal, after a delay."""
        failures, host = self._failures, caller.peer.remote.host
        if failures is None:
            raise error
        now = self._now()
        failures.count(host, now)
        return _raise_later(error, failures.delay_seconds(host, now, has_failed=True))

    async def _later(
        self,
        reply: Later,
        principal: Principal,
        caller: Caller,
        needs: Sequence[Need],
        code: int,
        generation: int,
    ) -> Reply:
        answer = await cast(Awaitable[Any], reply)
        if isinstance(answer, asyncio.Future):
            answer = await answer
        access = self._access
        if access is not None and access.generation != generation:
            if not self._authentication.is_valid(principal, caller):
                raise Refused(ResponseCode.NO_PERMISSION, f"{principal} was disabled or removed.")
            self._check(principal, caller.peer.remote.host, needs, code)
        return cast(Reply, answer)

    def _check(self, principal: Principal, host: str, needs: Sequence[Need], code: int) -> None:
        for need in needs:
            if not self._allows(principal, host, need):
                if self._audit is not None:
                    self._audit.refused(
                        principal,
                        host,
                        api=request_name(code),
                        operation=need.operation.name,
                        resource=f"{need.resource_type.name}:{need.name[:200]}",
                    )
                raise Refused(
                    ResponseCode.NO_PERMISSION,
                    f"{principal} has no permission from {host} to {need.refusal}.",
                )

    def _allows(self, principal: Principal, host: str, need: Need) -> bool:
        access = self._access
        assert access is not None, "there is nothing to ask"
        if access.may(principal, host, *need):
            return True
        return need.is_by_cluster and access.may(
            principal, host, need.operation, CLUSTER, CLUSTER_NAME
        )

    async def _visible(self, reply: Command, principal: Principal, host: str) -> Reply:
        """A list of topics without those that the client may not see."""
        access = self._access
        if access is None or access.may(principal, host, DESCRIBE, CLUSTER, CLUSTER_NAME):
            return reply
        found = javajson.decode(reply.body, TopicList, "the list of topics")
        names, turn = [], TimeSlice(TURN_SECONDS)
        for name in found.topic_list:
            if access.may(principal, host, *of_topic(name, DESCRIBE)):
                names.append(name)
            if turn.is_over():
                await asyncio.sleep(0)
                turn = TimeSlice(TURN_SECONDS)
        found.topic_list = names
        reply.body = javajson.encode(found)
        return reply


async def _raise_later(error: Exception, seconds: float) -> Reply:
    await asyncio.sleep(seconds)
    raise error
