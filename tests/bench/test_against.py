"""Two commits beside each other: pairs of turns, and the load that both get."""

import pytest
from bench import against
from bench.load import rdkafka, remoting_frames
from bench.load.rdkafka import LoadFailed
from bench.measure.results import Report
from bench.peers.rockgate import RockgateServer


def test_each_turn_is_compared_with_the_one_next_to_it() -> None:
    samples = {against.OURS: [2.0, 9.0], against.THEIRS: [1.0, 10.0]}
    assert against.pairs(samples) == [2.0, 0.9]


def test_turns_that_have_no_neighbour_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        against.pairs({against.OURS: [2.0, 9.0], against.THEIRS: [1.0]})


def test_a_commit_that_is_slower_breaks_a_bar() -> None:
    report = Report(name="against", question="", peers={})
    slow = against.Against(report, {})
    for case in against.CASES:
        report.samples[f"{case} [CPU µs]"] = {against.OURS: [1.02], against.THEIRS: [1.0]}
        report.samples[f"{case} [1/s]"] = {against.OURS: [96.0], against.THEIRS: [100.0]}
    report.samples["start [s]"] = {against.OURS: [1.0], against.THEIRS: [1.0]}
    slow.conclude()
    assert report.holds
    report.bars.clear()
    report.samples["remoting pulls [CPU µs]"][against.OURS] = [1.04]
    slow.conclude()
    assert [bar.name for bar in report.bars if not bar.holds] == ["remoting pulls [CPU µs]"]


def test_another_commit_is_checked_out_and_gone_afterwards() -> None:
    with against.checked_out("HEAD") as tree:
        assert (tree / "pyproject.toml").is_file()
    assert not tree.exists()


def test_messages_that_are_sent_by_frames_are_pulled_by_frames() -> None:
    with RockgateServer(rocketmq=True) as server:
        rdkafka.create_topic(server.bootstrap, "sent", 1)
        address = server.listeners["remoting"]
        assert remoting_frames.send(address, "sent", 100, 150).count == 150
        assert remoting_frames.pull(address, "sent", 100, 150).count == 128
        with pytest.raises(LoadFailed, match="refused"):
            remoting_frames.pull(address, "sent", 100, 300)
