"""Large requests of which the last byte never comes: received, aborted, and blocking no other."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.requests.half import send_half
from tests.gateway.server import RunningServer
from tests.hostile.stalls import STALL_SECONDS_MAX, forget_peak, peak_bytes, stall_seconds
from tests.waiting import wait_until

COUNT = 24
SIZE = 30 << 20
BUDGET = 128 << 20
SETTLED = 48 << 20
"""What may be left: less than any two of the requests."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path, settings=[f"kafka.total_bytes_max={BUDGET}"]) as running:
        yield running
        assert running.stop() == 0


def test_many_large_half_sent_requests_stall_no_one_and_leave_no_memory(
    server: RunningServer,
) -> None:
    frame = struct.pack(">i", SIZE) + bytes(SIZE)
    before = server.resident_bytes
    forget_peak(server.pid)
    address = server.address("kafka")
    stall = stall_seconds(server, lambda: send_half(address, frame, COUNT))
    assert stall < STALL_SECONDS_MAX
    assert "memory limit exceeded by incomplete requests" in server.log
    assert peak_bytes(server.pid) - before < 2 * BUDGET
    wait_until(lambda: server.resident_bytes - before < SETTLED, "their memory goes back")
