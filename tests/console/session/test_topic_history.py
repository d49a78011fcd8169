"""The last hour of each topic, from pages of metrics."""

from __future__ import annotations

from rockgate.cli.admin.metrics import Metrics
from rockgate.console.session.topic_history import GAP_MS, INTERVAL_MS, SAMPLES_MAX, TopicHistory

START = 1_000_000


def page(**topics: tuple[float, float]) -> Metrics:
    """Messages and bytes by topic."""
    return Metrics(
        {
            "rockgate_topic_messages_total": {
                (("topic", name),): count for name, (count, _) in topics.items()
            },
            "rockgate_topic_bytes": {
                (("topic", name),): size for name, (_, size) in topics.items()
            },
        }
    )


def test_a_topic_has_its_size_and_the_rate_between_samples() -> None:
    history = TopicHistory()
    history.add(page(a=(10, 100)), START)
    history.add(page(a=(70, 400)), START + INTERVAL_MS)
    first, second = history.of("a")
    assert (first.size, first.rate) == (100, None)
    assert (second.size, second.rate) == (400, 2.0)
    assert history.of("b") == []


def test_samples_are_no_closer_than_the_interval() -> None:
    history = TopicHistory()
    for second in range(0, 61, 5):
        history.add(page(a=(1, 1)), START + second * 1_000)
    assert len(history.of("a")) == 3


def test_a_restart_and_a_gap_have_no_rate() -> None:
    history = TopicHistory()
    history.add(page(a=(10, 1)), START)
    history.add(page(a=(5, 1)), START + INTERVAL_MS)
    history.add(page(a=(50, 1)), START + INTERVAL_MS + GAP_MS + 1)
    assert [each.rate for each in history.of("a")] == [None, None, None]


def test_topics_come_and_go() -> None:
    history = TopicHistory()
    history.add(page(a=(1, 1)), START)
    history.add(page(b=(1, 1)), START + INTERVAL_MS)
    history.add(page(a=(1, 1), b=(16, 1)), START + 2 * INTERVAL_MS)
    assert len(history.of("a")) == 2
    assert [each.rate for each in history.of("b")] == [None, 0.5]


def test_only_an_hour_is_remembered() -> None:
    history = TopicHistory()
    for number in range(SAMPLES_MAX + 10):
        history.add(page(a=(number, 1)), START + number * INTERVAL_MS)
    assert len(history.of("a")) == SAMPLES_MAX
