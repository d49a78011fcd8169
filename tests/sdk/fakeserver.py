"""Peers on real sockets that are not what they should be."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec

from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection


class FakeServer:
    """Accepts every connection, reads, and answers as `answer` says: by default nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.accepted: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return host, port

    def answer(self, command: Command) -> Command | None:
        return None

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for each in self.accepted:
            # The client may have been first.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self._listener.accept()
            except OSError:
                return
            self.accepted.append(found)
            thread = threading.Thread(target=self._serve, args=(found,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, found: socket.socket) -> None:
        connection = Connection()
        with found:
            while True:
                try:
                    data = found.recv(1 << 16)
                except OSError:
                    return
                if not data:
                    return
                for command in connection.receive_data(data):
                    answer = self.answer(command)
                    if answer is not None:
                        connection.respond(command, answer)
                found.sendall(b"".join(map(bytes, connection.data_to_send())))


class FakeNameServer(FakeServer):
    """Knows one broker, wherever that is, for every topic."""

    broker = "127.0.0.1:1"

    def answer(self, command: Command) -> Command | None:
        named: dict[str, Any] = {
            "brokerName": "b",
            "cluster": "c",
            "brokerAddrs": {"0": self.broker},
        }
        queues = {"brokerName": "b", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
        if command.code == 106:
            body: dict[str, Any] = {"brokerAddrTable": {"b": named}}
        else:
            body = {"brokerDatas": [named], "queueDatas": [queues]}
        return Command(0, body=msgspec.json.encode(body))
