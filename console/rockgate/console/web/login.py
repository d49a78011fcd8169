"""The login: a page without scripts, and what its form is answered with."""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.console.session.sessions import Sessions
from rockgate.console.web.guard import LOGIN, STYLE

FORM_BYTES_MAX: Final = 8_192
NAME_CHARS_MAX: Final = 256
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in · rockgate</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="{style}"></head>
<body class="login"><main><h1>rockgate</h1>
<p>Log in as a user of <b>{server}</b>. What you see and may do is what this user may.</p>
{problem}
<form method="post" action="{action}">
<label>User
<input name="username" autocomplete="username" required autofocus value="{name}"></label>
<label>Password
<input name="password" type="password" autocomplete="current-password" required></label>
<button type="submit">Log in</button>
</form></main></body></html>
"""


def add_login(app: FastAPI, sessions: Sessions, server: str) -> None:
    """Add the login and the logout to the application."""

    @app.get(LOGIN)
    async def form(next: str = "/") -> Response:
        if not sessions.demands_login:
            return RedirectResponse("/", status_code=303)
        return _page(server, next)

    @app.post(LOGIN)
    async def enter(request: Request, next: str = "/") -> Response:
        given = await _form(request)
        name, password = given.get("username", ""), given.get("password", "")
        if not sessions.demands_login or not name or not password or len(name) > NAME_CHARS_MAX:
            return _page(server, next, "Enter a user and a password.", name)
        address = request.client.host if request.client is not None else ""
        wait_s = sessions.attempts.wait_s(address)
        if wait_s:
            said = f"Too many failed logins. Try again in {wait_s:,} s."
            refused = _page(server, next, said, name, status=429)
            refused.headers["retry-after"] = str(wait_s)
            return refused
        try:
            token = await sessions.log_in(name, password, address)
        except Refused:
            return _page(server, next, "The user or the password is wrong.", name, status=403)
        except ClientError as error:
            return _page(server, next, str(error), name, status=503)
        # Whoever logs in again leaves no session behind.
        await sessions.log_out(request.cookies.get(sessions.cookie))
        answer = RedirectResponse(_own(next), status_code=303)
        answer.set_cookie(
            sessions.cookie, token, httponly=True, samesite="strict", secure=sessions.is_secure
        )
        return answer

    @app.post("/logout")
    async def leave(request: Request) -> Response:
        await sessions.log_out(request.cookies.get(sessions.cookie))
        answer = RedirectResponse(LOGIN, status_code=303)
        answer.delete_cookie(
            sessions.cookie, httponly=True, samesite="strict", secure=sessions.is_secure
        )
        return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; none if it is too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > FORM_BYTES_MAX:
            return {}
    found = parse_qs(data.decode("utf-8", "replace"), max_num_fields=8)
    return {name: values[0] for name, values in found.items()}


def _own(path: str) -> str:
    """The path to visit next; the start for anything that could be another site."""
    is_path = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_path and path.isprintable() and path.isascii() else "/"


def _page(
    server: str, next_: str, problem: str = "", name: str = "", *, status: int = 200
) -> HTMLResponse:
    said = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    text = _PAGE.format(
        style=STYLE,
        server=escape(server),
        problem=said,
        action=escape(f"{LOGIN}?{urlencode({'next': _own(next_)})}"),
        name=escape(name[:NAME_CHARS_MAX]),
    )
    return HTMLResponse(text, status_code=status, headers={"cache-control": "no-store"})
