"""Random sequences of requests to us and to a reference server: all responses must be equal.

The reference is Apache Kafka or, for RocketMQ's protocol, Apache RocketMQ.

A sequence is a list of steps, and a step a list of plain values, so that it can be saved. A player
runs the steps against one server and returns a response of plain values for each, without anything
that depends on the server: producer ids, member ids and topics have names local to the sequence.
`recorded/` has sequences with their responses, which `make test` plays to us; `make compat` plays
new ones to both, and shrinks differences to the steps that matter.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, ClassVar, Self, TypeVar

from tests.waiting import wait_until

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from rockgate.protocol.kafka.schema import declaration_of, decode, encode

T = TypeVar("T")
Step = list[Any]
Answer = Any
Address = tuple[str, int]

SECONDS_MAX = 120.0
MEMORY_MAX = 1 << 26
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    # Kafka's code for it to producers that do not know it.
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""Errors that a client retries: their number depends on timing, not on meaning."""
_numbers = count(int(time.time() * 1000) % 10**9)


class Wire:
    """One connection; one request at a time, or several whose responses are read in order."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, timeout=SECONDS_MAX)
        self._connection = ClientConnection(client_id="differential")
        self._answers: list[memoryview] = []

    def close(self) -> None:
        self.socket.close()

    def send(self, request: Any, version: int) -> None:
        key = declaration_of(type(request)).key
        assert key is not None
        self._connection.send(key, version, [encode(request, version)])
        self.socket.sendall(b"".join(self._connection.data_to_send()))

    def receive(self, answer: type[T], version: int) -> T:
        while not self._answers:
            data = self.socket.recv(1 << 16)
            assert data, "the server closed the connection"
            self._answers += [each.body for each in self._connection.receive_data(data)]
        return decode(answer, version, self._answers.pop(0), memory_max=MEMORY_MAX)

    def ask(self, request: Any, answer: type[T], version: int) -> T:
        self.send(request, version)
        return self.receive(answer, version)


class Player:
    """Runs the steps of one sequence against one server."""

    steps: ClassVar[dict[str, Callable[..., Answer]]]
    """The implementation of each step, by its first word."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.prefix = f"differential-{next(_numbers)}"
        self._symbols: dict[tuple[str, Any], str] = {}

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def begin(self) -> None:
        """Create what every sequence starts with."""

    def close(self) -> None:
        """Close the connections."""

    def play(self, sequence: Sequence[Step]) -> list[Answer]:
        """Run all steps; return their responses."""
        return [self.steps[name](self, *values) for name, *values in sequence]

    # For steps

    def name(self, own: str) -> str:
        """The server-side name of a thing in the sequence."""
        return f"{self.prefix}-{own}"

    def symbol(self, kind: str, value: Any) -> str:
        """The local name of a value chosen by the server: by order of appearance."""
        known = self._symbols.get((kind, value))
        if known is None:
            number = sum(each == kind for each, _ in self._symbols)
            known = self._symbols[kind, value] = f"{kind}{number}"
        return known


class KafkaPlayer(Player):
    """A player for Kafka's protocol."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.wire = Wire(address)

    def close(self) -> None:
        self.wire.close()

    def settled(self, ask: Callable[[], tuple[int, Answer]]) -> Answer:
        """Retry until the response is final."""
        found: list[Answer] = []

        def is_settled() -> bool:
            number, answer = ask()
            if number not in NOT_YET:
                found.append(answer)
            return bool(found)

        wait_until(is_settled, "the coordinator says more than: later")
        return found[0]

    def find_coordinator(self, kind: int, key: str) -> None:
        """Wait for the coordinator: Kafka creates its internal topics on first use."""
        request = FindCoordinatorRequest(key="", key_type=kind, coordinator_keys=[key])

        def ask() -> tuple[int, None]:
            answer = self.wire.ask(request, FindCoordinatorResponse, 4)
            return answer.coordinators[0].error_code, None

        self.settled(ask)

    def wait_for_topic(self, name: str, partitions: int) -> None:
        """Wait until the broker knows a topic that the controller has created."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )

        def is_there() -> bool:
            (topic,) = self.wire.ask(request, MetadataResponse, 8).topics
            parts = getattr(topic, "partitions", [])
            return len(parts) == partitions and not any(part.error_code for part in parts)

        wait_until(is_there, f"topic {name} appears")
        ends = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=number, timestamp=-1)
                        for number in range(partitions)
                    ],
                )
            ],
        )

        def is_led() -> bool:
            (found,) = self.wire.ask(ends, ListOffsetsResponse, 7).topics
            return not any(part.error_code for part in found.partitions)

        wait_until(is_led, f"topic {name} has its leader")


def code(number: int) -> str:
    """The name of an error code."""
    return ErrorCode(number).name
