from prometheus_client.parser import text_string_to_metric_families

from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.durations import Durations
from rockgate.gateway.telemetry.exposition import Exposition


def read(page: Exposition) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples as Prometheus' own library reads them: by name and labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(page.text()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_what_is_told_is_read_back() -> None:
    page = Exposition()
    page.add(metrics.CONNECTIONS, 5)
    page.add(metrics.DISK, 0.25)
    page.add(metrics.ERRORS, 3, "Produce", "CORRUPT_MESSAGE")
    page.add(metrics.ERRORS, 2**60, "Fetch", "NONE")
    assert read(page) == {
        "rockgate_kafka_connections": {(): 5.0},
        "rockgate_disk_used_ratio": {(): 0.25},
        "rockgate_kafka_errors_total": {
            ("Produce", "CORRUPT_MESSAGE"): 3.0,
            ("Fetch", "NONE"): float(2**60),
        },
    }


def test_a_histogram_has_running_counts_a_sum_and_a_count() -> None:
    durations = Durations((0.1, 1.0))
    for seconds in (0.05, 0.06, 0.5, 3.0):
        durations.add(seconds)
    page = Exposition()
    page.add_durations(metrics.REQUESTS, durations, "Produce")
    found = read(page)
    assert found["rockgate_kafka_request_seconds_bucket"] == {
        ("Produce", "0.1"): 2.0,
        ("Produce", "1.0"): 3.0,
        ("Produce", "+Inf"): 4.0,
    }
    assert found["rockgate_kafka_request_seconds_sum"] == {("Produce",): 3.61}
    assert found["rockgate_kafka_request_seconds_count"] == {("Produce",): 4.0}


def test_labels_may_be_anything_and_stay_on_their_line() -> None:
    page = Exposition()
    for value in ('a"b', "a\\b", "a\nb", "a\u2028b", "", "ä", 'x"} 5\nrockgate_lag 7'):
        page.add(metrics.GROUP_LAG, 1, value, "t")
    assert len(read(page)["rockgate_group_lag"]) == 7
    assert "rockgate_lag" not in read(page)
    assert len(page.text().splitlines()) == 2 + 7


def test_kind_and_meaning_are_reported_once() -> None:
    page = Exposition()
    page.add(metrics.GROUPS, 1, "Stable")
    page.add(metrics.CONNECTIONS, 1)
    page.add(metrics.GROUPS, 2, "Empty")
    assert page.text().count("# TYPE rockgate_groups gauge") == 1
    assert page.text().count("# HELP rockgate_groups ") == 1
    assert page.text().index('"Empty"') < page.text().index("rockgate_kafka_connections")


def test_a_renamed_metric_is_exported_under_both_names() -> None:
    page = Exposition()
    page.add(metrics.ANSWER_BYTES, 7, "Produce")
    delays = Durations((0.1,))
    delays.add(0.05)
    page.add_durations(metrics.EVENT_LOOP_DELAY, delays)
    found = read(page)
    for new, old in (
        ("rockgate_kafka_response_bytes_total", "rockgate_kafka_answer_bytes_total"),
        ("rockgate_event_loop_delay_seconds_bucket", "rockgate_loop_lateness_seconds_bucket"),
        ("rockgate_event_loop_delay_seconds_count", "rockgate_loop_lateness_seconds_count"),
    ):
        assert found[new] == found[old] != {}
    assert (
        "# HELP rockgate_kafka_answer_bytes_total"
        " Deprecated: use rockgate_kafka_response_bytes_total."
    ) in page.text()
