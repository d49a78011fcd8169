"""A plain remoting client for tests: a socket, and the sans-IO connection."""

from __future__ import annotations

import json
import socket
from typing import Any

from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import BINARY, JSON, Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.message import Message, decode_all

SECONDS_MAX = 180.0
HELD_SECONDS = 60.0


class Client:
    """One connection. `told` are requests sent by the server."""

    def __init__(self, address: tuple[str, int], encoding: int = JSON) -> None:
        self.socket = socket.create_connection(address, timeout=SECONDS_MAX)
        self.connection = Connection(encoding=encoding)
        self.told: list[Command] = []
        self._answers: dict[int, Command] = {}

    def send(
        self, code: int, fields: dict[str, Any] | None = None, body: bytes = b"", **flags: bool
    ) -> int:
        texts = {name: str(value) for name, value in (fields or {}).items()}
        opaque = self.connection.request(code, texts, body, **flags)
        self.flush()
        return opaque

    def flush(self) -> None:
        self.socket.sendall(b"".join(self.connection.data_to_send()))

    def ask(self, code: int, fields: dict[str, Any] | None = None, body: bytes = b"") -> Command:
        return self.answer(self.send(code, fields, body))

    def answer(self, opaque: int) -> Command:
        while opaque not in self._answers:
            self.receive()
        return self._answers.pop(opaque)

    def receive(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        for command in self.connection.receive_data(data):
            if command.flag & RESPONSE_FLAG:
                self._answers[command.opaque] = command
            else:
                self.told.append(command)

    # Client operations

    def publish(
        self, topic: str, body: bytes = b"hello", *, queue: int = 0, **more: Any
    ) -> Command:
        return self.answer(self.begin_publish(topic, body, queue=queue, **more))

    def begin_publish(
        self, topic: str, body: bytes = b"hello", *, queue: int = 0, **more: Any
    ) -> int:
        fields = {
            "a": "producers",
            "b": topic,
            "c": "TBW102",
            "d": 4,
            "e": queue,
            "f": more.pop("sys_flag", 0),
            "g": 1_700_000_000_000,
            "h": more.pop("flag", 0),
            "i": properties(more.pop("properties", {"UNIQ_KEY": "id-1", "WAIT": "true"})),
            "j": 0,
            "k": "false",
            "m": "true" if more.pop("batch", False) else "false",
        }
        assert not more, more
        return self.send(310, fields, body)

    def pull(self, topic: str, offset: int = 0, **more: Any) -> Command:
        return self.answer(self.begin_pull(topic, offset, **more))

    def begin_pull(self, topic: str, offset: int = 0, *, queue: int = 0, **more: Any) -> int:
        fields = {
            "consumerGroup": "group",
            "topic": topic,
            "queueId": queue,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": 4,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
            **more,
        }
        return self.send(11, fields)

    def hold(self, topic: str, offset: int, **more: Any) -> int:
        """Begin a pull that is held for longer than this client waits: only an arrival ends it."""
        self.socket.settimeout(HELD_SECONDS / 2)
        held = {"sysFlag": 2 | 4, "suspendTimeoutMillis": int(HELD_SECONDS * 1_000)}
        return self.begin_pull(topic, offset, **held, **more)

    def heartbeat(self, client_id: str, group: str, *topics: str, **more: Any) -> Command:
        body = {
            "clientID": client_id,
            "consumerDataSet": [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": more.get("model", "CLUSTERING"),
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "subscriptionDataSet": [
                        {
                            "topic": topic,
                            "subString": more.get("expression", "*"),
                            "classFilterMode": more.get("by_class", False),
                            "subVersion": 1,
                        }
                        for topic in topics
                    ],
                }
            ]
            if group
            else [],
            "producerDataSet": [{"groupName": "producers"}],
        }
        return self.ask(34, {}, json.dumps(body).encode())


def properties(pairs: dict[str, str]) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in pairs.items())


def messages(answer: Command) -> list[Message]:
    return list(decode_all(answer.body))


__all__ = ["BINARY", "JSON", "Client", "messages", "properties"]
