from rockgate.gateway.telemetry.requests import RequestStats


def test_errors_are_counted_by_api_and_code() -> None:
    stats = RequestStats()
    for code in (22, 22, 25):
        stats.of(8).count_error(code)
    assert stats.of(8).errors == {22: 2, 25: 1}
    assert stats.of(9).errors == {}
