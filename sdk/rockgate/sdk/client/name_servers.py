"""Name servers, queried one after the other until one has the answer.

One that does not respond, or whose response cannot be decoded, is queried last from then on. While
there is another to query it has a second to respond, so that a call whose budget is three seconds
can still be served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.sdk.answers import checked
from rockgate.sdk.errors import NoRoute, Refused, SdkError

ASK_TIMEOUT_S: Final = 3.0
ASK_FIRST_TIMEOUT_S: Final = 1.0
BODY_BYTES_MAX: Final = 1 << 20
"""A larger answer is refused: a route of ten thousand brokers is smaller."""
BODY_ASIDE_BYTES: Final = 64 << 10
"""A larger one is read in a thread: Java's JSON may take a second then."""

T = TypeVar("T")
Ask = Callable[[str, int, Fields, float], Awaitable[Command]]
"""Sends a request to an address: its code, its fields, and the timeout in seconds."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What a name server knows. None: no server that responded knows it."""

    value: T | None
    failure: SdkError | None = None
    """Why another server could not be asked."""


class NameServers:
    """The addresses that were given, the next to ask first."""

    def __init__(self, addresses: Sequence[str], ask: Ask) -> None:
        assert addresses
        self._addresses = list(addresses)
        self._ask = ask

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that were given, sorted."""
        return tuple(sorted(self._addresses))

    async def find(self, code: int, fields: Fields, kind: type[T], what: str) -> Found[T]:
        """A body of this kind, from the first server that has one; raises if none responds."""
        failure: SdkError | None = None
        is_answered = False
        addresses = list(self._addresses)
        for address in addresses:
            is_last = address is addresses[-1]
            timeout_s = ASK_TIMEOUT_S if is_last else ASK_FIRST_TIMEOUT_S
            try:
                answer = await self._ask(address, code, fields, timeout_s)
                if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                    is_answered = True
                    continue
                if answer.code != ResponseCode.SUCCESS:
                    raise Refused(what, answer.code, answer.remark)
                return Found(await _read(answer, kind, what), failure)
            except MalformedRequest as wrong:
                failure = NoRoute(f"Cannot decode the response from name server {address}: {wrong}")
            except SdkError as wrong:
                failure = wrong
            if address in self._addresses:
                self._addresses.remove(address)
                self._addresses.append(address)
        if failure is not None and not is_answered:
            raise failure
        return Found(None, failure)

    async def ask_each(self, code: int, fields: Fields) -> list[Command]:
        """The answers of all name servers that respond; raises if none does."""
        asks = [self._ask(each, code, dict(fields), ASK_TIMEOUT_S) for each in self.addresses]
        found = await asyncio.gather(*asks, return_exceptions=True)
        answers = [each for each in found if isinstance(each, Command)]
        failures = [each for each in found if isinstance(each, BaseException)]
        for failure in failures:
            if not answers or not isinstance(failure, SdkError):
                raise failure
        return answers

    async def send_all(self, code: int, fields: Fields) -> None:
        """Send a request to every name server; raises if one failed, after all were sent it."""
        failure: SdkError | None = None
        for address in list(self._addresses):
            try:
                answer = await self._ask(address, code, dict(fields), ASK_TIMEOUT_S)
                checked(code, address, answer)
            except SdkError as wrong:
                failure = wrong
        if failure is not None:
            raise failure


async def _read(answer: Command, kind: type[T], what: str) -> T:
    size = len(answer.body)
    if size > BODY_BYTES_MAX:
        raise MalformedRequest(what, f"body is {size:,} bytes, the maximum is {BODY_BYTES_MAX:,}")
    if size > BODY_ASIDE_BYTES:
        return await asyncio.to_thread(javajson.decode, bytes(answer.body), kind, what)
    return javajson.decode(answer.body, kind, what)
