"""A TCP proxy between a Kafka client and a broker that records whole frames.

It forwards every byte unchanged, and also splits both directions into frames. It only reads what
pairs a request with its response: API key, version and correlation id. It decodes nothing, so its
recordings are independent of our codecs.
"""

import asyncio
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from rockgate.protocol.frames import FrameReader

FRAME_BYTES_MAX = 2**31 - 1
READ_SIZE = 64 * 1024

_REQUEST_LEAD = struct.Struct(">hhi")
_RESPONSE_LEAD = struct.Struct(">i")


class Call(NamedTuple):
    """The client and its API call."""

    client: str
    api_key: int
    version: int


class Exchange(NamedTuple):
    """Both frames of one request, without their lengths; no response to Produce with acks=0."""

    request: bytes
    response: bytes | None


@dataclass
class Recording:
    """Everything that was forwarded, by call. `client` is the current client."""

    client: str = "unknown"
    exchanges: dict[Call, list[Exchange]] = field(default_factory=lambda: defaultdict(list))


class _Tap:
    """One connection of the proxy."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._client = recording.client
        self._requests = FrameReader(FRAME_BYTES_MAX)
        self._responses = FrameReader(FRAME_BYTES_MAX)
        self._open: dict[int, tuple[Call, bytes]] = {}

    def from_client(self, data: bytes) -> None:
        for view in self._requests.feed(data):
            frame = bytes(view)
            api_key, version, correlation_id = _REQUEST_LEAD.unpack_from(frame)
            self._open[correlation_id] = Call(self._client, api_key, version), frame

    def from_broker(self, data: bytes) -> None:
        for view in self._responses.feed(data):
            frame = bytes(view)
            (correlation_id,) = _RESPONSE_LEAD.unpack_from(frame)
            call, request = self._open.pop(correlation_id)
            self._recording.exchanges[call].append(Exchange(request, frame))

    def close(self) -> None:
        for call, request in self._open.values():
            self._recording.exchanges[call].append(Exchange(request, None))
        self._open.clear()


class CaptureProxy:
    """Listens on one port and forwards to one broker; the broker must advertise the proxy."""

    def __init__(self, recording: Recording, broker: tuple[str, int]) -> None:
        self._recording = recording
        self._broker = broker
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Future[None]] = set()

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, host, port)

    async def stop(self) -> None:
        """Close the port and every connection, so that open exchanges are recorded too."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._serving)

    async def _serve(
        self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        tap = _Tap(self._recording)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broker_reader, broker_writer = await asyncio.open_connection(*self._broker)
        self._writers |= {client_writer, broker_writer}
        self._serving.add(done)
        try:
            await asyncio.gather(
                _pump(client_reader, broker_writer, tap.from_client),
                _pump(broker_reader, client_writer, tap.from_broker),
            )
        finally:
            tap.close()
            self._writers -= {client_writer, broker_writer}
            self._serving.discard(done)
            done.set_result(None)


async def _pump(reader, writer, tap) -> None:  # type: ignore[no-untyped-def]
    """Forward until either side closes; then close the other one."""
    try:
        while data := await reader.read(READ_SIZE):
            tap(data)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
