"""Connects RocketMQ's listeners with the server's users, grants and audit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from rockgate.gateway.compose.remoting.services import RemotingServices
from rockgate.gateway.compose.security import SecurityAssembly
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.remoting.access.accounts import CREDENTIALS, Account
from rockgate.gateway.remoting.access.accounts import SIGNATURE as SIGNED
from rockgate.gateway.remoting.access.old_requests import OldAccessRequests
from rockgate.gateway.remoting.access.requests import AccessRequests
from rockgate.gateway.remoting.authorization.authentication import Signed
from rockgate.gateway.remoting.authorization.broker_needs import broker_needs
from rockgate.gateway.remoting.authorization.guard import Failures, RequestGuard
from rockgate.gateway.remoting.authorization.needs import WRITE, Needs, of_topic
from rockgate.gateway.remoting.server.caller import Caller, Peer
from rockgate.gateway.remoting.server.handle import Handle
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.users import User, UserStatus, UserType
from rockgate.gateway.transcode.address import unpack_address
from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.properties import REAL_TOPIC
from rockgate.protocol.sasl.scram import ScramCredential, ScramMechanism

SIGNATURE: Final = "signature"
"""The authentication of listeners that demand signatures."""
SECRETS_MAX: Final = 10_000
"""Opened secrets that are cached; one more empties the cache."""


def _demands_signature(peer: Peer) -> bool:
    return peer.listener.authentication == SIGNATURE


class ServerAccounts:
    """The users of this server, as RocketMQ's requests set them and signatures need them."""

    def __init__(self, security: SecurityAssembly) -> None:
        self._users = security.users
        self._logins = security.logins
        self._authorizer = security.authorizer
        # A request is signed: opening the secret again for each would take as long as checking it.
        self._secrets: dict[str, bytes] = {}
        self.changes = 0
        """Raised by every change of a user."""
        self._users.on_changed.append(self._changed)

    def find(self, name: str) -> Account | None:
        """Return a user; None if there is none."""
        found = self._users.find(name)
        if found is None:
            return None
        credentials = [each.sasl_name for each in ScramMechanism if each.sasl_name in found.scram]
        if found.sealed:
            credentials.append(SIGNED)
        return Account(found.type == UserType.SUPER, found.is_enabled, tuple(credentials))

    def names(self) -> Iterable[str]:
        """The names of all users."""
        return self._users.names()

    def is_super(self, principal: Principal) -> bool:
        """Whether a principal may do everything; without authorization everyone may."""
        return self._authorizer is None or self._authorizer.is_super(principal)

    async def put(
        self,
        name: str,
        *,
        password: str | None,
        is_super: bool,
        is_enabled: bool,
        credentials: Collection[str] | None = None,
    ) -> None:
        """Create a user, or change one; the password is the secret and SASL's password."""
        wanted = CREDENTIALS if credentials is None else credentials
        scram: Mapping[str, ScramCredential] = {}
        sealed = b""
        if password is not None:
            if SIGNED in wanted:
                sealed = self._logins.sealed(name, password)
            hashed = await self._logins.hashed(password)
            scram = {each: found for each, found in hashed.items() if each in wanted}
        known = self._users.find(name) or User()
        user = known._replace(
            type=UserType.SUPER if is_super else UserType.NORMAL,
            status=UserStatus.ENABLED if is_enabled else UserStatus.DISABLED,
            scram={**known.scram, **scram},
            sealed=sealed or known.sealed,
        )
        self._users.put({name: user})

    def remove(self, name: str) -> None:
        """Remove a user."""
        self._users.put({name: None})

    def secret(self, name: str) -> bytes | None:
        """What a user signs with; None if the user cannot."""
        known = self._secrets.get(name)
        if known is not None:
            return known
        found = self._logins.secret(name)
        if found is None:
            return None
        if len(self._secrets) >= SECRETS_MAX:
            self._secrets.clear()
        secret = self._secrets[name] = found.encode()
        return secret

    def _changed(self, names: Iterable[str]) -> None:
        self.changes += 1
        for name in names:
            self._secrets.pop(name, None)


