"""The outermost layer of the console: who may speak to it from where, and what browsers may do.

| a request | is answered with |
|---|---|
| whose Host is none of the console's | 421: a name that was pointed here (DNS rebinding) |
| of another site, by its Origin or Sec-Fetch-Site, that could change or read anything | 403 |
| for the websocket, without an Origin or of another one | 403 |
| for anything but the login, its style and static files, without a session | the login, or 401 |

A websocket is checked before it is accepted: the framework under the pages accepts any origin.
Every answer forbids framing, other sites' scripts, and guessing of content types.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import quote, urlsplit

from rockgate.console.session.sessions import Session, Sessions
from rockgate.gateway.net.address import Address

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOGIN: Final = "/login"
STYLE: Final = "/console.css"
WEBSOCKET: Final = "/_nicegui_ws/"
_OPEN: Final = (LOGIN, STYLE, "/favicon.ico")
_STATIC: Final = "/_nicegui/"
_ANY: Final = ("0.0.0.0", "::")
HEADERS: Final = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    # Pages are templates that the browser compiles, which is an eval to it.
    "content-security-policy": "default-src 'self';"
    " script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none';"
    " base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'",
}
_ENCODED: Final = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


def hosts_of(listen: Address, port: int, more: Iterable[str]) -> frozenset[str]:
    """The values of Host that mean this console, in lower case."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    if listen.host not in _ANY:
        names.add(f"[{listen.host}]" if ":" in listen.host else listen.host)
    found = {f"{name}:{port}" for name in names}
    if port in (80, 443):
        found |= names
    # What an administrator names may be behind a proxy, on another port.
    return frozenset(each.lower() for each in (*found, *more))


class Guard:
    """Wraps the application. `hosts` is set once the port is known."""

    def __init__(self, app: Any, sessions: Sessions) -> None:
        self.app = app
        self.hosts: frozenset[str] = frozenset()
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        kind = scope["type"]
        if kind not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is None and kind == "http":
            await self._pass_on(scope, receive, send)
        elif refused is None:
            await self.app(scope, receive, send)
        elif kind == "websocket":
            # Before it was accepted, this is an answer of 403 to the handshake.
            await send({"type": "websocket.close", "code": 1008, "reason": refused[1]})
        else:
            await _answer(_with_headers(send), *refused)

    def session_of(self, cookie: str | None) -> Session | None:
        """The session of a request, by its Cookie header."""
        return self._sessions.of(token_of(cookie, self._sessions.cookie))

    # Private

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_left = False

        async def receiving() -> MutableMapping[str, Any]:
            nonlocal has_left
            message = await receive()
            has_left = has_left or message["type"] == "http.disconnect"
            return message

        try:
            await self.app(scope, receiving, _with_headers(send))
        except RuntimeError:
            # The framework complains that it has no response for a browser that went on meanwhile.
            if not has_left:
                raise

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Status, text, and where to go instead; None for a request to pass on."""
        found = _named(scope)
        if found.get("host", "").lower() not in self.hosts or "host" in found.get(" twice", ""):
            return 421, "This is not a name of this console. Name it with --host.", ""
        if not self._is_own(scope, found):
            return 403, "The request comes from another site.", ""
        path = str(scope["path"])
        if path in _OPEN or path.startswith(_STATIC):
            return None
        if self.session_of(found.get("cookie")) is not None:
            return None
        if scope["type"] == "http" and "text/html" in found.get("accept", ""):
            query = scope.get("query_string", b"").decode("latin-1")
            wanted = path + (f"?{query}" if query else "")
            return 303, "Log in first.", f"{LOGIN}?next={quote(wanted, safe='')}"
        return 401, "Log in first.", ""

    def _is_own(self, scope: Scope, found: dict[str, str]) -> bool:
        """Whether a request comes from the console's own pages, or is a visit of a page."""
        origin = found.get("origin")
        is_socket = scope["type"] == "websocket" or str(scope["path"]).startswith(WEBSOCKET)
        if origin is not None:
            return _host_of_origin(origin) == found.get("host", "").lower()
        if scope["type"] == "websocket":
            return False
        site = found.get("sec-fetch-site", "none")
        if is_socket or scope["method"] not in ("GET", "HEAD"):
            return site == "same-origin" if "sec-fetch-site" in found else is_socket
        # A link on another site may open a page, and nothing else.
        return site in ("none", "same-origin") or found.get("sec-fetch-mode") == "navigate"


def token_of(cookie: str | None, name: str) -> str | None:
    """The session's token in a Cookie header."""
    try:
        found = SimpleCookie(cookie or "").get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _named(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found:
            found[" twice"] = f"{found.get(' twice', '')} {key}"
        found[key] = value.decode("latin-1")
    return found


def _host_of_origin(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            others = [each for each in message.get("headers", ()) if each[0].lower() not in _OURS]
            message = {**message, "headers": [*others, *_ENCODED]}
        await send(message)

    return sending


_OURS: Final = frozenset(name for name, _ in _ENCODED)


async def _answer(send: Send, status: int, text: str, location: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    if location:
        headers.append((b"location", location.encode("latin-1", "replace")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
