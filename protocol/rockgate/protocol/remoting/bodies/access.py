"""Bodies of requests about users and their rights."""

import msgspec


class UserInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A user of RocketMQ 5. The password is never in a response of ours."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    """Normal or Super."""
    user_status: str | None = None
    """enable or disable."""
    credentials: list[str] | None = None
    """Ours: SASL names of SCRAM, and SIGNATURE. What a user can log in with; in a request, what the
    password is for, everything if there is no list."""

    def __repr__(self) -> str:
        return f"UserInfo({self.username!r})"


class PolicyEntryInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What a subject may do with a resource, from some addresses."""

    resource: str | None = None
    actions: list[str] = []
    source_ips: list[str] | None = None
    decision: str | None = None
    """Allow or Deny."""


class PolicyInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The entries of one type: Custom, or Default for what no custom entry is about."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The policies of a subject."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None


class PlainAccess(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A user of RocketMQ 4.9. The secret is never in a response of ours."""

    access_key: str
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] = []
    group_perms: list[str] = []


class AclConfigBody(msgspec.Struct, kw_only=True, rename="camel"):
    """54: all users of RocketMQ 4.9."""

    global_white_addrs: list[str] = []
    plain_access_configs: list[PlainAccess] = []
