"""A cell of the matrix: a request in a scenario, with names and grants that no other cell has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rockgate.gateway.security.grants import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)

OP, TYPE = AclOperation, AclResourceType
SCENARIOS = ("none", "wrong", "grant", "some", "deny", "super")
"""No grant; those of other resources; all that is needed; all but for what does not exist; all, and
the same denied; none, but as a super user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One case in one scenario."""

    number: int
    case: Case
    scenario: str
    topic_id: bytes = bytes(16)

    @property
    def user(self) -> str:
        return "admin" if self.scenario == "super" else f"c{self.number}"

    @property
    def topic(self) -> str:
        return f"t{self.number}"

    @property
    def absent(self) -> str:
        return f"a{self.number}"

    @property
    def group(self) -> str:
        return f"g{self.number}"

    @property
    def transaction(self) -> str:
        return f"x{self.number}"

    @property
    def owner(self) -> str:
        return f"o{self.number}"

    @property
    def label(self) -> str:
        return f"{self.case.name} {self.scenario}"

    def grants(self) -> list[Grant]:
        """The grants of this cell."""
        needs = [] if self.scenario in ("none", "super") else self.case.needs
        found = []
        for operation, type_, which in needs:
            names = {
                "cluster": [CLUSTER_NAME],
                "topic": [self.topic],
                "topics": [self.topic] if self.scenario == "some" else [self.topic, self.absent],
                "absent": [] if self.scenario == "some" else [self.absent],
                "group": [self.group],
                "transaction": [self.transaction],
                "owner": [f"User:{self.owner}"],
            }[which]
            for name in names:
                if self.scenario == "wrong":
                    if type_ is TYPE.CLUSTER:
                        continue
                    name = f"{name}-other"
                found.append(self._grant(operation, type_, name, Permission.ALLOW))
                if self.scenario == "deny":
                    found.append(self._grant(operation, type_, name, Permission.DENY))
        return found

    def _grant(
        self, operation: AclOperation, type_: AclResourceType, name: str, permission: Permission
    ) -> Grant:
        principal = f"User:{self.user}"
        return Grant(type_, name, PatternType.LITERAL, principal, WILDCARD, operation, permission)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request, and what it takes."""

    name: str
    version: int
    needs: Sequence[tuple[AclOperation, AclResourceType, str]]
    make: Callable[[Cell], Any]
    first: Sequence[tuple[int, Callable[[Cell], Any]]] = ()
    """Requests of an administrator before it, with their versions."""


def case(
    name: str,
    version: int,
    make: Callable[[Cell], Any],
    *needs: tuple[AclOperation, AclResourceType, str],
    first: Sequence[tuple[int, Callable[[Cell], Any]]] = (),
) -> Case:
    label = f"{name} v{version}"
    return Case(name=label, version=version, needs=needs, make=make, first=first)


def on_cluster(operation: AclOperation) -> tuple[AclOperation, AclResourceType, str]:
    return operation, TYPE.CLUSTER, "cluster"


def on_topics(operation: AclOperation) -> tuple[AclOperation, AclResourceType, str]:
    return operation, TYPE.TOPIC, "topics"


def on_group(operation: AclOperation) -> tuple[AclOperation, AclResourceType, str]:
    return operation, TYPE.GROUP, "group"


def on_transaction(operation: AclOperation) -> tuple[AclOperation, AclResourceType, str]:
    return operation, TYPE.TRANSACTIONAL_ID, "transaction"
