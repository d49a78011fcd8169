"""Records what Apache RocketMQ 5.5.0 answers to every request by every kind of user.

`PYTHONPATH=protocol:gateway:store:. python compat-tests/capture/record_access.py` starts a broker
that authenticates and authorizes, sends the requests of tests/gateway/remoting/authorization, and
writes tests/golden/rocketmq_access.json.
"""

import json
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.peers.rocketmq import RocketMQPeer  # noqa: E402 # the root has to be on the path first
from tests.gateway.remoting.authorization.samples import (  # noqa: E402
    ADMIN,
    BROKER,
    CASES,
    GROUP,
    SECRET,
    TOPIC,
)
from tests.gateway.remoting.client import Client  # noqa: E402

from rockgate.protocol.remoting import javajson, signature  # noqa: E402
from rockgate.protocol.remoting.bodies.access import AclInfo, PolicyInfo, UserInfo  # noqa: E402
from rockgate.protocol.remoting.codes import RequestCode  # noqa: E402
from rockgate.protocol.remoting.command import Command  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "rocketmq_access.json"
SECONDS_MAX = 5
CREDENTIALS = json.dumps({"username": ADMIN, "password": SECRET})
SETTINGS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "initAuthenticationUser": CREDENTIALS,
    "innerClientAuthenticationCredentials": json.dumps({"accessKey": ADMIN, "secretKey": SECRET}),
}


LAST = (RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.DELETE_SUBSCRIPTIONGROUP)
"""Other requests are about what these delete."""


def ask(
    client: Client, code: int, fields: dict[str, str], body: bytes, user: str | None
) -> Command:
    """Send a request, signed by the user if there is one."""
    if user is not None:
        fields = signature.sign(fields, body, access_key=user, secret=SECRET)
    return client.ask(code, fields, body)


def set_up(client: Client) -> None:
    """Make the topic, the group and the users, as the administrator."""
    code = RequestCode.UPDATE_AND_CREATE_TOPIC
    must(ask(client, code, *BROKER[code], ADMIN))
    settings = json.dumps({"groupName": GROUP}).encode()
    must(ask(client, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, settings, ADMIN))
    for case in CASES.values():
        if case.user is None:
            continue
        user = UserInfo(username=case.user, password=SECRET, user_type="Normal")
        header = {"username": case.user}
        must(ask(client, RequestCode.AUTH_CREATE_USER, header, javajson.encode(user), ADMIN))
        subject = f"User:{case.user}"
        if case.entries:
            policy = PolicyInfo(policy_type="Custom", entries=[*case.entries])
            acl = javajson.encode(AclInfo(subject=subject, policies=[policy]))
            must(ask(client, RequestCode.AUTH_CREATE_ACL, {"subject": subject}, acl, ADMIN))


def must(answer: Command) -> None:
    """Fail unless it was done."""
    assert answer.code == 0, (answer.code, answer.remark)


def outcome(address: tuple[str, int], code: RequestCode, user: str | None) -> dict[str, object]:
    """What the broker answers, on a connection of its own."""
    client = Client(address)
    client.socket.settimeout(SECONDS_MAX)
    try:
        answer = ask(client, int(code), *BROKER[code], user)
    except (TimeoutError, ConnectionError) as error:
        return {"code": None, "remark": type(error).__name__}
    finally:
        client.socket.close()
    remark = (answer.remark or "").replace(f"{address[0]}:{address[1]}", "<address>")
    return {"code": answer.code, "remark": remark.splitlines()[0][:200] if remark else ""}


def recorded(address: tuple[str, int]) -> dict[str, Any]:
    """What a broker that demands signatures answers to all users; its own codes are left out."""
    client = Client(address)
    set_up(client)
    codes = [code for code in BROKER if code not in LAST and not 31_000 <= code < 31_100]
    answers = {
        code.name: {name: outcome(address, code, case.user) for name, case in CASES.items()}
        for code in (*codes, *LAST)
    }
    wrong = {"AccessKey": "nogrant", "Signature": "x"}
    unknown = signature.sign({}, b"", access_key="nobody", secret=SECRET)
    refusals = {
        name: {"code": answer.code, "remark": answer.remark}
        for name, answer in (
            ("unsigned", client.ask(RequestCode.GET_BROKER_CONFIG, {})),
            ("wrong signature", client.ask(RequestCode.GET_BROKER_CONFIG, wrong)),
            ("unknown user", client.ask(RequestCode.GET_BROKER_CONFIG, unknown)),
        )
    }
    client.socket.close()
    return {"topic": TOPIC, "refusals": refusals, "answers": answers}


def record() -> None:
    """Write the golden file again."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {**SETTINGS, "authConfigPath": f"{directory}/auth"}
        with RocketMQPeer(Path(directory), settings=settings) as peer:
            golden = {"broker": f"rocketmq {peer.version}", **recorded(peer.broker)}
        GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    socket.setdefaulttimeout(SECONDS_MAX)
    record()
