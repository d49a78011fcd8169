"""The numbers are those of Kafka's Rate and TokenBucket: see docs/reference/quotas.md, Rates."""

import pytest

from rockgate.gateway.kafka.quotas.rates import Bucket, Rate


def test_a_new_rate_is_measured_over_all_windows_but_one() -> None:
    rate = Rate(11, 1_000)
    assert rate.measure(5_000) == (0.0, 10_000)
    rate.record(1_000, 5_000)
    assert rate.measure(5_000) == (100.0, 10_000)
    # Within its window the first one counts with the time it has run.
    assert rate.measure(5_500)[0] == pytest.approx(1_000 / 10.5)
    assert rate.measure(5_500)[1] == 10_500


def test_what_came_stays_until_the_windows_are_over() -> None:
    rate = Rate(11, 1_000)
    rate.record(1_000, 0)
    assert rate.measure(10_999)[0] == pytest.approx(1_000 / 10.999)
    assert not rate.is_idle(10_999)
    assert rate.measure(11_000)[0] == 0.0
    assert rate.is_idle(11_000)


def test_a_steady_rate_is_what_it_is() -> None:
    rate = Rate(11, 1_000)
    for at_ms in range(0, 60_000, 100):
        rate.record(50, at_ms)
    assert rate.measure(60_000)[0] == pytest.approx(500, rel=0.01)


def test_one_waits_until_what_came_is_no_more_than_allowed() -> None:
    rate = Rate(11, 1_000)
    rate.record(10_000, 0)
    assert rate.throttle_ms(1_000, 0) == 0
    rate.record(5_000, 0)
    # 1,500 a second over ten seconds, where 1,000 are allowed: five seconds more make it right.
    wait_ms = rate.throttle_ms(1_000, 0)
    assert wait_ms == 5_000
    assert rate.throttle_ms(2_000, 0) == 0


def test_a_client_that_waits_as_long_as_it_is_told_keeps_to_its_quota() -> None:
    rate, now_ms, sent = Rate(11, 1_000), 0, 0
    while now_ms < 120_000:
        rate.record(3_000, now_ms)
        sent += 3_000
        now_ms += max(1, rate.throttle_ms(1_000, now_ms))
    # The quiet time before it began is worth ten seconds.
    assert sent / (now_ms + 10_000) * 1_000 == pytest.approx(1_000, rel=0.1)


def test_memory_of_a_rate_is_bounded() -> None:
    rate = Rate(3, 10)
    for at_ms in range(0, 100_000, 9):
        rate.record(1, at_ms)
    assert len(rate._samples) <= 4


def test_a_bucket_holds_what_all_windows_allow_and_may_be_overdrawn() -> None:
    bucket = Bucket(11, 1_000, 2.0, 0)
    assert bucket.tokens == 22
    bucket.tokens -= 32
    assert bucket.throttle_ms(2.0) == 5_000
    bucket.refill(2.0, 5_000)
    assert (bucket.tokens, bucket.throttle_ms(2.0)) == (0, 0)
    assert not bucket.is_full(2.0, 15_999)
    assert bucket.is_full(2.0, 16_000)
    bucket.refill(2.0, 1_000_000)
    assert bucket.tokens == 22
