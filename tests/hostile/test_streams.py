"""Bytes on Kafka's port that are not Kafka's, or not quite."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.budget import budget
from tests.hostile.target import Target, running_target
from tests.seeds import seeded
from tests.waiting import wait_until

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("streams")) as running:
        yield running


def recorded_requests() -> list[bytes]:
    """Every request that a real client was recorded to send, without its length."""
    found = [
        bytes.fromhex(each["hex"])
        for path in sorted(GOLDEN.glob("*/*.json"))
        for each in json.loads(path.read_text(encoding="utf-8"))["frames"]
        if each["direction"] == "request"
    ]
    assert len(found) > 100
    return found


def framed(data: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(data)) + data


def test_random_bytes_are_closed_and_no_one_else_notices(target: Target) -> None:
    random = seeded()
    with target.under_watch():
        for _ in range(budget("hostile_rounds")):
            data = random.randbytes(random.choice((1, 3, 4, 5, 14, 200, 70_000)))
            target.attack(framed(data) if random.random() < 0.5 else data)


def test_recorded_requests_with_bytes_changed_are_answered_or_closed(target: Target) -> None:
    random, requests = seeded(), recorded_requests()
    with target.under_watch():
        for _ in range(budget("hostile_rounds")):
            data = bytearray(random.choice(requests))
            for _ in range(random.randrange(1, 5)):
                # Behind the API key, so that the API is one that exists.
                at = random.randrange(3, len(data))
                data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            target.attack(framed(data))


def test_recorded_requests_cut_short_are_closed(target: Target) -> None:
    random, requests = seeded(), recorded_requests()
    with target.under_watch():
        for _ in range(budget("hostile_rounds")):
            data = random.choice(requests)
            data = data[: random.randrange(len(data))]
            # Half of them say so, half promise more than ever comes.
            size = len(data) if random.random() < 0.5 else len(data) + random.randrange(1, 1 << 20)
            target.attack(struct.pack(">i", size) + data)


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (bytes.fromhex("16030100c8010000c40303") + bytes(192), "looks like TLS"),
        (b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n", "looks like HTTP"),
    ],
    ids=["a TLS hello", "HTTP"],
)
def test_what_speaks_another_protocol_is_closed_with_one_line(
    target: Target, data: bytes, hint: str
) -> None:
    mark = len(target.server.log)
    assert target.attack(data, is_last=False) == b""
    wait_until(lambda: hint in target.server.log[mark:], "the line is logged")
    (line,) = target.server.log[mark:].splitlines()
    assert " info " in line and " closed on error " in line
