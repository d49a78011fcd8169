"""Typed responses of brokers and name servers; errors and undecodable ones raise Refused."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import msgspec

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.codes import ResponseCode, request_name
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.sdk.errors import Refused

BODY_BYTES_MAX: Final = 1 << 20
ASIDE_BYTES: Final = 64 << 10
"""A larger body is read in a thread: Java's JSON may take a second then."""

H = TypeVar("H", bound=msgspec.Struct)
T = TypeVar("T")


def checked(code: int, address: str, answer: Command) -> Command:
    """The answer, if the request succeeded."""
    if answer.code != ResponseCode.SUCCESS:
        raise refused(code, address, answer)
    return answer


def refused(code: int, address: str, answer: Command) -> Refused:
    """The answer of a peer to a request that it does not serve."""
    return Refused(f"{request_name(code)} to {address}", answer.code, answer.remark)


def read_header(code: int, address: str, answer: Command, kind: type[H]) -> H:
    """The fields of an answer."""
    try:
        return headers.read(answer, kind)
    except MalformedRequest as wrong:
        raise _malformed(code, address, wrong) from None


def read_body(
    code: int, address: str, answer: Command, kind: type[T], size_max: int = BODY_BYTES_MAX
) -> T:
    """The body of an answer, at once: for those that are known to be small."""
    try:
        return javajson.decode(answer.body, kind, request_name(code), size_max=size_max)
    except MalformedRequest as wrong:
        raise _malformed(code, address, wrong) from None


async def read_any_body(
    code: int, address: str, answer: Command, kind: type[T], size_max: int
) -> T:
    """The body of an answer that may be large."""
    if len(answer.body) <= ASIDE_BYTES:
        return read_body(code, address, answer, kind, size_max)
    return await asyncio.to_thread(read_body, code, address, answer, kind, size_max)


def _malformed(code: int, address: str, wrong: MalformedRequest) -> Refused:
    what = f"{request_name(code)} to {address}"
    return Refused(what, ResponseCode.SYSTEM_ERROR, f"invalid response: {wrong.reason}")
