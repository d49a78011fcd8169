"""What the outermost layer lets through: hosts, origins, sessions, and the headers of answers."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from rockgate.console.session.sessions import Sessions
from rockgate.console.settings import Servers, Settings
from rockgate.console.web.guard import Guard, hosts_of, token_of
from rockgate.gateway.net.address import Address
from rockgate.sdk.client_config import ClientConfig

NOWHERE = Address("127.0.0.1", 1)
HOST = "127.0.0.1:8090"
OWN = "http://127.0.0.1:8090"
COOKIE = "rockgate_session"
SOCKET = "/_nicegui_ws/socket.io/"
Message = MutableMapping[str, Any]


class Recorded(Sessions):
    """Sessions with one that is known by the token `good`."""

    def __init__(self, *, demands_login: bool) -> None:
        servers = Servers(kafka=[NOWHERE], remoting=NOWHERE, metrics=None)
        config = ClientConfig(security_protocol="SASL_PLAINTEXT" if demands_login else "PLAINTEXT")
        settings = Settings(
            listen=NOWHERE, servers=servers, config=config, demands_login=demands_login
        )
        super().__init__(settings)
        self._made_up = self._made(config, starts=False)

    def of(self, token: str | None) -> Any:
        return self._made_up if not self.demands_login or token == "good" else None


async def inner(scope: Message, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    headers = [(b"x-frame-options", b"ALLOWALL"), (b"content-type", b"text/html")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"page"})


async def asked(
    path: str = "/",
    *,
    kind: str = "http",
    method: str = "GET",
    demands_login: bool = False,
    **headers: str,
) -> list[Message]:
    """What the guard answers; a header's name is written with underscores."""
    guard = Guard(inner, Recorded(demands_login=demands_login))
    guard.hosts = hosts_of(Address("127.0.0.1", 8090), 8090, ["console.example"])
    given = {"host": HOST, **{name.replace("_", "-"): each for name, each in headers.items()}}
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), each.encode()) for name, each in given.items() if each],
    }
    await guard(scope, receive, send)
    return sent


async def status(path: str = "/", **options: Any) -> int | str:
    """The status, or for a websocket the type of the first message."""
    first = (await asked(path, **options))[0]
    return first["status"] if first["type"] == "http.response.start" else first["type"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8090", "localhost:8090", "LOCALHOST:8090", "[::1]:8090", "console.example"],
)
async def test_a_name_of_the_console_is_served(host: str) -> None:
    assert await status(host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8090", "127.0.0.1", "127.0.0.1:80", "", "127.0.0.1:8090.evil"],
)
async def test_a_name_that_was_pointed_here_is_not(host: str) -> None:
    assert await status(host=host) == 421
    assert await status(SOCKET, kind="websocket", host=host, origin=OWN) == "websocket.close"


async def test_two_names_are_none() -> None:
    guard = Guard(inner, Recorded(demands_login=False))
    guard.hosts = frozenset({HOST})
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"evil.example"), (b"host", HOST.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    await guard(scope, send, send)  # type: ignore[arg-type] # nothing is received
    assert sent[0]["status"] == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1:8091", "http://127.0.0.1", "http://[bad"],
)
async def test_a_websocket_of_another_origin_is_not_accepted(origin: str) -> None:
    assert await status(SOCKET, kind="websocket", origin=origin) == "websocket.close"


async def test_a_websocket_of_the_console_s_pages_is() -> None:
    assert await status(SOCKET, kind="websocket", origin=OWN) == "websocket.accept"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_another_site_s_page_can_send_nothing(method: str) -> None:
    assert await status("/login", method=method, origin="http://evil.example") == 403
    assert await status("/login", method=method) == 403
    assert await status("/login", method=method, sec_fetch_site="cross-site") == 403
    assert await status("/login", method=method, origin=OWN) == 200


async def test_another_site_s_page_reads_nothing_but_may_link_here() -> None:
    assert await status(sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
    assert await status(sec_fetch_site="cross-site", sec_fetch_mode="navigate") == 200
    assert await status(origin="http://evil.example") == 403


async def test_every_answer_forbids_frames_and_foreign_scripts() -> None:
    for sent in (await asked(), await asked(host="evil.example")):
        headers = dict(sent[0]["headers"])
        assert headers[b"x-frame-options"] == b"DENY"
        assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]
        assert b"default-src 'self'" in headers[b"content-security-policy"]
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert [name for name, _ in sent[0]["headers"]].count(b"x-frame-options") == 1


async def test_without_a_session_there_is_only_the_login() -> None:
    login = {"demands_login": True}
    assert await status("/topics", **login) == 401
    assert await status("/login", **login) == 200
    assert await status("/console.css", **login) == 200
    assert await status("/topics", cookie=f"{COOKIE}=bad", **login) == 401
    assert await status("/topics", cookie=f"{COOKIE}=good", **login) == 200
    socket = {"kind": "websocket", "origin": OWN}
    assert await status(SOCKET, **socket, **login) == "websocket.close"
    assert await status(SOCKET, cookie=f"{COOKIE}=good", **socket, **login) == "websocket.accept"


async def test_a_visitor_is_led_to_the_login_and_back() -> None:
    sent = await asked("/topics/a b", demands_login=True, accept="text/html")
    assert sent[0]["status"] == 303
    assert dict(sent[0]["headers"])[b"location"] == b"/login?next=%2Ftopics%2Fa%20b"


@pytest.mark.parametrize(
    ("cookie", "token"),
    [(None, None), (f"{COOKIE}=t", "t"), (f"a=b; {COOKIE}=t", "t"), ("\x00;;=", None)],
)
def test_a_token_is_read_from_cookies(cookie: str | None, token: str | None) -> None:
    assert token_of(cookie, COOKIE) == token
