"""Brokers that demand signatures, with the same users: rockgate, and both lines of Apache's.

What a user may do is a map from resources (`Topic:orders`, `Group:readers`) to actions (`Pub`,
`Sub`), set over the wire as each of them has it: 3001 to 3010, or 50 of 4.9, whose file has the
administrator. Messages that failed wait for a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from behaviours.rocketmq_brokers import Broker, apache_broker
from bench.peers import rocketmq
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

ROCKGATE = "rockgate"
ADMIN = "administrator"
Rights = Mapping[str, Sequence[str]]
DEMANDING = (
    "remoting.authentication=signature",
    "namesrv.authentication=signature",
    "security.failed_authentication_delay_ms=1",
)
"""Settings of rockgate."""
_AUTH = "org.apache.rocketmq.auth"


def secret_of(user: str) -> str:
    """The secret of a user."""
    return f"secret-of-{user}"


def authenticating(folder: Path) -> dict[str, str]:
    """Settings of Apache RocketMQ 5 with which it demands signatures and checks rights."""
    secret = secret_of(ADMIN)
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationMetadataProvider": (
            f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
        ),
        "authorizationMetadataProvider": (
            f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
        ),
        "initAuthenticationUser": json.dumps({"username": ADMIN, "password": secret}),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": ADMIN, "secretKey": secret}
        ),
        "authConfigPath": str(folder / "auth"),
    }


def file_of_4_9(folder: Path) -> dict[str, str]:
    """Settings of Apache RocketMQ 4.9, whose file of permissions names the administrator."""
    (folder / "conf").mkdir(exist_ok=True)
    account = f"- accessKey: {ADMIN}\n  secretKey: {secret_of(ADMIN)}\n  admin: true\n"
    (folder / "conf" / "plain_acl.yml").write_text(f"accounts:\n{account}")
    return {"aclEnable": "true"}


class SigningClient(Client):
    """A client that signs its requests as a user."""

    def __init__(self, address: tuple[str, int], user: str) -> None:
        super().__init__(address)
        self._user = user
        self.connection = Connection()

    def send(
        self, code: int, fields: dict[str, Any] | None = None, body: bytes = b"", **flags: bool
    ) -> int:
        texts = {name: str(value) for name, value in (fields or {}).items()}
        signed = signature.sign(texts, body, access_key=self._user, secret=secret_of(self._user))
        return super().send(code, signed, body, **flags)


class SecuredBroker:
    """One of them, with its administrator."""

    def __init__(self, kind: str, broker: Broker) -> None:
        self.kind = kind
        self.broker = broker
        self.namesrv = broker.namesrv
        self._rights: dict[str, dict[str, Sequence[str]]] = {}

    @property
    def users(self) -> set[str]:
        """Those that were made."""
        return set(self._rights)

    def order(self, code: int, fields: dict[str, Any], body: bytes = b"") -> None:
        """Have the administrator do something, which has to be done.

        By a connection of its own: Apache's brokers close one that is idle for two minutes, which a
        busy machine may take to start the next client.
        """
        client = SigningClient(self.broker.address, ADMIN)
        try:
            must(client.ask(code, fields, body))
        finally:
            client.socket.close()

    def make_user(self, user: str, rights: Rights) -> None:
        """A user with these rights and no others."""
        self._rights[user] = {}
        if self.kind != rocketmq.OLD:
            info = {"username": user, "password": secret_of(user), "userType": "Normal"}
            body = json.dumps(info).encode()
            self.order(RequestCode.AUTH_CREATE_USER, {"username": user}, body)
        self.grant(user, rights)

    def grant(self, user: str, rights: Rights) -> None:
        """Give a user more rights, or others on the same resource."""
        self._rights[user] |= rights
        if self.kind == rocketmq.OLD:
            self._write_of_4_9(user)
        elif rights:
            entries = [
                {"resource": name, "actions": [*actions], "decision": "Allow"}
                for name, actions in rights.items()
            ]
            policies = [{"policyType": "Custom", "entries": entries}]
            subject = f"User:{user}"
            body = json.dumps({"subject": subject, "policies": policies}).encode()
            self.order(RequestCode.AUTH_CREATE_ACL, {"subject": subject}, body)

    def revoke(self, user: str, resource: str) -> None:
        """Take away all rights on a resource."""
        del self._rights[user][resource]
        if self.kind == rocketmq.OLD:
            self._rights[user][resource] = ("Deny",)
            self._write_of_4_9(user)
            return
        asked = {"subject": f"User:{user}", "resource": resource, "policyType": "Custom"}
        self.order(RequestCode.AUTH_DELETE_ACL, asked)

    def make_topic(self, name: str, queue_count: int = 4) -> None:
        """A topic, once its route is known."""
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": queue_count,
            "writeQueueNums": queue_count,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
        }
        self.order(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
        host, _, port = self.namesrv.partition(":")
        asker = SigningClient((host, int(port)), ADMIN)
        wait_until(lambda: asker.ask(105, {"topic": name}).code == 0, f"{name} is known")
        asker.socket.close()

    def _write_of_4_9(self, user: str) -> None:
        rights = self._rights[user]

        def permissions(kind: str) -> str:
            return ",".join(
                f"{name.removeprefix(kind)}={'|'.join(actions).upper()}"
                for name, actions in rights.items()
                if name.startswith(kind)
            )

        fields = {
            "accessKey": user,
            "secretKey": secret_of(user),
            "admin": "false",
            "defaultTopicPerm": "DENY",
            "defaultGroupPerm": "DENY",
            "topicPerms": permissions("Topic:"),
            "groupPerms": permissions("Group:"),
        }
        # Something empty has no form there.
        given = {name: value for name, value in fields.items() if value}
        self.order(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, given)


def must(answer: Command) -> None:
    """Fail unless it was done."""
    assert answer.code == 0, (answer.code, answer.remark)


@contextmanager
def secured_broker(kind: str, folder: Path, *settings: str) -> Iterator[SecuredBroker]:
    """A broker of a kind: ROCKGATE, or a line of Apache's."""
    if kind == ROCKGATE:
        settings = (*settings, "remoting.delay_levels=1s 1s 1s 1s 1s")
        with secured_rockgate(folder, *settings) as broker:
            yield SecuredBroker(kind, broker)
        return
    demanded = file_of_4_9(folder) if kind == rocketmq.OLD else authenticating(folder)
    demanded["messageDelayLevel"] = "1s 1s 1s 1s 1s"
    with apache_broker(kind, folder=folder, **demanded) as broker:
        yield SecuredBroker(kind, broker)


@contextmanager
def secured_rockgate(
    folder: Path, *settings: str, admin: str = ADMIN, secret: str | None = None
) -> Iterator[Broker]:
    """A server that demands signatures, and whose administrator was made before it did."""
    with RunningServer(folder, rocketmq=True) as running:
        client = Client(running.address("remoting"))
        body = json.dumps({"password": secret or secret_of(admin)}).encode()
        must(client.ask(RequestCode.AUTH_CREATE_USER, {"username": admin}, body))
        client.socket.close()
        running.stop_cleanly()
    demanded = [*DEMANDING, f"security.super_users=User:{admin}", *settings]
    with RunningServer(folder, settings=demanded, rocketmq=True) as running:
        yield Broker(
            namesrv="{}:{}".format(*running.address("namesrv")),
            address=running.address("remoting"),
        )
        running.stop_cleanly()
