from rockgate.gateway.security.credentials.failed_attempts import (
    ADDRESSES_MAX,
    LONGER,
    MANY_COUNT,
    WINDOW_SECONDS,
    FailedAttempts,
)


def failed(times: int, host: str = "10.0.0.1", at: float = 0.0) -> FailedAttempts:
    attempts = FailedAttempts(100)
    for _ in range(times):
        attempts.count(host, at)
    return attempts


def test_a_failure_is_delayed_and_a_success_is_not() -> None:
    attempts = failed(MANY_COUNT)
    assert attempts.delay_seconds("10.0.0.1", 1.0, has_failed=True) == 0.1
    assert attempts.delay_seconds("10.0.0.1", 1.0, has_failed=False) == 0.0


def test_an_address_with_too_many_failures_is_delayed_longer_for_a_minute() -> None:
    attempts = failed(MANY_COUNT + 1)
    for has_failed in (False, True):
        delay = attempts.delay_seconds("10.0.0.1", 1.0, has_failed=has_failed)
        assert delay == LONGER * 0.1
    assert attempts.delay_seconds("10.0.0.2", 1.0, has_failed=False) == 0.0
    assert attempts.delay_seconds("10.0.0.1", WINDOW_SECONDS, has_failed=False) == 0.0
    attempts.count("10.0.0.1", WINDOW_SECONDS)
    assert attempts.delay_seconds("10.0.0.1", WINDOW_SECONDS + 1, has_failed=False) == 0.0


def test_addresses_of_one_ipv6_network_are_counted_together() -> None:
    attempts = FailedAttempts(100)
    for number in range(MANY_COUNT + 1):
        attempts.count(f"2001:db8::{number:x}", 0.0)
    assert attempts.delay_seconds("2001:db8::ffff%eth0", 1.0, has_failed=False) > 0
    assert attempts.delay_seconds("2001:db8:1::1", 1.0, has_failed=False) == 0
    assert len(attempts) == 1


def test_a_mapped_address_is_that_of_ipv4() -> None:
    attempts = failed(MANY_COUNT + 1, "::ffff:10.0.0.1")
    assert attempts.delay_seconds("::ffff:10.0.0.1", 1.0, has_failed=False) > 0
    assert attempts.delay_seconds("::ffff:10.0.0.2", 1.0, has_failed=False) == 0


def test_the_table_is_bounded() -> None:
    attempts = FailedAttempts(100)
    for number in range(ADDRESSES_MAX + 10):
        attempts.count(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(attempts) == ADDRESSES_MAX
