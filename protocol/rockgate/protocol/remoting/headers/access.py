"""Headers of requests about users and their rights: 3001 to 3010 of RocketMQ 5, 50 to 54 of 4.9."""

import msgspec


class UserHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """3001 to 3004: one user."""

    username: str = ""


class ListUsersHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """3005: users whose names contain a text."""

    filter: str | None = None


class AclHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """3006, 3007 and 3009: the policies of one subject, `User:name`."""

    subject: str = ""


class DeleteAclHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """3008: remove the policies of a subject, for one resource or for all."""

    subject: str = ""
    policy_type: str | None = None
    resource: str | None = None


class ListAclsHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """3010: policies whose subject and resource contain texts."""

    subject_filter: str | None = None
    resource_filter: str | None = None


class PlainAccessHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """50: set a user of RocketMQ 4.9; what is None stays as it is."""

    access_key: str = ""
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


class AccessKeyHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """51: one user of RocketMQ 4.9."""

    access_key: str = ""


class AclVersionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """52: the version of a broker's access control, as JSON."""

    version: str
    all_acl_file_version: str
    broker_addr: str
    broker_name: str
    cluster_name: str
