"""The soak: its line through samples, and a minute's worth of every kind of churn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench.load.churn import KINDS, Churn
from bench.soak import SETTINGS, slope
from tests.gateway.server import RunningServer


def test_the_slope_is_that_of_the_line_through_the_samples() -> None:
    assert slope([5.0, 5.0, 5.0]) == 0
    assert slope([1.0, 3.0, 5.0, 7.0]) == pytest.approx(2)
    assert slope([0.0, 2.0, 0.0, 2.0, 0.0]) == pytest.approx(0)


def test_every_kind_of_churn_goes_round_without_an_error(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=SETTINGS) as server:
        churn = Churn(server.address("kafka"), KINDS)
        asyncio.run(churn.run(1.0))
        assert min(churn.counts.values()) > 0
        assert server.stop() == 0
