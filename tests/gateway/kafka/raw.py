"""A minimal Kafka client on a plain socket, for tests that examine every byte."""

import socket
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rockgate.protocol.kafka.schema import decode, encode

T = TypeVar("T")
SECONDS_MAX = 180.0
MEMORY_MAX = 1 << 28


class RawClient:
    """One connection; requests and responses by value, or as raw bytes."""

    def __init__(self, server: RunningServer, listener: str = "kafka") -> None:
        self.socket = socket.create_connection(server.address(listener), timeout=SECONDS_MAX)
        self.connection = ClientConnection(client_id="raw")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, key: ApiKey, version: int, request: Any) -> None:
        self.connection.send(key, version, [encode(request, version)])
        self.socket.sendall(b"".join(self.connection.data_to_send()))

    def receive(self, response: type[T], version: int) -> T:
        while True:
            data = self.socket.recv(1 << 16)
            assert data, "the server closed the connection"
            for answer in self.connection.receive_data(data):
                return decode(response, version, answer.body, memory_max=MEMORY_MAX)

    def call(self, key: ApiKey, version: int, request: Any, response: type[T]) -> T:
        self.send(key, version, request)
        return self.receive(response, version)

    def api_versions(self, version: int = 3) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        return self.call(ApiKey.API_VERSIONS, version, request, ApiVersionsResponse)

    def closed_by_server(self) -> bool:
        """Whether the server closes the connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
