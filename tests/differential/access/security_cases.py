"""Cells about users, grants and tokens, and about groups of the consumer protocol."""

from __future__ import annotations

from typing import Any

from tests.differential.access.cells import (
    OP,
    TYPE,
    Case,
    Cell,
    case,
    on_cluster,
    on_group,
    on_topics,
)

from rockgate.protocol.kafka.messages import (
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    renew_delegation_token,
)

_ANY, _LITERAL, _TOPIC, _READ, _ALLOW = 1, 3, 2, 3, 3
_NOBODY = "nobody-here"
_UNKNOWN_HMAC = bytes(64)


def _filter(cell: Cell) -> dict[str, Any]:
    """What matches grants on a topic that has none."""
    return {
        "resource_type_filter": _TOPIC,
        "resource_name_filter": f"{cell.absent}-unnamed",
        "pattern_type_filter": _LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }


def _acl(cell: Cell) -> Any:
    return create_acls.AclCreation(
        resource_type=_TOPIC,
        resource_name=f"{cell.absent}-named",
        principal=f"User:{_NOBODY}",
        host="*",
        operation=_READ,
        permission_type=_ALLOW,
    )


def _heartbeat(cell: Cell, *topics: str) -> Any:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=cell.group,
        member_id="AAAAAAAAAAAAAAAAAAAAAA",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )


def _token(cell: Cell, owner: str | None) -> Any:
    return create_delegation_token.CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[],
        max_lifetime_ms=-1,
    )


OF_SECURITY: tuple[Case, ...] = (
    case(
        "DescribeAcls",
        3,
        lambda c: describe_acls.DescribeAclsRequest(**_filter(c)),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "CreateAcls",
        3,
        lambda c: create_acls.CreateAclsRequest(creations=[_acl(c)]),
        on_cluster(OP.ALTER),
    ),
    case(
        "DeleteAcls",
        3,
        lambda c: delete_acls.DeleteAclsRequest(
            filters=[delete_acls.DeleteAclsFilter(**_filter(c))]
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "DescribeUserScramCredentials",
        0,
        lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=[describe_user_scram_credentials.UserName(name=_NOBODY)]
        ),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "AlterUserScramCredentials",
        0,
        lambda _: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[
                alter_user_scram_credentials.ScramCredentialDeletion(name=_NOBODY, mechanism=1)
            ],
            upsertions=[],
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "CreateDelegationToken of oneself",
        3,
        lambda c: _token(c, None),
        on_cluster(OP.ALTER),
    ),
    case(
        "CreateDelegationToken of another",
        3,
        lambda c: _token(c, c.owner),
        (OP.CREATE_TOKENS, TYPE.USER, "owner"),
    ),
    case(
        "DescribeDelegationToken of another",
        3,
        lambda c: describe_delegation_token.DescribeDelegationTokenRequest(
            owners=[
                describe_delegation_token.DescribeDelegationTokenOwner(
                    principal_type="User", principal_name=c.owner
                )
            ]
        ),
        (OP.DESCRIBE_TOKENS, TYPE.USER, "owner"),
    ),
    case(
        "RenewDelegationToken",
        2,
        lambda _: renew_delegation_token.RenewDelegationTokenRequest(
            hmac=_UNKNOWN_HMAC, renew_period_ms=-1
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "ExpireDelegationToken",
        2,
        lambda _: expire_delegation_token.ExpireDelegationTokenRequest(
            hmac=_UNKNOWN_HMAC, expiry_time_period_ms=-1
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "ConsumerGroupHeartbeat",
        1,
        lambda c: _heartbeat(c, c.topic),
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "ConsumerGroupHeartbeat for a group only",
        1,
        lambda c: _heartbeat(c, c.topic, c.absent),
        on_group(OP.READ),
    ),
    case(
        "ConsumerGroupDescribe",
        1,
        lambda c: consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=[c.group], include_authorized_operations=True
        ),
        on_group(OP.DESCRIBE),
    ),
)
