"""Decodes commands: frequent ones in JSON directly to typed headers, others generically.

Java writes a header's code first. If the first bytes are those of a send, a pull or the end of a
half message, a decoder for that header reads everything in one pass; this takes half the time of
reading strings by name and converting them. Everything else is decoded generically, which also
reports errors.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import (
    BINARY,
    JSON,
    Command,
    decode_json,
    split,
)
from rockgate.protocol.remoting.command import decode as decode_plainly
from rockgate.protocol.remoting.headers.pull import PullHeader
from rockgate.protocol.remoting.headers.send import SendHeader, SendHeaderV2
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader

H = TypeVar("H")


class _Whole(msgspec.Struct, Generic[H], rename="camel", gc=False):
    """A request's whole header, with typed fields."""

    code: int
    ext_fields: H
    flag: int = 0
    language: str = "JAVA"
    opaque: int = 0
    version: int = 0


def _starts(code: RequestCode) -> bytes:
    return b'{"code":%d,' % code


_START_SIZE: Final = 12
_KINDS: Final[dict[bytes, tuple[RequestCode, Any]]] = {
    _starts(code)[:_START_SIZE]: (code, msgspec.json.Decoder(kind, strict=False).decode)
    for code, kind in (
        (RequestCode.SEND_MESSAGE, _Whole[SendHeader]),
        (RequestCode.SEND_MESSAGE_V2, _Whole[SendHeaderV2]),
        (RequestCode.SEND_BATCH_MESSAGE, _Whole[SendHeaderV2]),
        (RequestCode.PULL_MESSAGE, _Whole[PullHeader]),
        (RequestCode.LITE_PULL_MESSAGE, _Whole[PullHeader]),
        (RequestCode.END_TRANSACTION, _Whole[EndTransactionHeader]),
    )
}


def decode(frame: memoryview) -> Command:
    """The command in a frame, with its `header` decoded if it is a frequent one in JSON."""
    encoding, head, body = split(frame)
    if encoding == BINARY:
        return decode_plainly(frame)
    start = bytes(head[:_START_SIZE])
    found = _KINDS.get(start) or _KINDS.get(start[:-1])
    if found is None:
        return decode_json(head, body, len(frame))
    try:
        read = found[1](head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_json(head, body, len(frame))
    if not 0 <= read.opaque <= 0x7FFFFFFF or not 0 <= read.flag <= 3 or read.code != found[0]:
        return decode_json(head, body, len(frame))
    return Command(
        read.code,
        None,
        body,
        opaque=read.opaque,
        flag=read.flag,
        encoding=JSON,
        version=read.version,
        language=read.language,
        header=read.ext_fields,
        head=head,
        size=len(frame),
    )
