"""DescribeUserScramCredentials: v0.

Behaviour
- The mechanisms and iterations of the users asked for; null or an empty list asks for all.
- A user without such a credential is RESOURCE_NOT_FOUND, and one that is named twice
  DUPLICATE_RESOURCE.

Departs from Kafka
- Users of RocketMQ without a SCRAM credential are not here.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from collections.abc import Set as AbstractSet

from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.security.users import StoredUsers
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from rockgate.protocol.sasl.scram import ScramMechanism

PIECE_COUNT = 500
"""Users that are looked at in one step."""


class DescribeUserScramCredentials:
    """Says which mechanisms users can log in with."""

    def __init__(self, users: StoredUsers) -> None:
        self._users = users
        self._slicing = Slicing(
            DescribeUserScramCredentialsResponse, DescribeUserScramCredentialsResult
        )

    def handle(
        self, request: DescribeUserScramCredentialsRequest, call: Call
    ) -> DescribeUserScramCredentialsResponse | Awaitable[DescribeUserScramCredentialsResponse]:
        """Describe users, some at a time."""
        return in_slices(self._steps(request, call))

    def _steps(
        self, request: DescribeUserScramCredentialsRequest, call: Call
    ) -> Steps[DescribeUserScramCredentialsResponse]:
        given = [user.name for user in request.users or ()]
        names: Collection[str]
        names, repeated = yield from once_in_steps(given, str)
        if not given:
            # A copy, because users may come and go between the steps.
            everyone, found = list(self._users.names()), list[str]()
            for at in range(0, len(everyone), PIECE_COUNT):
                found += filter(self._has_scram, everyone[at : at + PIECE_COUNT])
                yield None
            names = found
        return self._slicing.work(
            names,
            lambda: Each(lambda name: self._described(name, repeated)),
            lambda results: DescribeUserScramCredentialsResponse(
                error_message=None, results=results
            ),
            call.version,
        )

    def _has_scram(self, name: str) -> bool:
        user = self._users.find(name)
        return user is not None and bool(user.scram)

    def _described(
        self, name: str, repeated: AbstractSet[str]
    ) -> DescribeUserScramCredentialsResult:
        if name in repeated:
            reason = "Cannot describe SCRAM credentials for the same user twice in a single request"
            return _failed(name, ErrorCode.DUPLICATE_RESOURCE, f"{reason}: {name}")
        user = self._users.find(name)
        if user is None or not user.scram:
            reason = "Attempt to describe a user credential that does not exist"
            return _failed(name, ErrorCode.RESOURCE_NOT_FOUND, f"{reason}: {name}")
        return DescribeUserScramCredentialsResult(
            user=name,
            error_message=None,
            credential_infos=[
                CredentialInfo(mechanism=mechanism.number, iterations=found.iterations)
                for mechanism in ScramMechanism
                if (found := user.scram.get(mechanism.sasl_name)) is not None
            ],
        )

    def refuse(
        self, request: DescribeUserScramCredentialsRequest, code: ErrorCode
    ) -> DescribeUserScramCredentialsResponse:
        """An error for the whole request."""
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=code.meaning, results=[]
        )


def _failed(name: str, code: ErrorCode, reason: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=reason, credential_infos=[]
    )
