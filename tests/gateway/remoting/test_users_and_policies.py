"""Users and their rights over RocketMQ's wire: 3001 to 3010 of 5.x, 50 to 54 of 4.9."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gateway.remoting.client import Client

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

C = RequestCode
ALL = ["SCRAM-SHA-256", "SCRAM-SHA-512", "SIGNATURE"]


def user(broker: Client, code: int, name: str, **info: Any) -> Command:
    return broker.ask(code, {"username": name}, json.dumps({"username": name, **info}).encode())


def acl(
    broker: Client, name: str, *entries: dict[str, Any], code: int = C.AUTH_CREATE_ACL
) -> Command:
    subject = f"User:{name}"
    body = {"subject": subject, "policies": [{"policyType": "Custom", "entries": [*entries]}]}
    return broker.ask(code, {"subject": subject}, json.dumps(body).encode())


def entry(resource: str, *actions: str, decision: str = "Allow", ips: Any = None) -> dict[str, Any]:
    made = {"resource": resource, "actions": [*actions], "decision": decision}
    return made | ({} if ips is None else {"sourceIps": ips})


def entries(broker: Client, name: str) -> list[dict[str, Any]]:
    answer = broker.ask(C.AUTH_GET_ACL, {"subject": f"User:{name}"})
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    if not answer.body:
        return []
    found: list[dict[str, Any]] = json.loads(bytes(answer.body))["policies"][0]["entries"]
    return found


def made(broker: Client, name: str) -> str:
    answer = user(broker, C.AUTH_CREATE_USER, name, password="secret-of-" + name)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return name


# 5.x


@pytest.mark.row("SEC-2")
def test_a_user_is_created_changed_listed_and_deleted_without_its_password(broker: Client) -> None:
    name = made(broker, "u_alice")
    answer = user(broker, C.AUTH_GET_USER, name)
    assert json.loads(bytes(answer.body)) == {
        "username": name,
        "userType": "Normal",
        "userStatus": "enable",
        "credentials": ALL,
    }
    changed = user(broker, C.AUTH_UPDATE_USER, name, userType="Super", userStatus="disable")
    assert changed.code == ResponseCode.SUCCESS
    listed = broker.ask(C.AUTH_LIST_USER, {"filter": "u_ali"})
    assert json.loads(bytes(listed.body)) == [
        {"username": name, "userType": "Super", "userStatus": "disable", "credentials": ALL}
    ]
    assert b"secret" not in bytes(listed.body)
    assert user(broker, C.AUTH_DELETE_USER, name).code == ResponseCode.SUCCESS
    gone = user(broker, C.AUTH_GET_USER, name)
    assert gone.code == ResponseCode.SUCCESS and not gone.body


@pytest.mark.parametrize(
    ("code", "name", "info", "why"),
    [
        (C.AUTH_CREATE_USER, "", {"password": "x"}, "blank"),
        (C.AUTH_CREATE_USER, "u_new", {}, "password can not be blank"),
        (C.AUTH_CREATE_USER, "*", {"password": "x"}, "reserved"),
        (C.AUTH_CREATE_USER, "u_new", {"password": "x", "userType": "Boss"}, "Boss"),
        (C.AUTH_UPDATE_USER, "u_nobody", {"password": "x"}, "not exist"),
        (C.AUTH_GET_USER, " ", {}, "blank"),
    ],
)
def test_a_user_that_cannot_be_is_refused_with_the_reason(
    broker: Client, code: int, name: str, info: dict[str, str], why: str
) -> None:
    answer = user(broker, code, name, **info)
    assert answer.code != ResponseCode.SUCCESS
    assert why in (answer.remark or "")


def test_a_password_may_be_for_some_credentials_and_the_others_stay(broker: Client) -> None:
    def known() -> list[str]:
        found: list[str] = json.loads(bytes(user(broker, C.AUTH_GET_USER, "u_some").body))[
            "credentials"
        ]
        return found

    one = {"password": "x", "credentials": ["SCRAM-SHA-512"]}
    assert user(broker, C.AUTH_CREATE_USER, "u_some", **one).code == ResponseCode.SUCCESS
    assert known() == ["SCRAM-SHA-512"]
    more = {"password": "y", "credentials": ["SIGNATURE"]}
    assert user(broker, C.AUTH_UPDATE_USER, "u_some", **more).code == ResponseCode.SUCCESS
    assert known() == ["SCRAM-SHA-512", "SIGNATURE"]
    for asked, why in (
        ({"password": "x", "credentials": ["MD5"]}, "not one of SCRAM-SHA-256"),
        ({"password": "x", "credentials": []}, "empty"),
        ({"credentials": ["SIGNATURE"]}, "need a password"),
    ):
        answer = user(broker, C.AUTH_UPDATE_USER, "u_some", **asked)
        assert answer.code != ResponseCode.SUCCESS
        assert why in (answer.remark or "")


def test_a_user_is_not_created_twice(broker: Client) -> None:
    name = made(broker, "u_twice")
    again = user(broker, C.AUTH_CREATE_USER, name, password="other")
    assert (again.code, again.remark) == (ResponseCode.NO_PERMISSION, "The user is existed")


@pytest.mark.row("SEC-2")
def test_policies_are_listed_as_they_were_set(broker: Client) -> None:
    name = made(broker, "u_policies")
    given = [
        entry("Topic:orders", "Pub", "Sub"),
        entry("Topic:pay*", "All", decision="Deny", ips=["10.0.0.1", "10.0.0.2"]),
        entry("Group:*", "Sub", "Get", "List"),
        entry("Cluster:*", "Create", "Update", "Delete"),
        entry("Topic:a|b", "Sub"),
    ]
    assert acl(broker, name, *given).code == ResponseCode.SUCCESS
    found = entries(broker, name)
    assert sorted(found, key=str) == sorted(given, key=str)


def test_an_update_replaces_the_policies_of_its_resources_only(broker: Client) -> None:
    name = made(broker, "u_update")
    acl(broker, name, entry("Topic:a", "Pub", "Sub"), entry("Topic:b", "Pub"))
    acl(broker, name, entry("Topic:a", "Sub", decision="Deny"), code=C.AUTH_UPDATE_ACL)
    assert entries(broker, name) == [
        entry("Topic:a", "Sub", decision="Deny"),
        entry("Topic:b", "Pub"),
    ]


def test_policies_are_deleted_for_one_resource_or_for_all(broker: Client) -> None:
    name = made(broker, "u_delete")
    acl(broker, name, entry("Topic:a", "Pub"), entry("Topic:b", "Pub"), entry("Topic:c", "Pub"))
    fields = {"subject": f"User:{name}", "policyType": "Custom"}
    broker.ask(C.AUTH_DELETE_ACL, {**fields, "resource": "Topic:b"})
    assert [each["resource"] for each in entries(broker, name)] == ["Topic:a", "Topic:c"]
    assert broker.ask(C.AUTH_DELETE_ACL, fields).code == ResponseCode.SUCCESS
    assert entries(broker, name) == []
    none = broker.ask(C.AUTH_DELETE_ACL, fields)
    assert (none.code, none.remark) == (ResponseCode.NO_PERMISSION, "The acl is not exist.")


def test_a_deleted_user_leaves_no_policies_to_another_of_its_name(broker: Client) -> None:
    name = made(broker, "u_again")
    acl(broker, name, entry("Topic:a", "Pub"))
    user(broker, C.AUTH_DELETE_USER, name)
    made(broker, name)
    assert entries(broker, name) == []


def test_all_policies_are_listed_by_subject_and_resource(broker: Client) -> None:
    for name in ("u_list1", "u_list2"):
        acl(broker, made(broker, name), entry("Topic:t", "Pub"), entry("Group:g", "Sub"))
    fields = {"subjectFilter": "u_list", "resourceFilter": "Group"}
    listed = json.loads(bytes(broker.ask(C.AUTH_LIST_ACL, fields).body))
    assert [each["subject"] for each in listed] == ["User:u_list1", "User:u_list2"]
    assert [each["policies"][0]["entries"] for each in listed] == [[entry("Group:g", "Sub")]] * 2


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (entry("Topic:a", "Pub", ips=["10.0.0.0/8"]), "10.0.0.0/8"),
        (entry("Topic:a", "Pub", ips=["here"]), "here"),
        (entry("Namespace:a", "Pub"), "Namespace:a"),
        (entry("Cluster:other", "Get"), "other"),
        (entry("Topic:a", "Any"), "Any"),
        (entry("Topic:a"), "actions"),
        (entry("Topic:a", "Pub", decision="Maybe"), "decision"),
    ],
)
def test_what_cannot_be_granted_is_refused_by_name(
    broker: Client, wrong: dict[str, Any], why: str
) -> None:
    name = "u_refused"
    user(broker, C.AUTH_CREATE_USER, name, password="secret")
    answer = acl(broker, name, wrong)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert why in (answer.remark or "")
    assert entries(broker, name) == []


def test_default_policies_are_refused(broker: Client) -> None:
    name = made(broker, "u_default")
    policies = [{"policyType": "Default", "entries": [entry("Topic:a", "Pub")]}]
    body = json.dumps({"subject": f"User:{name}", "policies": policies}).encode()
    answer = broker.ask(C.AUTH_CREATE_ACL, {"subject": f"User:{name}"}, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "Default" in (answer.remark or "")


def test_policies_of_a_user_who_does_not_exist_are_refused(broker: Client) -> None:
    answer = acl(broker, "u_missing", entry("Topic:a", "Pub"))
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "not exist" in (answer.remark or "")


# 4.9


def plain(broker: Client, name: str) -> dict[str, Any]:
    body = json.loads(bytes(broker.ask(C.GET_BROKER_CLUSTER_ACL_CONFIG).body))
    (found,) = [each for each in body["plainAccessConfigs"] if each["accessKey"] == name]
    return dict(found)


@pytest.mark.row("SEC-2")
def test_a_user_of_4_9_has_the_same_rights_in_both_versions(broker: Client) -> None:
    name = "old_alice"
    fields = {
        "accessKey": name,
        "secretKey": "secret-of-old",
        "admin": "false",
        "defaultTopicPerm": "SUB",
        "defaultGroupPerm": "DENY",
        "topicPerms": "orders=PUB|SUB,paid=PUB,secrets=DENY",
        "groupPerms": "readers=SUB",
    }
    assert broker.ask(C.UPDATE_AND_CREATE_ACL_CONFIG, fields).code == ResponseCode.SUCCESS
    assert plain(broker, name) == {
        "accessKey": name,
        "defaultTopicPerm": "SUB",
        "defaultGroupPerm": "DENY",
        "topicPerms": ["orders=PUB|SUB", "paid=PUB", "secrets=DENY"],
        "groupPerms": ["readers=SUB"],
    }
    assert sorted(entries(broker, name), key=str) == sorted(
        [
            entry("Topic:*", "Sub"),
            entry("Topic:orders", "Pub", "Sub"),
            entry("Topic:paid", "Pub"),
            entry("Topic:paid", "Sub", decision="Deny"),
            entry("Topic:secrets", "Sub", decision="Deny"),
            entry("Group:readers", "Sub"),
        ],
        key=str,
    )


def test_an_update_of_4_9_leaves_what_it_does_not_name(broker: Client) -> None:
    name = "old_update"
    code = C.UPDATE_AND_CREATE_ACL_CONFIG
    key = {"accessKey": name}
    broker.ask(
        code, {**key, "secretKey": "old-secret", "topicPerms": "a=PUB", "groupPerms": "g=SUB"}
    )
    assert broker.ask(code, {**key, "topicPerms": "b=SUB"}).code == ResponseCode.SUCCESS
    found = plain(broker, name)
    assert (found["topicPerms"], found["groupPerms"]) == (["b=SUB"], ["g=SUB"])
    assert broker.ask(C.DELETE_ACL_CONFIG, key).code == ResponseCode.SUCCESS
    assert broker.ask(C.DELETE_ACL_CONFIG, key).code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"accessKey": "old_new"}, "secretKey"),
        ({"accessKey": "old_new", "secretKey": "s", "whiteRemoteAddress": "10.*"}, "whiteRemote"),
        ({"accessKey": "old_new", "secretKey": "s", "topicPerms": "a=ALL"}, "ALL"),
        ({"accessKey": "old_new", "secretKey": "s", "topicPerms": "a"}, "NAME=PERMISSION"),
    ],
)
def test_what_4_9_has_and_grants_have_not_is_refused_by_name(
    broker: Client, fields: dict[str, str], why: str
) -> None:
    answer = broker.ask(C.UPDATE_AND_CREATE_ACL_CONFIG, fields)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert why in (answer.remark or "")


def test_no_address_is_exempt_from_signatures(broker: Client) -> None:
    answer = broker.ask(C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, {"globalWhiteAddrs": "10.0.0.1"})
    assert answer.code == ResponseCode.INVALID_PARAMETER


def test_the_version_of_access_control_changes_with_it(broker: Client) -> None:
    before = broker.ask(C.GET_BROKER_CLUSTER_ACL_INFO).fields
    made(broker, "u_version")
    after = broker.ask(C.GET_BROKER_CLUSTER_ACL_INFO).fields
    assert before["clusterName"] == "DefaultCluster"
    assert json.loads(before["version"]) != json.loads(after["version"])
