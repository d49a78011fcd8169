"""The push consumer's benchmark: what it loads, and which bars it draws."""

import pytest
from bench.measure.results import Report
from bench.measure.run import Sampling
from bench.peers.rockgate import RockgateServer
from bench.sdk import push


@pytest.mark.timeout(120)
def test_every_mode_of_the_load_says_its_numbers() -> None:
    with RockgateServer(rocketmq=True) as server:
        assert push.python(server.namesrv, "fill", "push", 1000, 100) == [1000.0]
        assert push.python(server.namesrv, "consume", "push", 1000)[0] > 0
        p50, p99 = push.python(server.namesrv, "latency", "late", 0.3, 100)
        assert 0 < p50 <= p99
        assert push.python(server.namesrv, "cached", "push", 1000)[0] > 0


def test_a_ratio_is_of_medians() -> None:
    shown = Sampling(Report(name="push", question="?", peers={}))
    for ours, theirs in ((1.0, 4.0), (2.0, 4.0), (9.0, 4.0)):
        shown.add("rate", push.PYTHON, ours)
        shown.add("rate", push.JAVA, theirs)
    assert push.ratio(shown, "rate") == 0.5
