"""Users and their rights as RocketMQ 4.9 has them: 50 to 54, over the same users and grants."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from rockgate.gateway.remoting.access.accounts import Account, Accounts, Grants
from rockgate.gateway.remoting.access.grant_changes import add_in_parts, remove_in_parts
from rockgate.gateway.remoting.access.plain_access import (
    PlainPermissions,
    operations_of,
    perms_of,
    text_of,
)
from rockgate.gateway.remoting.access.policies import invalid
from rockgate.gateway.remoting.access.requests import AccessRequests, denied
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.security.grants import AclResourceType, Grant
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.access import AclConfigBody, PlainAccess
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import access as fields

LISTED_MAX: Final = 10_000
"""Users that 54 lists; more are refused."""
_NO_EXEMPTION: Final = (
    "is not supported: every request needs a signature, whatever its address is. Grant what it "
    "needs to a user, with a source address if necessary."
)


class OldAccessRequests:
    """The processors of 50 to 54."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        grants: Grants,
        requests: AccessRequests,
        version: Callable[[], int],
        broker_name: str,
        cluster_name: str,
        address: str,
    ) -> None:
        """`version` is raised by every change of users and grants."""
        self._accounts = accounts
        self._grants = grants
        self._requests = requests
        self._version = version
        self._broker_name = broker_name
        self._cluster_name = cluster_name
        self._address = address

    async def update(self, command: Command, caller: Caller) -> Reply:
        """50: create a user with permissions, or change what is given."""
        asked = headers.read(command, fields.PlainAccessHeader)
        name, known = asked.access_key, self._accounts.find(asked.access_key)
        if not name or (known is None and not asked.secret_key):
            raise invalid("The accessKey and the secretKey of a new user cannot be null.")
        if (asked.white_remote_address or "").strip():
            raise invalid(f"whiteRemoteAddress {_NO_EXEMPTION}")
        if asked.admin or (known is not None and known.is_super):
            self._requests.check_super(caller, "update")
        new, old = self._permissions(asked)
        await self._accounts.put(
            name,
            password=asked.secret_key or None,
            is_super=asked.admin,
            is_enabled=known is None or known.is_enabled,
        )
        await add_in_parts(self._grants, new - old)
        await remove_in_parts(self._grants, old - new)
        return await self._requests.done(command, caller, f"user {name}")

    def _permissions(self, asked: fields.PlainAccessHeader) -> tuple[set[Grant], set[Grant]]:
        """The grants that a request leaves its user with, and those that they replace."""
        principal = f"User:{asked.access_key}"
        owned = self._requests.of(principal)
        new: set[Grant] = set()
        old: set[Grant] = set()
        for type_, default, perms in (
            (AclResourceType.TOPIC, asked.default_topic_perm, asked.topic_perms),
            (AclResourceType.GROUP, asked.default_group_perm, asked.group_perms),
        ):
            permissions = PlainPermissions(type_, principal, owned)
            old.update(permissions.grants)
            if default:
                permissions.default = operations_of(default)
            if perms:
                permissions.by_name = perms_of(perms)
            new.update(permissions.wanted())
        return new, old

    async def delete(self, command: Command, caller: Caller) -> Reply:
        """51: delete a user and its grants."""
        name = headers.read(command, fields.AccessKeyHeader).access_key
        known = self._accounts.find(name)
        if known is None:
            raise denied(f"The accesskey[{name[:100]}] does not exist.")
        if known.is_super:
            self._requests.check_super(caller, "update")
        await self._requests.remove_user(name)
        return await self._requests.done(command, caller, f"user {name}")

    def version(self, command: Command, caller: Caller) -> Reply:
        """52: the version, which every change raises."""
        version = javajson.encode(DataVersion(counter=self._version())).decode()
        answer = fields.AclVersionAnswer(
            version=version,
            all_acl_file_version="{}",
            broker_addr=self._address,
            broker_name=self._broker_name,
            cluster_name=self._cluster_name,
        )
        return Command(ResponseCode.SUCCESS, headers.write(answer))

    def exempt(self, command: Command, caller: Caller) -> Reply:
        """53: addresses that need no signature do not exist."""
        raise invalid(f"globalWhiteRemoteAddresses {_NO_EXEMPTION}")

    async def all(self, command: Command, caller: Caller) -> Reply:
        """54: all users with their permissions, without their secrets."""
        names = list(self._accounts.names())
        if len(names) > LISTED_MAX:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"There are {len(names):,} users; the maximum of this request is {LISTED_MAX:,}.",
            )
        users, share = {}, TimeSlice(TURN_SECONDS)
        for name in names:
            found = self._accounts.find(name)
            if found is not None:
                users[name] = found
            if share.is_over():
                await asyncio.sleep(0)
                share = TimeSlice(TURN_SECONDS)
        body = await asyncio.to_thread(_listed, users, [*self._grants])
        return Command(ResponseCode.SUCCESS, body=body)


def _listed(users: dict[str, Account], grants: list[Grant]) -> bytes:
    owned: dict[str, list[Grant]] = defaultdict(list)
    for grant in grants:
        owned[grant.principal].append(grant)
    rows = []
    for name, account in sorted(users.items()):
        principal = f"User:{name}"
        topics = PlainPermissions(AclResourceType.TOPIC, principal, owned[principal])
        groups = PlainPermissions(AclResourceType.GROUP, principal, owned[principal])
        rows.append(
            PlainAccess(
                access_key=name,
                admin=account.is_super,
                default_topic_perm=text_of(topics.default),
                default_group_perm=text_of(groups.default),
                topic_perms=topics.texts(),
                group_perms=groups.texts(),
            )
        )
    return javajson.encode(AclConfigBody(plain_access_configs=rows))
