"""The hand-written encoder of send headers: the constant part of a queue is encoded once.

Sends differ in a few numbers and the properties only, so a header is one formatted string; this
takes a tenth of the time of encoding a declared header. A test checks parity.
"""

import struct
from typing import Final

from rockgate.protocol.remoting.codes import VERSION
from rockgate.protocol.remoting.command import HEADER_SIZE_MAX, escape

_PREFIX: Final = struct.Struct(">II")


class SendHead:
    """The header of sends of one group to one queue."""

    __slots__ = ("_format",)

    def __init__(
        self,
        code: int,
        *,
        group: str,
        topic: str,
        default_topic: str,
        default_queue_count: int,
        queue_id: int,
        broker: str,
        is_batch: bool,
    ) -> None:
        def text(value: str) -> bytes:
            return escape(value).replace(b"%", b"%%")

        self._format = b"".join(
            (
                b'{"code":%d,"extFields":{"a":' % code,
                *(text(group), b',"b":', text(topic), b',"c":', text(default_topic)),
                b',"d":"%d","e":"%d"' % (default_queue_count, queue_id),
                b',"f":"%d","g":"%d","h":"%d","i":%b,"j":"0","k":"false",',
                b'"m":"true","n":' if is_batch else b'"m":"false","n":',
                *(text(broker), b'},"flag":%d,"language":"PYTHON","opaque":%d,'),
                b'"serializeTypeCurrentRPC":"JSON","version":' + b"%d}" % VERSION,
            )
        )

    def write(
        self,
        opaque: int,
        flag: int,
        body_size: int,
        sys_flag: int,
        born_ms: int,
        message_flag: int,
        properties: str,
    ) -> bytes:
        """The frame up to its body. `flag` is the command's, `message_flag` the message's own."""
        head = self._format % (
            *(sys_flag, born_ms, message_flag, escape(properties)),
            *(flag, opaque),
        )
        size = len(head)
        assert size <= HEADER_SIZE_MAX, f"{size} bytes do not fit a header"
        return _PREFIX.pack(4 + size + body_size, size) + head
