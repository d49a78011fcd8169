"""AlterUserScramCredentials: v0.

Behaviour
- Credentials are set and removed by user and mechanism; a user succeeds or fails as a whole.
- Setting one makes a user that does not exist; removing the last one, of whatever kind, removes the
  user.
- An empty name, and too few or too many iterations (4,096 to 16,384) are UNACCEPTABLE_CREDENTIAL,
  an unknown mechanism is UNSUPPORTED_SASL_MECHANISM, a mechanism of a user that is named twice
  DUPLICATE_RESOURCE, and the removal of what does not exist RESOURCE_NOT_FOUND.
- Open connections of a user that is removed are closed.

Departs from Kafka
- A salt or salted password of the wrong size is UNACCEPTABLE_CREDENTIAL, and so are the names
  ANONYMOUS and *. There are at most 100,000 users: more are POLICY_VIOLATION.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Generator, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.request.chunked import Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.errors import InvalidUser, SecurityError
from rockgate.gateway.security.users import StoredUsers, User, check_name
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rockgate.protocol.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    credential_of,
)
from rockgate.store.errors import StoreError

CHANGE_COST = 50
PIECE_COUNT = 500
SALT_SIZE_MAX: Final = 1_024
# Kafka's own words, which its tools show.
TWICE: Final = "A user credential cannot be altered twice in the same request"
MISSING: Final = "Attempt to delete a user credential that does not exist"
UNKNOWN: Final = "Unknown SCRAM mechanism"
_MECHANISMS: Final = {mechanism.number: mechanism for mechanism in ScramMechanism}
Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


class Altered(NamedTuple):
    """A user, and all that is to be changed of it."""

    name: str
    alterations: list[Alteration]


class AlterUserScramCredentials:
    """Sets and removes credentials."""

    def __init__(self, *, users: StoredUsers, durability: Durability, audit: Audit) -> None:
        self._users = users
        self._durability = durability
        self._audit = audit
        self._slicing = Slicing(
            AlterUserScramCredentialsResponse, AlterUserScramCredentialsResult, is_changing=True
        )

    def handle(
        self, request: AlterUserScramCredentialsRequest, call: Call
    ) -> AlterUserScramCredentialsResponse | Awaitable[AlterUserScramCredentialsResponse]:
        """Change users, some at a time."""
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: AlterUserScramCredentialsRequest, call: Call
    ) -> Steps[AlterUserScramCredentialsResponse]:
        asked = yield from _by_user([*request.deletions, *request.upsertions])
        return self._slicing.work(
            asked,
            lambda: CredentialSetting(self._users, self._audit, call),
            lambda results: self._durability.after_changes(
                AlterUserScramCredentialsResponse(results=results)
            ),
            call.version,
        )

    def refuse(
        self, request: AlterUserScramCredentialsRequest, code: ErrorCode
    ) -> AlterUserScramCredentialsResponse:
        """Reject every user with the same error."""
        names = dict.fromkeys(
            [each.name for each in request.deletions] + [each.name for each in request.upsertions]
        )
        return AlterUserScramCredentialsResponse(
            results=[_result(name, code, code.meaning) for name in names]
        )


class CredentialSetting:
    """A slice of users whose credentials are to be changed."""

    def __init__(self, users: StoredUsers, audit: Audit, call: Call) -> None:
        self._users = users
        self._audit = audit
        self._call = call
        self._planned: dict[str, User | None] = {}
        self._outcomes: list[tuple[str, tuple[ErrorCode, str] | None]] = []

    def take(self, asked: Altered, /) -> int:
        """Check the credentials that a user would have."""
        try:
            self._planned[asked.name] = self._plan(asked)
        except RequestError as error:
            self._outcomes.append((asked.name, (error.code, error.reason)))
            return 0
        self._outcomes.append((asked.name, None))
        return CHANGE_COST

    def _plan(self, asked: Altered) -> User | None:
        if len({each.mechanism for each in asked.alterations}) < len(asked.alterations):
            raise RequestError(ErrorCode.DUPLICATE_RESOURCE, TWICE)
        user = self._users.find(asked.name) or User()
        scram = dict(user.scram)
        for each in asked.alterations:
            mechanism = _mechanism(each)
            if isinstance(each, ScramCredentialUpsertion):
                scram[mechanism.sasl_name] = _credential(mechanism, each)
            elif scram.pop(mechanism.sasl_name, None) is None:
                raise RequestError(ErrorCode.RESOURCE_NOT_FOUND, MISSING)
        planned = user._replace(scram=scram)
        return planned if planned.has_credentials else None

    def finish(self) -> Sequence[AlterUserScramCredentialsResult]:
        """Set all that passed the check."""
        code, reason = ErrorCode.NONE, None
        try:
            self._users.put(self._planned)
        except SecurityError as error:
            code, reason = ErrorCode.POLICY_VIOLATION, str(error)
        except StoreError as error:
            code, reason = explain(error)
        results = []
        for name, refused in self._outcomes:
            outcome = refused or (code, reason)
            peer = self._call.peer
            self._audit.changed(
                peer.principal,
                peer.remote.host,
                api="ALTER_USER_SCRAM_CREDENTIALS",
                what=f"USER:{name}",
                outcome="ok" if outcome[0] == ErrorCode.NONE else outcome[0].name,
            )
            results.append(_result(name, *outcome))
        return results


def _by_user(alterations: Sequence[Alteration]) -> Generator[None, None, list[Altered]]:
    found: dict[str, Altered] = {}
    for index, each in enumerate(alterations):
        found.setdefault(each.name, Altered(each.name, [])).alterations.append(each)
        if index % PIECE_COUNT == 0:
            yield
    return list(found.values())


def _mechanism(asked: Alteration) -> ScramMechanism:
    try:
        check_name(asked.name)
    except InvalidUser as error:
        raise _unacceptable(str(error)) from None
    mechanism = _MECHANISMS.get(asked.mechanism)
    if mechanism is None:
        raise RequestError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, UNKNOWN)
    return mechanism


def _credential(mechanism: ScramMechanism, asked: ScramCredentialUpsertion) -> ScramCredential:
    if asked.iterations < ITERATIONS_MIN:
        raise _unacceptable("Too few iterations")
    if asked.iterations > ITERATIONS_MAX:
        raise _unacceptable("Too many iterations")
    if not 0 < len(asked.salt) <= SALT_SIZE_MAX:
        raise _unacceptable(f"The salt must have 1 to {SALT_SIZE_MAX:,} bytes.")
    if len(asked.salted_password) != hashlib.new(mechanism.hash_name).digest_size:
        raise _unacceptable("The salted password has another size than hashes of the mechanism.")
    return credential_of(
        mechanism, bytes(asked.salted_password), bytes(asked.salt), asked.iterations
    )


def _unacceptable(reason: str) -> RequestError:
    return RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)


def _result(name: str, code: ErrorCode, reason: str | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=name, error_code=code, error_message=reason)