class StoredPlaces:
    """Where messages are that requests name by their places."""

    def __init__(self, services: RemotingServices) -> None:
        self._lookup = services.store.lookup
        self._halves = services.halves

    def topic_at(self, address: int) -> str | None:
        """The topic of a message; None if there is none."""
        place = unpack_address(address)
        found = self._lookup.entry(place.position) if place is not None else None
        return None if found is None else found[0].topic.decode()

    def target_of(self, half_offset: int) -> str | None:
        """The topic that an undecided half message is for; None if it is decided."""
        if self._halves.undecided.find(half_offset) is None:
            return None
        return parse_properties(self._halves.read(half_offset).properties)[REAL_TOPIC]


class RemotingAccess:
    """What is checked on RocketMQ's listeners. One for the broker's and the name server's."""

    def __init__(self, security: SecurityAssembly, failures: Failures | None = None) -> None:
        self.identify = security.identity.principal
        """Whom a client's certificate names."""
        self.seconds_max = security.config.authentication_ms_max / 1000
        """How long a client may take to authenticate."""
        self.accounts = ServerAccounts(security)
        self.audit = security.audit
        self._security = security
        self._failures = failures

    def guard(self, listener: str, endpoints: Iterable[Endpoint]) -> RequestGuard | None:
        """What guards the table of some listeners; None if there is nothing to check."""
        access = self._security.authorizer
        if access is None and not any(each.authentication == SIGNATURE for each in endpoints):
            return None
        audit = self._security.audit
        return RequestGuard(
            authentication=Signed(
                self.accounts, demands=_demands_signature, audit=audit, listener=listener
            ),
            access=access,
            audit=audit,
            failures=self._failures,
        )

    def table(self, services: RemotingServices, address: str) -> dict[RequestCode, Handle]:
        """The processors of requests about users and their rights."""
        config, security = services.config, self._security
        requests = AccessRequests(
            accounts=self.accounts,
            grants=security.grants,
            after_changes=services.durability.after_changes,
            cluster_name=config.cluster_name,
            audit=security.audit,
        )
        old = OldAccessRequests(
            accounts=self.accounts,
            grants=security.grants,
            requests=requests,
            version=self._version,
            broker_name=config.broker_name,
            cluster_name=config.cluster_name,
            address=address,
        )
        return access_table(requests, old)

    def _version(self) -> int:
        access = self._security.authorizer
        return self.accounts.changes if access is None else access.generation


def access_table(requests: AccessRequests, old: OldAccessRequests) -> dict[RequestCode, Handle]:
    """The processor of each code about users and their rights."""
    return {
        RequestCode.AUTH_CREATE_USER: requests.create_user,
        RequestCode.AUTH_UPDATE_USER: requests.update_user,
        RequestCode.AUTH_DELETE_USER: requests.delete_user,
        RequestCode.AUTH_GET_USER: requests.get_user,
        RequestCode.AUTH_LIST_USER: requests.list_users,
        RequestCode.AUTH_CREATE_ACL: requests.set_acl,
        RequestCode.AUTH_UPDATE_ACL: requests.set_acl,
        RequestCode.AUTH_DELETE_ACL: requests.delete_acl,
        RequestCode.AUTH_GET_ACL: requests.get_acl,
        RequestCode.AUTH_LIST_ACL: requests.list_acls,
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: old.update,
        RequestCode.DELETE_ACL_CONFIG: old.delete,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO: old.version,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: old.exempt,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: old.all,
    }


def needs_of(services: RemotingServices) -> Mapping[RequestCode, Needs]:
    """What each request to the broker needs."""
    return broker_needs(StoredPlaces(services))


def may_check(guard: RequestGuard) -> Callable[[Caller, str], bool]:
    """Whether a producer may be asked about a half message for a topic, which it then sees."""
    return lambda caller, topic: guard.may(caller, of_topic(topic, WRITE))
