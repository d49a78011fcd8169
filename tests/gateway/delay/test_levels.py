from __future__ import annotations

import pytest

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.remoting.server.config import RemotingConfig


@pytest.mark.row("S-05")
def test_levels_are_read_as_rocketmq_writes_them() -> None:
    assert read_levels("1s 2m  3h 4d") == [1_000, 120_000, 10_800_000, 345_600_000]


@pytest.mark.row("Y-01")
def test_there_are_rocketmq_s_eighteen_by_default() -> None:
    levels = read_levels(RemotingConfig().delay_levels)
    assert (len(levels), levels[0], levels[2], levels[17]) == (18, 1_000, 10_000, 7_200_000)


@pytest.mark.row("S-05")
@pytest.mark.parametrize("text", ["", "  ", "1", "s", "1x", "-1s", "1s,2s"])
def test_what_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="delay level"):
        read_levels(text)
    with pytest.raises(ValueError, match="delay level"):
        RemotingConfig(delay_levels=text)
