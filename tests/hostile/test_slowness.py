"""Peers that never finish what they begin: bounded by time, whatever they trickle."""

from __future__ import annotations

import contextlib
import logging
import struct
from collections.abc import Iterator

import pytest
from tests.budget import budget
from tests.gateway.fakes import LIMITS
from tests.gateway.kafka.fakes import Line
from tests.gateway.kafka.raw import RawClient
from tests.hostile.target import Target, running_target


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("slowness")) as running:
        yield running


async def test_one_byte_a_second_is_cut_off_when_its_request_is_overdue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = Line().open()
    sent = 0
    with caplog.at_level(logging.INFO):
        for byte in struct.pack(">i", 5000) + bytes(5000):
            if line.transport.is_lost:
                break
            line.receive(bytes([byte]))
            line.clock.advance(1.0)
            sent += 1
    assert sent <= 2 * LIMITS.frame_seconds_max
    (record,) = caplog.records
    assert "request did not arrive in time" in record.message
    assert line.budget.used == 0 and line.clock.timers == []


async def test_small_requests_at_one_byte_a_second_are_served_as_they_come() -> None:
    line = Line().open()
    for byte in line.frames(b"one", b"two"):
        line.receive(bytes([byte]))
        line.clock.advance(1.0)
    assert line.answers() == [b"one", b"two"]


async def test_answers_read_at_one_byte_a_second_do_not_pile_up() -> None:
    line = Line().open()
    line.script.answer = lambda body: body * 600
    line.send(b"1", b"2", b"3", b"4", b"5", b"6")
    for _ in range(300):
        line.transport.read(1)
        line.clock.advance(1.0)
        assert len(line.transport.unread) <= 2 * LIMITS.unread_bytes_max
    assert len(line.script.started) <= 3


def test_many_requests_that_never_end_hold_up_no_one(target: Target) -> None:
    with target.under_watch(), contextlib.ExitStack() as stack:
        for _ in range(budget("hostile_rounds")):
            client = stack.enter_context(RawClient(target.server))
            client.socket.sendall(struct.pack(">i", 50 << 20) + b"\0\3\0\4" + bytes(500))
