"""One broker: dialled on first use, with the newest version of each API that both sides know.

With a `Login` each connection is logged in before it is used, and again before its session ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from ssl import SSLContext
from struct import Struct
from typing import Any, Final, TypeVar

from rockgate.cli.client.kafka.errors import (
    NotAdmitted,
    NotKafka,
    NotServed,
    Refused,
    TlsFailed,
    Unreachable,
    Unusable,
)
from rockgate.cli.client.kafka.link import Link
from rockgate.cli.client.kafka.login import Login
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import Response
from rockgate.protocol.kafka.errors import ErrorCode, ProtocolError
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from rockgate.protocol.kafka.schema import declaration_of, decode, encode_buffers
from rockgate.protocol.kafka.versions import NO_VERSIONS, Versions
from rockgate.sdk.client.peer_errors import cannot_connect, is_tls_failure

T = TypeVar("T")
Dial = Callable[[Callable[[], Link], Address], Awaitable[Link]]

MEMORY_FACTOR: Final = 40
"""Objects take more than their bytes; a server that was chosen by hand may send many."""
SESSION_PART: Final = 0.85
"""The part of a session's lifetime after which a client logs in again."""
_ERROR: Final = Struct(">h")
SOFTWARE: Final = "rockgate-cli"


async def dial_tcp(make: Callable[[], Link], address: Address) -> Link:
    """Open a TCP connection for a link."""
    loop = asyncio.get_running_loop()
    _, link = await loop.create_connection(make, address.host, address.port)
    return link


def dial_tls(context: SSLContext) -> Dial:
    """Open a TLS connection; the context says whom to trust."""

    async def dial(make: Callable[[], Link], address: Address) -> Link:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(make, address.host, address.port, ssl=context)
        return link

    return dial


