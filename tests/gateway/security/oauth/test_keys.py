"""Keys change: files when they are written, servers' from time to time or when one is unknown."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.security.oauth.issuer import jwk, key_set
from tests.gateway.security.tls.certificates import Authority

from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.oauth.key_source import (
    SIZE_MAX,
    KeyFile,
    KeyServer,
    KeysUnavailable,
)
from rockgate.gateway.security.oauth.keys import AGAIN_MS_MIN, SigningKeys
from rockgate.gateway.security.oauth.signing_keys import InvalidKeys

REFRESH_MS = 60_000


class Source:
    """Keys that a test sets, like a server's."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.text = key_set(*keys)
        self.failure: Exception | None = None
        self.read_count = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def read(self) -> bytes:
        self.read_count += 1
        self.may_answer.wait(20)
        if self.failure is not None:
            raise self.failure
        return self.text

    def stamp(self) -> object:
        return None


class Turning:
    """Keys from a source, with a clock that a test turns."""

    def __init__(self, source: Any) -> None:
        self.now_ms = 0
        self.keys = SigningKeys(source, refresh_ms=REFRESH_MS, monotonic_ms=lambda: self.now_ms)

    async def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and upkeep do what is due."""
        self.now_ms += milliseconds
        self.keys.renew()
        await self.keys.fetched()

    async def ids(self, key_id: str | None = None, algorithm: str = "EdDSA") -> list[str | None]:
        return [each.id for each in await self.keys.find(key_id, algorithm)]


async def test_keys_of_a_server_are_fetched_at_the_start_and_from_time_to_time() -> None:
    source = Source(jwk("EdDSA", 0))
    turning = Turning(source)
    await turning.pass_time(0)
    assert await turning.ids("EdDSA-0") == ["EdDSA-0"]
    source.text = key_set(jwk("EdDSA", 1))
    await turning.pass_time(REFRESH_MS - 1)
    assert source.read_count == 1
    await turning.pass_time(1)
    assert await turning.ids("EdDSA-1") == ["EdDSA-1"]
    assert await turning.ids("EdDSA-0") == [], "a key that was withdrawn is of no use"
    turning.keys.close()


async def test_an_unknown_key_is_fetched_once_for_all_who_ask() -> None:
    source = Source(jwk("EdDSA", 0))
    turning = Turning(source)
    await turning.pass_time(0)
    source.text = key_set(jwk("EdDSA", 0), jwk("EdDSA", 1))
    assert await turning.ids("EdDSA-1") == [], "too soon"
    turning.now_ms += AGAIN_MS_MIN
    found = await asyncio.gather(*(turning.ids("EdDSA-1") for _ in range(100)))
    assert found == [["EdDSA-1"]] * 100
    assert source.read_count == 2
    turning.keys.close()


async def test_who_made_up_the_key_cannot_have_keys_fetched_all_the_time() -> None:
    source = Source(jwk("EdDSA", 0))
    turning = Turning(source)
    for number in range(1_000):
        assert await turning.ids(f"made-up-{number}") == []
    assert source.read_count == 1
    turning.keys.close()


async def test_a_client_that_leaves_does_not_end_the_fetch_of_others() -> None:
    source = Source(jwk("EdDSA", 0))
    source.may_answer.clear()
    turning = Turning(source)
    first, second = (asyncio.ensure_future(turning.ids("EdDSA-0")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    source.may_answer.set()
    assert await second == ["EdDSA-0"]
    turning.keys.close()


async def test_the_last_good_keys_stay_in_place(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(jwk("EdDSA", 0))
    turning = Turning(source)
    await turning.pass_time(0)
    with caplog.at_level(logging.INFO):
        source.failure = KeysUnavailable("no route to host")
        await turning.pass_time(REFRESH_MS)
        source.failure, source.text = None, b"nonsense"
        await turning.pass_time(AGAIN_MS_MIN)
    assert await turning.ids("EdDSA-0") == ["EdDSA-0"]
    assert turning.keys.failed_count == 2
    assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 1
    source.text = key_set(jwk("EdDSA", 1))
    await turning.pass_time(AGAIN_MS_MIN)
    assert await turning.ids("EdDSA-1") == ["EdDSA-1"], "tried again soon"
    turning.keys.close()


async def test_a_token_without_an_id_gets_a_few_keys_at_most() -> None:
    turning = Turning(Source(*(jwk("EdDSA", number) for number in range(6))))
    await turning.pass_time(0)
    assert len(await turning.ids(None)) == 4
    turning.keys.close()


# Files


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(jwk("EdDSA", 0)))
    turning = Turning(KeyFile(path))
    turning.keys.read_now()
    await turning.pass_time(REFRESH_MS)
    assert turning.keys.fetched_count == 1
    replaced = tmp_path / "new.json"
    replaced.write_bytes(key_set(jwk("EdDSA", 1)))
    replaced.rename(path)
    await turning.pass_time(1)
    assert await turning.ids("EdDSA-1") == ["EdDSA-1"]
    path.unlink()
    await turning.pass_time(REFRESH_MS)
    assert await turning.ids("EdDSA-1") == ["EdDSA-1"]
    path.write_bytes(key_set(jwk("EdDSA", 2)))
    await turning.pass_time(AGAIN_MS_MIN)
    assert await turning.ids("EdDSA-2") == ["EdDSA-2"]
    turning.keys.close()


def test_a_file_that_is_missing_or_not_a_set_fails_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = Turning(KeyFile(path)).keys
    with pytest.raises(KeysUnavailable):
        keys.read_now()
    path.write_bytes(b"{}")
    with pytest.raises(InvalidKeys):
        keys.read_now()
    path.write_bytes(b" " * (SIZE_MAX + 1))
    with pytest.raises(KeysUnavailable):
        keys.read_now()
    keys.close()


# Servers


class Pages(BaseHTTPRequestHandler):
    """What a server of keys may answer."""

    def do_GET(self) -> None:
        """Answer by path."""
        pages = {"/keys": key_set(jwk("EdDSA", 0)), "/large": b" " * (SIZE_MAX + 1)}
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/keys")
        elif self.path == "/near":
            self.send_response(302)
            self.send_header("Location", "/keys")
        elif self.path in pages:
            self.send_response(200)
        else:
            self.send_response(404)
        self.end_headers()
        self.wfile.write(pages.get(self.path, b""))

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


@contextmanager
def pages(context: ssl.SSLContext | None = None) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_server_is_asked_and_what_it_answers_is_bounded() -> None:
    with pages() as url:
        assert KeyServer(f"{url}/keys", None).read() == key_set(jwk("EdDSA", 0))
        assert KeyServer(f"{url}/near", None).read() == key_set(jwk("EdDSA", 0))
        for path in ("large", "missing", "away"):
            with pytest.raises(KeysUnavailable):
                KeyServer(f"{url}/{path}", None).read()
    with pytest.raises(KeysUnavailable):
        KeyServer(f"{url}/keys", None).read()


def test_a_server_has_to_be_the_one_that_an_authority_says_it_is(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    with pages(context) as url:
        assert KeyServer(f"{url}/keys", authority.file).read() == key_set(jwk("EdDSA", 0))
        with pytest.raises(KeysUnavailable):
            KeyServer(f"{url}/keys", None).read()
    with pytest.raises(KeysUnavailable):
        KeyServer(f"{url}/keys", tmp_path / "missing.pem")


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ("", None),
        ("/etc/keys.json", Path("/etc/keys.json")),
        ("keys.json", Path("keys.json")),
        ("file:///etc/keys.json", Path("/etc/keys.json")),
        ("https://issuer.example/keys", "https://issuer.example/keys"),
        ("http://127.0.0.1:8080/keys", "http://127.0.0.1:8080/keys"),
    ],
)
def test_a_source_is_a_file_or_a_url(given: str, source: object) -> None:
    assert OauthConfig(jwks=given).source() == source


def test_keys_are_not_fetched_in_clear_from_other_machines() -> None:
    with pytest.raises(ValueError, match="loopback"):
        OauthConfig(jwks="http://issuer.example/keys")
