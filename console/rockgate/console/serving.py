"""Puts the console together, and runs it until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import FastAPI
from fastapi.responses import Response
from nicegui import app as pages_app
from nicegui import ui

from rockgate.console.pages.routes import MODULES
from rockgate.console.session.sessions import Sessions
from rockgate.console.web.guard import STYLE, Guard, hosts_of
from rockgate.console.web.login import add_login
from rockgate.console.widgets.frame import use_sessions
from rockgate.gateway.net.address import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rockgate.console.settings import Settings

STOP_SECONDS_MAX: Final = 3
WEBSOCKET_BYTES_MAX: Final = 4 << 20
"""What a page may send at once: a message to produce is the largest."""


_QUIET: Final[dict[str, Any]] = {"show_welcome_message": False}
"""The framework's own greeting on standard output, where our line is read by programs."""


class CannotListen(Exception):
    """The address cannot be bound, or the certificate not be used."""


def build(settings: Settings, sessions: Sessions) -> Guard:
    """The whole application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sessions.start()
        yield
        await sessions.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    style = files("rockgate.console").joinpath("console.css").read_text("utf-8")

    @app.get(STYLE)
    def stylesheet() -> Response:
        return Response(style, media_type="text/css", headers={"cache-control": "no-cache"})

    add_login(app, sessions, str(settings.servers))
    use_sessions(sessions, settings.servers)
    for name in MODULES:
        import_module(f"rockgate.console.pages.{name}")
    pages_app.config.socket_io_js_transports = ["websocket"]
    ui.run_with(
        app,
        title="rockgate",
        favicon="🪨",
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
        **_QUIET,
    )
    return Guard(app, sessions)


def run(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; CannotListen if the address is taken."""
    listening = _bound(settings.listen)
    host, port = listening.getsockname()[:2]
    guard = build(settings, Sessions(settings))
    guard.hosts = hosts_of(settings.listen, port, settings.hosts)
    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="wsproto",
        ws_max_size=WEBSOCKET_BYTES_MAX,
        timeout_graceful_shutdown=STOP_SECONDS_MAX,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        # Whoever forwards requests could otherwise say who sent them.
        proxy_headers=False,
    )
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    scheme = "http" if settings.certificate is None else "https"
    try:
        config.load()
    except OSError as error:
        listening.close()
        raise CannotListen(
            f"Cannot use the certificate {settings.certificate} with {settings.key}: {error}"
        ) from None
    server = _Announced(config, f"rockgate console on {scheme}://{Address(host, port)}")
    asyncio.run(server.serve(sockets=[listening]))


class _Announced(uvicorn.Server):
    """Says where it listens, once it does."""

    def __init__(self, config: uvicorn.Config, line: str) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the sockets, and say so."""
        await super().startup(sockets)
        sys.stdout.write(f"{self._line}\n")
        sys.stdout.flush()


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        raise CannotListen(
            f"Cannot listen on {address}: {error.strerror or error}. Choose another address with"
            " --listen."
        ) from None
    return listening
