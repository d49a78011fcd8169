from dataclasses import replace

from rockgate.cli.admin.metrics import read
from rockgate.console.session.history import SAMPLES_MAX, History, sample_of

FIRST = sample_of(
    read(
        "rockgate_put_messages_total 10\n"
        'rockgate_kafka_request_seconds_count{api="Fetch"} 5\n'
        'rockgate_remoting_request_seconds_count{request="SEND"} 3\n'
        "rockgate_event_loop_delay_seconds_sum 1\n"
        "rockgate_event_loop_delay_seconds_count 10\n"
        "rockgate_lag 4\n"
    ),
    1_000_000,
)


def test_a_rate_is_what_came_between_two_samples_by_the_second() -> None:
    history = History()
    history.add(FIRST)
    history.add(
        replace(
            FIRST,
            at_ms=1_005_000,
            messages_in=60,
            requests=18,
            loop_delay_s=1.02,
            loop_samples=20,
        )
    )
    (rates,) = history.rates
    assert (rates.messages_in, rates.requests) == (10, 2)
    assert round(rates.loop_delay_ms, 6) == 2
    assert history.latest is not None and history.latest.lag == 4


def test_a_restart_and_a_gap_have_no_rate() -> None:
    history = History()
    history.add(FIRST)
    history.add(replace(FIRST, at_ms=1_005_000, requests=1))
    history.add(replace(FIRST, at_ms=9_005_000, requests=10_000))
    assert not history.rates
    assert len(history.samples) == 3


def test_what_a_server_does_not_say_is_unknown_and_not_zero() -> None:
    assert FIRST.disk_used is None


def test_an_hour_is_all_that_is_remembered() -> None:
    history = History()
    for number in range(SAMPLES_MAX + 100):
        history.add(replace(FIRST, at_ms=1_000_000 + 5_000 * number))
    assert len(history.samples) == len(history.rates) == SAMPLES_MAX
    assert history.samples[0].at_ms == 1_000_000 + 5_000 * 100
