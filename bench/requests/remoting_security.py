"""The largest requests of RocketMQ's clients about users and rights, for `bench.requests`.

They come after those of the Kafka protocol (`bench.requests.kafka_security`), which have left very
many users and grants.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench.requests.kafka_security import GRANTS
from bench.requests.remoting import frame
from bench.requests.world import Loaded, Request
from rockgate.protocol.remoting.codes import RequestCode

R = RequestCode
ENTRIES = 1_000
USER, SUBJECT = "writer", "User:writer"
PASSWORD = "p" * 1_024


def _row(
    code: RequestCode,
    what: str,
    fields: Mapping[str, object] | None = None,
    *,
    body: Any = None,
    before: tuple[bytes, ...] = (),
    is_changing: bool = False,
) -> Request:
    """A request with a JSON body, after those that prepare it."""
    asked = frame(code, fields, b"" if body is None else json.dumps(body).encode())

    def make(_: Loaded) -> list[bytes]:
        return [*before, asked]

    name = f"{int(code)} {code.name}, {what}"
    return Request(name=name, listener="remoting", make=make, is_changing=is_changing)


def _policies(action: str) -> dict[str, Any]:
    entries = [
        {"resource": f"Topic:{'t' * 150}-{number}", "actions": [action], "decision": "Allow"}
        for number in range(ENTRIES)
    ]
    return {"subject": SUBJECT, "policies": [{"policyType": "Custom", "entries": entries}]}


def _users() -> Iterator[Request]:
    long = {"password": PASSWORD}
    yield _row(
        R.AUTH_CREATE_USER,
        "a password of 1,024 characters",
        {"username": USER},
        body=long,
        is_changing=True,
    )
    yield _row(
        R.AUTH_UPDATE_USER,
        "a password of 1,024 characters",
        {"username": USER},
        body=long,
        is_changing=True,
    )
    yield _row(R.AUTH_GET_USER, "one", {"username": USER})
    yield _row(R.AUTH_LIST_USER, "all")


def _grants() -> Iterator[Request]:
    fields = {"subject": SUBJECT}
    for code, action in ((R.AUTH_CREATE_ACL, "Pub"), (R.AUTH_UPDATE_ACL, "Sub")):
        yield _row(code, f"{ENTRIES:,} resources", fields, body=_policies(action), is_changing=True)
    yield _row(R.AUTH_GET_ACL, f"{ENTRIES:,} resources", fields)
    # Those that a Kafka client has made are one user's.
    reader = frame(R.AUTH_CREATE_USER, {"username": "reader"}, b'{"password":"secret"}')
    yield _row(
        R.AUTH_GET_ACL, f"{GRANTS:,} resources", {"subject": "User:reader"}, before=(reader,)
    )
    yield _row(R.AUTH_LIST_ACL, "all")
    yield _row(R.AUTH_LIST_ACL, "one subject", {"subjectFilter": USER})
    yield _row(R.AUTH_DELETE_ACL, f"{ENTRIES:,} resources", fields, is_changing=True)
    made = frame(R.AUTH_CREATE_ACL, fields, json.dumps(_policies("Pub")).encode())
    yield _row(
        R.AUTH_DELETE_USER,
        f"with {ENTRIES:,} grants",
        {"username": USER},
        before=(made,),
        is_changing=True,
    )


def _of_4_9() -> Iterator[Request]:
    perms = {
        f"{kind}Perms": ",".join(f"{'n' * 200}-{number}=PUB|SUB" for number in range(ENTRIES))
        for kind in ("topic", "group")
    }
    fields = {"accessKey": USER, "secretKey": "secret-of-4.9", "admin": "false", **perms}
    what = f"{2 * ENTRIES:,} resources"
    yield _row(R.UPDATE_AND_CREATE_ACL_CONFIG, what, fields, is_changing=True)
    yield _row(R.GET_BROKER_CLUSTER_ACL_INFO, "version")
    yield _row(R.GET_BROKER_CLUSTER_ACL_CONFIG, "too many users")
    addresses = {"globalWhiteAddrs": "10.0.0.1," * 40_000}
    yield _row(R.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, "40,000 addresses", addresses)
    yield _row(R.DELETE_ACL_CONFIG, f"with {what}", {"accessKey": USER}, is_changing=True)


FIRST = (_row(R.GET_BROKER_CLUSTER_ACL_CONFIG, "10,000 users"),)
"""Before there are more users than it lists."""
REQUESTS = (*_users(), *_grants(), *_of_4_9())
