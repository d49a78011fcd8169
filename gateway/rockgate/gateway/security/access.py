"""The question that every guard asks: may this principal, from this host, do that?

Listeners that check nothing have no `Access` at all: their tables are built without guards, and a
request costs nothing more.
"""

from __future__ import annotations

from typing import Protocol

from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import Principal


class Access(Protocol):
    """Decides by the grants of now: a change takes effect on open connections."""

    @property
    def generation(self) -> int:
        """Raised by every change; a decision that was cached under another one is stale."""

    def may(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        /,
    ) -> bool:
        """Whether the operation on the resource is allowed."""

    def may_on_any(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        /,
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type."""
