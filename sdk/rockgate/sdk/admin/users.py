"""Users of a broker: requests 3001 to 3005 of RocketMQ 5, with what rockgate adds to them.

A password is sent as it is: only over TLS, or on one machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.access import UserInfo
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers.access import ListUsersHeader, UserHeader

SIGNATURE: Final = "SIGNATURE"
"""Among the credentials of a user: a secret to sign requests with."""

Send = Callable[[RequestCode, msgspec.Struct, Buffer], Awaitable[Command]]
"""Sends a request to a broker; returns its response if that is a success."""


class BrokerUser(NamedTuple):
    """A user as a broker has it."""

    name: str
    is_super: bool
    is_enabled: bool
    credentials: tuple[str, ...]
    """SASL names of mechanisms, and SIGNATURE; empty from brokers that do not say."""


class UserAdmin:
    """Users of one broker."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def all(self) -> list[BrokerUser]:
        """All users."""
        answer = await self._send(RequestCode.AUTH_LIST_USER, ListUsersHeader(), b"")
        if not answer.body:
            return []
        return [_user(each) for each in javajson.decode(answer.body, list[UserInfo], "users")]

    async def find(self, name: str) -> BrokerUser | None:
        """One user; None if it does not exist."""
        answer = await self._send(RequestCode.AUTH_GET_USER, UserHeader(username=name), b"")
        return _user(javajson.decode(answer.body, UserInfo, "a user")) if answer.body else None

    async def create(
        self, name: str, password: str, *, credentials: Sequence[str], is_super: bool
    ) -> None:
        """Create a user, whose password is for these credentials."""
        info = UserInfo(
            username=name,
            password=password,
            user_type="Super" if is_super else "Normal",
            user_status="enable",
            credentials=list(credentials),
        )
        await self._change(RequestCode.AUTH_CREATE_USER, info)

    async def set_password(self, name: str, password: str, credentials: Sequence[str]) -> None:
        """Set these credentials of a user; the others stay."""
        info = UserInfo(username=name, password=password, credentials=list(credentials))
        await self._change(RequestCode.AUTH_UPDATE_USER, info)

    async def enable(self, name: str, *, is_enabled: bool) -> None:
        """Let a user log in, or no longer."""
        info = UserInfo(username=name, user_status="enable" if is_enabled else "disable")
        await self._change(RequestCode.AUTH_UPDATE_USER, info)

    async def delete(self, name: str) -> None:
        """Delete a user and its grants."""
        await self._send(RequestCode.AUTH_DELETE_USER, UserHeader(username=name), b"")

    async def _change(self, code: RequestCode, info: UserInfo) -> None:
        await self._send(code, UserHeader(username=info.username or ""), javajson.encode(info))


def _user(info: UserInfo) -> BrokerUser:
    return BrokerUser(
        info.username or "",
        (info.user_type or "").lower() == "super",
        (info.user_status or "enable").lower() == "enable",
        tuple(info.credentials or ()),
    )
