"""The largest requests of Kafka's protocol about users, grants and tokens, for `bench.requests`."""

from collections.abc import Iterator
from typing import Any

from bench.requests.kafka import TOPIC_RESOURCE, all_topics, changing, row
from bench.requests.world import Request
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_user_scram_credentials as altering
from rockgate.protocol.kafka.messages import create_acls as creating
from rockgate.protocol.kafka.messages import create_delegation_token as issuing
from rockgate.protocol.kafka.messages import delete_acls as deleting
from rockgate.protocol.kafka.messages import describe_acls as describing
from rockgate.protocol.kafka.messages import describe_delegation_token as tokens
from rockgate.protocol.kafka.messages import describe_user_scram_credentials as users
from rockgate.protocol.kafka.messages import expire_delegation_token as expiring
from rockgate.protocol.kafka.messages import renew_delegation_token as renewing
from rockgate.protocol.kafka.messages import sasl_authenticate as authenticating
from rockgate.protocol.kafka.messages import sasl_handshake as shaking

SETTINGS = (
    "security.authorization=on",
    "security.super_users=User:ANONYMOUS",
    "security.delegation_tokens=true",
    "client_metrics.enabled=true",
)
"""The server decides about every request, and its client may make all of them."""

_ANY = 1
_READ = 3
_ALLOW = 3
_SCRAM_SHA_256 = 1
_ITERATIONS = 4096
_SALT = bytes(16)
_SALTED = bytes(32)
USERS, GRANTS = 99_000, 90_000
"""Fewer than there may be, so that the requests of RocketMQ's clients can make some more."""
LISTED = 10_000


def _any(resource_name: str | None) -> dict[str, Any]:
    return {
        "resource_type_filter": _ANY,
        "resource_name_filter": resource_name,
        "pattern_type_filter": _ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }


def _logins() -> Iterator[Request]:
    yield row(
        ApiKey.SASL_HANDSHAKE,
        "a mechanism of 32,767 letters",
        lambda _: shaking.SaslHandshakeRequest(mechanism="M" * 32_767),
    )
    yield row(
        ApiKey.SASL_AUTHENTICATE,
        "90 MB",
        lambda _: authenticating.SaslAuthenticateRequest(auth_bytes=bytes(90 << 20)),
    )


def _altering(count: int) -> Request:
    return changing(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        f"{count:,} users",
        lambda w: altering.AlterUserScramCredentialsRequest(
            deletions=[],
            upsertions=[
                altering.ScramCredentialUpsertion(
                    name=name,
                    mechanism=_SCRAM_SHA_256,
                    iterations=_ITERATIONS,
                    salt=_SALT,
                    salted_password=_SALTED,
                )
                for name in all_topics(w)[:count]
            ],
        ),
    )


def _users() -> Iterator[Request]:
    yield _altering(USERS)
    yield row(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "all",
        lambda _: users.DescribeUserScramCredentialsRequest(users=None),
    )
    yield row(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "100,000 users",
        lambda w: users.DescribeUserScramCredentialsRequest(
            users=[users.UserName(name=name) for name in all_topics(w)]
        ),
    )


def _grants() -> Iterator[Request]:
    yield changing(
        ApiKey.CREATE_ACLS,
        f"{GRANTS:,} grants",
        lambda w: creating.CreateAclsRequest(
            creations=[
                creating.AclCreation(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    principal="User:reader",
                    host="*",
                    operation=_READ,
                    permission_type=_ALLOW,
                )
                for name in all_topics(w)[:GRANTS]
            ]
        ),
    )
    yield row(ApiKey.DESCRIBE_ACLS, "all", lambda _: describing.DescribeAclsRequest(**_any(None)))


def _deletions() -> Iterator[Request]:
    yield changing(
        ApiKey.DELETE_ACLS,
        "1,000 filters without a name",
        lambda _: deleting.DeleteAclsRequest(
            filters=[
                deleting.DeleteAclsFilter(**{**_any(None), "principal_filter": f"User:u{number}"})
                for number in range(1_000)
            ]
        ),
    )
    yield changing(
        ApiKey.DELETE_ACLS,
        "100,000 filters",
        lambda w: deleting.DeleteAclsRequest(
            filters=[deleting.DeleteAclsFilter(**_any(name)) for name in all_topics(w)]
        ),
    )


def _tokens() -> Iterator[Request]:
    """Of a client that may have none: what decoding and refusing takes."""
    yield changing(
        ApiKey.CREATE_DELEGATION_TOKEN,
        "100,000 renewers",
        lambda w: issuing.CreateDelegationTokenRequest(
            owner_principal_type=None,
            owner_principal_name=None,
            renewers=[
                issuing.CreatableRenewers(principal_type="User", principal_name=name)
                for name in all_topics(w)
            ],
            max_lifetime_ms=-1,
        ),
    )
    yield row(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        "100,000 owners",
        lambda w: tokens.DescribeDelegationTokenRequest(
            owners=[
                tokens.DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
                for name in all_topics(w)
            ]
        ),
    )
    yield row(
        ApiKey.RENEW_DELEGATION_TOKEN,
        "90 MB",
        lambda _: renewing.RenewDelegationTokenRequest(hmac=bytes(90 << 20), renew_period_ms=-1),
    )
    yield row(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        "90 MB",
        lambda _: expiring.ExpireDelegationTokenRequest(
            hmac=bytes(90 << 20), expiry_time_period_ms=-1
        ),
    )


FIRST = (_altering(LISTED),)
"""As many users as RocketMQ's clients can list."""
REQUESTS = (*_logins(), *_users(), *_grants(), *_tokens())
DELETIONS = (*_deletions(),)
"""After the requests of RocketMQ's clients, which find what these delete."""
