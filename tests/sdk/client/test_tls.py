"""A client that speaks TLS with a name server, and what it refuses."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from tests.sdk.client.test_client import route

from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.connection import Connection
from rockgate.sdk import Client, LinkSettings, SdkError, Unreachable

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="certificates are made by openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of this machine, signed by itself."""
    folder = tmp_path_factory.mktemp("certificate")
    found = folder / "certificate.pem", folder / "key.pem"
    command = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    places = ["-out", str(found[0]), "-keyout", str(found[1])]
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *command.split(), *names, *places], check=True, capture_output=True)
    return found


@asynccontextmanager
async def name_server(
    certificate: tuple[Path, Path],
) -> AsyncIterator[tuple[str, list[list[int]]]]:
    """One that has a route of every topic, speaks TLS only, and notes each connection's codes."""
    asked: list[list[int]] = []
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection()
        codes: list[int] = []
        asked.append(codes)
        with suppress(OSError), closing(writer):
            while data := await reader.read(1 << 16):
                for command in connection.receive_data(data):
                    codes.append(command.code)
                    connection.respond(command, Command(0, body=route({"b": "b:1"})))
                writer.writelines(map(bytes, connection.data_to_send()))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


class Noting:
    """A hook that notes what is asked for."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def before_request(self, address: str, code: int, fields: Fields, body: object) -> None:
        self.codes.append(code)

    def after_response(self, address: str, code: int, answer: Command) -> None:
        """What is answered is not looked at."""


@pytest.mark.row("CI-4")
async def test_tls_is_an_option_of_the_client_whose_hooks_see_every_request(
    certificate: tuple[Path, Path],
) -> None:
    trusting = ssl.create_default_context(cafile=certificate[0])
    noting = Noting()
    async with asyncio.timeout(60), name_server(certificate) as (address, asked):
        async with Client(address, tls=trusting, rpc_hooks=[noting]) as client:
            await client.routes.get("t")
            await client.routes.refresh()
        assert noting.codes == [each for codes in asked for each in codes] == [105, 105]
        async with Client(address, tls=ssl.create_default_context()) as client:
            with pytest.raises(Unreachable, match="its certificate was refused: self-signed"):
                await client.routes.get("t")
        async with Client(address) as client:
            with pytest.raises(SdkError, match=address):
                await client.routes.get("t")


@pytest.mark.row("M-10")
async def test_an_address_has_one_connection_made_when_needed_with_a_timeout_and_perhaps_tls(
    certificate: tuple[Path, Path],
) -> None:
    trusting = ssl.create_default_context(cafile=certificate[0])
    async with (
        asyncio.timeout(60),
        name_server(certificate) as (address, asked),
        Client(address, tls=trusting) as client,
    ):
        assert asked == []
        await asyncio.gather(*(client.routes.ask_again(f"t{n}") for n in range(5)))
        await client.routes.get("another")
        assert asked == [[105] * 6]
    # It is connected to, and never begins with TLS.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        began_s = time.monotonic()
        settings = LinkSettings(dial_timeout_s=0.2)
        async with Client(address, tls=trusting, settings=settings) as client:
            with pytest.raises(SdkError, match=address):
                await client.routes.get("t")
        assert time.monotonic() - began_s < 2.5
