"""Users and their rights: 3001 to 3010 of RocketMQ 5, 50 to 54 of RocketMQ 4.9.

Behaviour
- Both sets of codes and Kafka's ACLs are about the same users and grants; the password that is set
  here is the secret of signatures and the password of SASL.
- Who is not a super user can neither make one nor change one.
- A deleted user's grants go too, as in RocketMQ.
- Ours: a user says what it can log in with (`credentials`), and a password may be for some of it.

Departs from RocketMQ
- Passwords are never returned, so copyUser cannot copy from here.
- What cannot be said in grants is refused by name: `policies` and `plain_access` have the lists.
- Get and List are one: a policy with either is listed with both.
- 53 is refused: no address is exempt from signatures.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import msgspec

from rockgate.gateway.remoting.access.accounts import (
    CREDENTIALS,
    Account,
    Accounts,
    Grants,
)
from rockgate.gateway.remoting.access.grant_changes import add_in_parts, remove_in_parts
from rockgate.gateway.remoting.access.policies import (
    acl_of,
    entries_of,
    grants_of,
    invalid,
    is_expressible,
    patterns_of,
    replaced,
    subject_of,
)
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import joined
from rockgate.gateway.security.audit import ChangeAudit
from rockgate.gateway.security.grants import Grant
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.access import AclInfo, UserInfo
from rockgate.protocol.remoting.codes import ResponseCode, request_name
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import access as fields

BODY_BYTES_MAX: Final = 256 << 10
_TYPES: Final = {"normal": False, "super": True}
_STATUSES: Final = {"enable": True, "disable": False}


class AccessRequests:
    """The processors of 3001 to 3010."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        grants: Grants,
        after_changes: Callable[[Command], Reply | Awaitable[Reply]],
        cluster_name: str,
        audit: ChangeAudit | None = None,
    ) -> None:
        """`after_changes` answers once what was changed is as safe as the settings demand."""
        self._accounts = accounts
        self._grants = grants
        self._after_changes = after_changes
        self._cluster_name = cluster_name
        self._audit = audit

    # Users

    async def create_user(self, command: Command, caller: Caller) -> Reply:
        """3001: create a user."""
        name, asked = self._user(command)
        if self._accounts.find(name) is not None:
            raise denied("The user is existed")
        if not asked.password:
            raise denied("The password can not be blank")
        is_super = self._type(asked, False, caller, "create")
        is_enabled = _chosen(asked.user_status, _STATUSES, "User status", True)
        await self._accounts.put(
            name,
            password=asked.password,
            is_super=is_super,
            is_enabled=is_enabled,
            credentials=_credentials(asked),
        )
        return await self.done(command, caller, f"user {name}")

    async def update_user(self, command: Command, caller: Caller) -> Reply:
        """3002: change a user's password, type or status."""
        name, asked = self._user(command)
        known = self._changeable(name, caller)
        is_super = self._type(asked, known.is_super, caller, "update")
        is_enabled = _chosen(asked.user_status, _STATUSES, "User status", known.is_enabled)
        await self._accounts.put(
            name,
            password=asked.password or None,
            is_super=is_super,
            is_enabled=is_enabled,
            credentials=_credentials(asked),
        )
        return await self.done(command, caller, f"user {name}")

    async def delete_user(self, command: Command, caller: Caller) -> Reply:
        """3003: delete a user and its grants; one that does not exist is no error."""
        name = headers.read(command, fields.UserHeader).username
        if name and self._accounts.find(name) is not None:
            self._changeable(name, caller)
            await self.remove_user(name)
        return await self.done(command, caller, f"user {name}")

    def get_user(self, command: Command, caller: Caller) -> Reply:
        """3004: a user without its password; an empty response if there is none."""
        name = headers.read(command, fields.UserHeader).username
        if not name.strip():
            raise invalid("The username is blank")
        known = self._accounts.find(name)
        body = b"" if known is None else javajson.encode(_info(name, known))
        return Command(ResponseCode.SUCCESS, body=body)

    async def list_users(self, command: Command, caller: Caller) -> Reply:
        """3005: users whose names contain the filter."""
        wanted = headers.read(command, fields.ListUsersHeader).filter or ""
        names = sorted(name for name in self._accounts.names() if wanted in name)

        def rows() -> Iterator[bytes]:
            for name in names:
                known = self._accounts.find(name)
                if known is not None:
                    yield javajson.encode(_info(name, known))

        body = await joined(b"[", rows(), b"]", instead="filter by name") if names else b""
        return Command(ResponseCode.SUCCESS, body=body)

    # Policies

    async def set_acl(self, command: Command, caller: Caller) -> Reply:
        """3006, 3007: set the policies of a subject on the resources that are named."""
        what = request_name(command.code)
        subject = headers.read(command, fields.AclHeader).subject
        asked = javajson.decode(command.body, AclInfo, what, size_max=BODY_BYTES_MAX)
        principal = self._known(subject_of(asked.subject or subject))
        if not asked.policies:
            raise denied("The body of acl is null")
        by_resource: dict[str, list[Grant]] = {}
        for entry in entries_of(asked):
            made = grants_of(principal, entry, self._cluster_name)
            by_resource[entry.resource or ""] = made
        patterns = {grant[:3] for made in by_resource.values() for grant in made}
        new = {grant for made in by_resource.values() for grant in made}
        old = replaced(self.of(principal), patterns)
        await add_in_parts(self._grants, new)
        await remove_in_parts(self._grants, [grant for grant in old if grant not in new])
        return await self.done(command, caller, f"policies of {principal}")

    async def delete_acl(self, command: Command, caller: Caller) -> Reply:
        """3008: remove the policies of a subject, for one resource or for all."""
        asked = headers.read(command, fields.DeleteAclHeader)
        principal = self._known(subject_of(asked.subject))
        known = [grant for grant in self.of(principal) if is_expressible(grant)]
        if not known:
            raise denied("The acl is not exist.")
        if asked.resource:
            known = replaced(known, patterns_of(asked.resource, self._cluster_name))
        await remove_in_parts(self._grants, known)
        return await self.done(command, caller, f"policies of {principal}")

    async def get_acl(self, command: Command, caller: Caller) -> Reply:
        """3009: the policies of a subject; an empty response without any."""
        principal = self._known(subject_of(headers.read(command, fields.AclHeader).subject))
        rows = await asyncio.to_thread(_listed, self.of(principal), "")
        body = await joined(b"", rows, b"", instead="use `rockgate acls list`")
        return Command(ResponseCode.SUCCESS, body=body)

    async def list_acls(self, command: Command, caller: Caller) -> Reply:
        """3010: the policies whose subject and resource contain the filters."""
        asked = headers.read(command, fields.ListAclsHeader)
        subject, resource = asked.subject_filter or "", asked.resource_filter or ""
        # A copy, because a thread reads it.
        everything = [grant for grant in self._grants if subject in grant.principal]
        rows = await asyncio.to_thread(_listed, everything, resource)
        body = await joined(b"[", rows, b"]", instead="filter by subject") if rows else b""
        return Command(ResponseCode.SUCCESS, body=body)

    # Shared with 4.9's

    async def remove_user(self, name: str) -> None:
        """Remove a user and its grants."""
        # Grants first: a user of the same name who is created later must not have them.
        await remove_in_parts(self._grants, self.of(f"User:{name}"))
        # Some may have been added between the parts.
        self._grants.remove(self.of(f"User:{name}"))
        if self._accounts.find(name) is not None:
            self._accounts.remove(name)

    def of(self, principal: str) -> list[Grant]:
        """The grants of a principal."""
        return [grant for grant in self._grants if grant.principal == principal]

    def check_super(self, caller: Caller, verb: str) -> None:
        """Refuse who is not a super user."""
        if not self._accounts.is_super(caller.peer.principal):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"The super user can only be {verb} by super user"
            )

    async def done(self, command: Command, caller: Caller, what: str) -> Reply:
        """The response to a change, which is written down."""
        if self._audit is not None:
            api = request_name(command.code)
            self._audit.changed(caller.peer.principal, caller.peer.remote.host, api=api, what=what)
        reply = self._after_changes(Command(ResponseCode.SUCCESS))
        return reply if isinstance(reply, Command | list) else await reply

    def _user(self, command: Command) -> tuple[str, UserInfo]:
        name = headers.read(command, fields.UserHeader).username
        if not name:
            raise invalid("The username is blank")
        what = request_name(command.code)
        return name, javajson.decode(command.body, UserInfo, what, size_max=BODY_BYTES_MAX)

    def _type(self, asked: UserInfo, known: bool, caller: Caller, verb: str) -> bool:
        is_super = _chosen(asked.user_type, _TYPES, "User type", known)
        if is_super:
            self.check_super(caller, verb)
        return is_super

    def _changeable(self, name: str, caller: Caller) -> Account:
        known = self._accounts.find(name)
        if known is None:
            raise denied("The user is not exist")
        if known.is_super:
            self.check_super(caller, "update")
        return known

    def _known(self, principal: str) -> str:
        name = principal.partition(":")[2]
        if self._accounts.find(name) is None:
            raise denied(f"The subject of {principal[:300]} is not exist.")
        return principal


