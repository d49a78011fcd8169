"""Who may read which page: with whose login, over which listener, at what cost."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.gateway.test_openness import SETTINGS

from rockgate.gateway.compose import app
from rockgate.gateway.compose.app import Server
from rockgate.gateway.compose.config.gather import gather
from rockgate.gateway.compose.config.sources import Given
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.grants import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.users import User, UserStatus, UserType

pytestmark = pytest.mark.row("SEC-10")

PASSWORD = "a password of nobody else"
TOKEN = "0123456789abcdef-token-of-the-pages"


@pytest.fixture(autouse=True)
def _untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "tune_collector", lambda: None)


def made(folder: Path, **settings: str) -> Server:
    given = {
        **SETTINGS,
        "remoting.listen": "off",
        "namesrv.listen": "off",
        "server.data_dir": str(folder / "data"),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    values = [Given(name=name, value=value, origin="a test") for name, value in given.items()]
    return Server(gather(values).config)


class Reader:
    """Reads pages of a server in this process."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def add(self, name: str, *, is_super: bool = False) -> None:
        """A user who can log in."""
        scram = await self.server.security.logins.hashed(PASSWORD)
        kind = UserType.SUPER if is_super else UserType.NORMAL
        self.server.security.users.put({name: User(type=kind, scram=scram)})

    async def ask(self, login: str = "", page: str = "/metrics") -> tuple[int, str]:
        """Status and the whole response."""
        address = self.server.addresses["http"]
        reader, writer = await asyncio.open_connection(address.host, address.port)
        header = f"Authorization: {login}\r\n" if login else ""
        writer.write(f"GET {page} HTTP/1.1\r\n{header}\r\n".encode())
        answer = (await asyncio.wait_for(reader.read(), 60)).decode()
        writer.close()
        return int(answer.split()[1]), answer

    async def status(self, login: str = "", page: str = "/metrics") -> int:
        return (await self.ask(login, page))[0]


def basic(name: str, password: str = PASSWORD) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    server = made(tmp_path, kafka__security_protocol="SASL_PLAINTEXT")
    async with AsyncExitStack() as resources:
        await server.start(resources)
        yield Reader(server)


def grant(name: str, operation: AclOperation = AclOperation.DESCRIBE) -> Grant:
    return Grant(
        resource_type=AclResourceType.CLUSTER,
        pattern_type=PatternType.LITERAL,
        resource_name=CLUSTER_NAME,
        principal=f"User:{name}",
        host="*",
        operation=operation,
        permission=Permission.ALLOW,
    )


async def test_probes_are_open_and_the_rest_needs_a_login_where_grants_decide(
    reader: Reader,
) -> None:
    assert await reader.status(page="/health") == 200
    assert await reader.status(page="/ready") == 200
    status, answer = await reader.ask()
    assert status == 401 and 'WWW-Authenticate: Basic realm="rockgate"' in answer
    assert "rockgate_" not in answer