class Broker:
    """One broker at one address. A connection that was lost is made again by the next request."""

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        dial: Dial = dial_tcp,
        login: Login | None = None,
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._dial = dial
        self._login = login
        self._login_again_at: float | None = None
        self._was_admitted = False
        """Whether a request that needs a login, where the server demands one, was answered."""
        self._link: Link | None = None
        self._opening = asyncio.Lock()
        self._served: dict[int, Versions] = {}
        self.finalized: dict[str, int] = {}
        """The enabled features, as the broker reports them."""

    async def connect(self) -> Link:
        """The connection, with the versions agreed on."""
        async with self._opening:
            if self._link is None or self._link.is_lost:
                self._link = await self._open()
            elif self._is_login_due():
                # Under the lock: no other request may come between the steps.
                await self._log_in(self._link)
            return self._link

    async def ask(
        self, request: Any, answer: type[T], *, version_max: int | None = None, wait_s: float = 0.0
    ) -> T:
        """Send a request and read its answer; `wait_s` is what the server may take on purpose."""
        link = await self.connect()
        key = _key_of(request)
        version = self.version_of(key, version_max)
        sent = link.ask(key, version, [*encode_buffers(request, version)])
        try:
            response = await self._answer(sent, self._timeout_s + wait_s)
        except Unreachable as error:
            if self._login is None and link.is_lost and not self._was_admitted:
                raise NotAdmitted(str(error)) from None
            raise
        self._was_admitted = True
        return self._read(answer, version, response)

    async def send_oneway(self, request: Any, *, version_max: int | None = None) -> None:
        """Send a request that has no answer."""
        link = await self.connect()
        key = _key_of(request)
        version = self.version_of(key, version_max)
        link.send_oneway(key, version, [*encode_buffers(request, version)])
        await link.sent()

    @property
    def served(self) -> dict[int, Versions]:
        """The APIs that the broker reports, once connected."""
        return self._served

    async def serves(self, key: ApiKey, version_min: int = 0) -> bool:
        """Whether some version of the API, at least `version_min`, can be spoken."""
        await self.connect()
        common = self._common(key)
        return bool(common) and common.max >= version_min

    def version_of(self, key: ApiKey, version_max: int | None = None) -> int:
        """The newest version that both ends know, not above `version_max`; or NotServed."""
        common = self._common(key)
        if version_max is not None:
            common &= Versions(0, version_max)
        if not common:
            theirs, name = self._served.get(key, NO_VERSIONS), APIS[key].name
            if theirs:
                raise NotServed(
                    f"{self.address} supports {name} in versions {theirs}, this client does not"
                )
            raise NotServed(f"{self.address} does not support {name}")
        return common.max

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._link is not None:
            self._link.close()

    async def ended(self) -> None:
        """Wait until the connection is closed."""
        if self._link is not None:
            await self._link.ended()

    # Private

    def _common(self, key: ApiKey) -> Versions:
        return self._served.get(key, NO_VERSIONS) & APIS[key].versions

    async def _open(self) -> Link:
        try:
            async with asyncio.timeout(self._timeout_s):
                link = await self._dial(
                    lambda: Link(str(self.address), self._client_id), self.address
                )
        except TimeoutError:
            raise Unreachable(
                f"Connecting to {self.address} timed out after {self._timeout_s:g} s"
            ) from None
        except OSError as error:
            kind = TlsFailed if is_tls_failure(error) else Unreachable
            raise kind(cannot_connect(self.address.host, str(self.address), error)) from error
        try:
            await self._agree(link)
            await self._log_in(link)
        except BaseException:
            link.close()
            # No one else knows of this connection, so its end is waited for here.
            await link.ended()
            raise
        return link

    async def _agree(self, link: Link) -> None:
        """Ask for the versions, in an older one where ours is too new for the broker."""
        key, version = ApiKey.API_VERSIONS, APIS[ApiKey.API_VERSIONS].versions.max
        request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="0.1.0")
        while True:
            asked = link.ask(key, version, [*encode_buffers(request, version)])
            response = await self._first_answer(asked)
            # A broker that does not know the version responds in version 0.
            (code,) = _ERROR.unpack_from(response.body) if len(response.body) >= 2 else (0,)
            is_older = code == ErrorCode.UNSUPPORTED_VERSION and version > 0
            answer = self._read(ApiVersionsResponse, 0 if is_older else version, response)
            self._served = {
                each.api_key: Versions(each.min_version, each.max_version)
                for each in answer.api_keys
            }
            if not is_older:
                break
            version = min(self._served.get(key, Versions(0, 0)).max, version - 1)
        if answer.error_code:
            raise Refused(answer.error_code, what=f"ApiVersions of {self.address}")
        self.finalized = {each.name: each.max_version_level for each in answer.finalized_features}

    def _is_login_due(self) -> bool:
        at = self._login_again_at
        return at is not None and asyncio.get_running_loop().time() >= at

    async def _log_in(self, link: Link) -> None:
        """Log in, if that is wanted; LoginRefused ends it."""
        if self._login is None:
            return
        began = asyncio.get_running_loop().time()
        seconds = await self._login.run(partial(self._ask_on, link), str(self.address))
        self._login_again_at = None if seconds is None else began + seconds * SESSION_PART

    async def _ask_on(self, link: Link, request: Any, answer: type[T]) -> T:
        key = _key_of(request)
        version = self.version_of(key)
        sent = link.ask(key, version, [*encode_buffers(request, version)])
        return self._read(answer, version, await self._answer(sent, self._timeout_s))

    async def _first_answer(self, future: asyncio.Future[Response]) -> Response:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await future
        except TimeoutError:
            raise NotKafka(
                f"{self.address} accepted the connection but did not respond within "
                f"{self._timeout_s:g} s: it is busy, or not a Kafka port"
            ) from None

    async def _answer(self, future: asyncio.Future[Response], seconds_max: float) -> Response:
        try:
            async with asyncio.timeout(seconds_max):
                return await future
        except TimeoutError:
            raise Unreachable(f"{self.address} did not respond within {seconds_max:g} s") from None

    def _read(self, answer: type[T], version: int, response: Response) -> T:
        body = response.body
        try:
            return decode(answer, version, body, memory_max=MEMORY_FACTOR * len(body) + (1 << 22))
        except ProtocolError as error:
            raise Unusable(f"Cannot decode the response from {self.address}: {error}") from error


def _key_of(request: Any) -> ApiKey:
    key = declaration_of(type(request)).key
    assert key is not None, request
    return key