def denied(why: str) -> Refused:
    """A refusal as RocketMQ's processors of these codes answer it."""
    return Refused(ResponseCode.NO_PERMISSION, why)


def _chosen(text: str | None, values: dict[str, bool], what: str, default: bool) -> bool:
    if not text:
        return default
    found = values.get(text.lower())
    if found is None:
        raise invalid(f"{what} {text[:50]!r} is not one of {', '.join(values)}.")
    return found


def _credentials(asked: UserInfo) -> list[str] | None:
    """What the password is for; None for everything."""
    if asked.credentials is None:
        return None
    if not asked.password:
        raise invalid("Credentials need a password")
    for each in asked.credentials:
        if each not in CREDENTIALS:
            raise invalid(f"Credential {each[:50]!r} is not one of {', '.join(CREDENTIALS)}.")
    if not asked.credentials:
        raise invalid("The credentials are empty.")
    return asked.credentials


def _info(name: str, account: Account) -> UserInfo:
    return UserInfo(
        username=name,
        user_type="Super" if account.is_super else "Normal",
        user_status="enable" if account.is_enabled else "disable",
        credentials=list(account.credentials),
    )


def _listed(grants: list[Grant], resource: str) -> list[bytes]:
    """The policies of all principals, encoded."""
    by_principal: dict[str, list[Grant]] = defaultdict(list)
    for grant in grants:
        by_principal[grant.principal].append(grant)
    rows = []
    for principal, owned in sorted(by_principal.items()):
        found = acl_of(principal, owned)
        if found is None:
            continue
        for policy in found.policies or ():
            policy.entries = [
                entry for entry in policy.entries or () if resource in (entry.resource or "")
            ]
        if any(policy.entries for policy in found.policies or ()):
            rows.append(msgspec.json.encode(found))
    return rows