async def test_metrics_take_describe_on_the_cluster(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    await reader.add("watcher")
    assert await reader.status(basic("watcher")) == 403
    assert "refused principal=User:watcher host=127.0.0.1 api=/metrics operation=DESCRIBE" in (
        caplog.text
    )
    reader.server.security.grants.add([grant("watcher")])
    status, answer = await reader.ask(basic("watcher"))
    assert status == 200 and "rockgate_" in answer
    assert "authenticated principal=User:watcher host=127.0.0.1 mechanism=BASIC" in caplog.text
    assert PASSWORD not in caplog.text


async def test_a_super_user_reads_everything(reader: Reader) -> None:
    await reader.add("root", is_super=True)
    assert await reader.status(basic("root")) == 200


@pytest.mark.parametrize(
    "login",
    [
        basic("root", "wrong"),
        basic("nobody"),
        basic("root", ""),
        basic("", PASSWORD),
        "Basic !!!",
        "Basic /w==",
        "Basic " + b64encode(b"\xff:\xff").decode(),
        "Basic " + b64encode(b"no colon").decode(),
        "Bearer abc",
        "Digest x",
        "Basic",
        "nonsense",
    ],
)
async def test_a_wrong_login_is_refused_alike_whatever_is_wrong(
    reader: Reader, login: str, caplog: pytest.LogCaptureFixture
) -> None:
    await reader.add("root", is_super=True)
    _, expected = await reader.ask(basic("root", "another wrong one"))
    started = asyncio.get_running_loop().time()
    status, answer = await reader.ask(login)
    assert asyncio.get_running_loop().time() - started >= 0.1
    assert status == 401 and answer == expected
    assert caplog.text.count("rejected principal=") == 2
    assert "wrong'" not in caplog.text.replace("is wrong.'", "")


async def test_failures_count_against_the_address_as_those_of_other_listeners(
    reader: Reader,
) -> None:
    await reader.add("root", is_super=True)
    loop = asyncio.get_running_loop()
    for _ in range(30):
        reader.server.security.failures.count("127.0.0.1", loop.time())
    assert await reader.status(basic("root", "wrong")) == 401
    started = loop.time()
    assert await reader.status(basic("root")) == 200
    assert loop.time() - started >= 1.0, "a guesser does not learn earlier of a success"


async def test_a_user_who_is_disabled_or_removed_is_refused_at_once(reader: Reader) -> None:
    await reader.add("root", is_super=True)
    assert await reader.status(basic("root")) == 200
    users = reader.server.security.users
    known = users.find("root")
    assert known is not None
    users.put({"root": known._replace(status=UserStatus.DISABLED)})
    assert await reader.status(basic("root")) == 401
    users.put({"root": None})
    assert await reader.status(basic("root")) == 401


async def test_two_logins_in_one_request_are_refused(reader: Reader) -> None:
    await reader.add("root", is_super=True)
    twice = f"{basic('root')}\r\nauthorization: {basic('nobody')}"
    assert await reader.status(twice) == 400


async def test_without_authentication_pages_are_open_until_there_is_a_user(tmp_path: Path) -> None:
    server = made(tmp_path)
    async with AsyncExitStack() as resources:
        await server.start(resources)
        reader = Reader(server)
        assert await reader.status() == 200
        await reader.add("alice")
        assert await reader.status() == 401
        assert await reader.status(basic("alice")) == 200, "there are no grants to ask"


async def test_without_a_login_a_client_is_anonymous_and_grants_decide(tmp_path: Path) -> None:
    server = made(tmp_path, kafka__security_protocol="SASL_PLAINTEXT", http__authentication="off")
    async with AsyncExitStack() as resources:
        await server.start(resources)
        reader = Reader(server)
        assert await reader.status() == 403
        server.security.grants.add([grant("ANONYMOUS")])
        assert await reader.status() == 200


async def test_the_token_of_a_file_reads_pages_and_may_be_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    server = made(tmp_path, http__authentication="on", http__token_file=str(file))
    async with AsyncExitStack() as resources:
        await server.start(resources)
        reader = Reader(server)
        status, answer = await reader.ask()
        assert status == 401 and 'WWW-Authenticate: Bearer realm="rockgate"' in answer
        assert await reader.status(f"Bearer {TOKEN}") == 200
        assert await reader.status(f"bearer {TOKEN}x") == 401
        file.write_text("another-token-which-is-long-enough\n")
        assert await reader.status(f"Bearer {TOKEN}") == 401
        assert await reader.status("Bearer another-token-which-is-long-enough") == 200
        file.unlink()
        assert await reader.status("Bearer another-token-which-is-long-enough") == 401
    assert TOKEN not in caplog.text and "another-token" not in caplog.text


@pytest.mark.parametrize("content", [None, "", "short\n"])
async def test_a_token_file_without_a_token_prevents_the_start(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    server = made(tmp_path, http__token_file=str(file))
    with pytest.raises(StartError, match=r"Cannot use http\.token_file\. .*token"):
        async with AsyncExitStack() as resources:
            await server.start(resources)


async def test_logins_are_not_taken_in_clear_from_other_machines(tmp_path: Path) -> None:
    server = made(tmp_path, http__listen="0.0.0.0:0", security__allow_anonymous="true")
    async with AsyncExitStack() as resources:
        await server.start(resources)
        reader = Reader(server)
        assert await reader.status() == 200
        await reader.add("root", is_super=True)
        status, answer = await reader.ask(basic("root"))
        assert status == 403 and "not taken without TLS" in answer
