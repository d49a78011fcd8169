"""Questions about a whole request: may the client do this to the group, transaction or cluster?

A check returns the error of a refusal, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final, TypeAlias

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode

Check: TypeAlias = Callable[[Asking], ErrorCode | None]

KEY_TYPES: Final = {0: AclResourceType.GROUP, 1: AclResourceType.TRANSACTIONAL_ID}
"""What the keys of a FindCoordinator are. Another type is an error anyway."""
KEYS_SINCE: Final = 4
"""The version since which FindCoordinator has several keys."""


def on_cluster(*operations: AclOperation) -> Check:
    """One of these operations on the cluster."""

    def check(asking: Asking) -> ErrorCode | None:
        if any(asking.may_cluster(each) for each in operations[:-1]):
            return None
        return asking.refusal(operations[-1], AclResourceType.CLUSTER, CLUSTER_NAME)

    return check


def on_group(operation: AclOperation) -> Check:
    """An operation on the request's group."""
    return _on(operation, AclResourceType.GROUP, "group_id")


def on_transaction(operation: AclOperation, field: str = "transactional_id") -> Check:
    """An operation on the request's transactional id."""
    return _on(operation, AclResourceType.TRANSACTIONAL_ID, field)


def _on(operation: AclOperation, resource_type: AclResourceType, field: str) -> Check:
    name_of = attrgetter(field)

    def check(asking: Asking) -> ErrorCode | None:
        return asking.refusal(operation, resource_type, name_of(asking.request) or "")

    return check


def since(version: int, check: Check) -> Check:
    """A check of newer requests only."""
    return lambda asking: check(asking) if asking.call.version >= version else None


def before(version: int, check: Check) -> Check:
    """A check of older requests only."""
    return lambda asking: check(asking) if asking.call.version < version else None


def on_new_producer(asking: Asking) -> ErrorCode | None:
    """InitProducerId: WRITE on the transactional id; without one, to write anything at all."""
    if asking.request.transactional_id is not None:
        return _WRITE_TRANSACTION(asking)
    if asking.may_cluster(AclOperation.IDEMPOTENT_WRITE):
        return None
    if asking.may_on_any(AclOperation.WRITE, AclResourceType.TOPIC):
        return None
    return asking.refusal(AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, CLUSTER_NAME)


_WRITE_TRANSACTION: Final = on_transaction(AclOperation.WRITE)


def on_coordinator_key(asking: Asking) -> ErrorCode | None:
    """FindCoordinator with one key: DESCRIBE on it."""
    type_ = KEY_TYPES.get(asking.request.key_type)
    if asking.call.version >= KEYS_SINCE or type_ is None:
        return None
    return asking.refusal(AclOperation.DESCRIBE, type_, asking.request.key)
