"""The page on compatibility says what the last run of the clients left behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from docs import compatibility
from tests.house.checkout import ROOT, files

COMPAT = Path(compatibility.COMPAT)
# Folders that are no client: what all of them share.
SHARED = {"behaviours", "beside", "capture"}


def client_folders() -> set[str]:
    parts = [path.parts for path in files() if path.parts[0] == str(COMPAT)]
    return {each[1] for each in parts if len(each) > 2} - SHARED


def results() -> compatibility.Results:
    return compatibility.load(ROOT / compatibility.RESULTS)


@pytest.mark.parametrize("folder", sorted(client_folders()))
def test_every_client_is_on_the_page_with_its_findings(folder: str) -> None:
    assert (ROOT / COMPAT / folder / "FINDINGS.md").is_file()
    assert f"({compatibility.COMPAT}/{folder}/".replace("(", "(../../") in compatibility.render()


def test_no_result_is_a_failure_and_none_is_left_out_without_a_reason() -> None:
    for entry in results()["clients"].values():
        for cells in entry["lists"].values():
            for feature, cell in cells.items():
                assert cell["failed"] == [], (entry["name"], feature)
                assert all(cell["not_run"]), (entry["name"], feature)


def test_every_feature_is_asked_of_some_client() -> None:
    asked = {
        feature for entry in results()["clients"].values() for feature in entry["lists"].get("", {})
    }
    assert asked == set(results()["features"])


def test_a_failure_is_reported_before_all_else() -> None:
    cell: dict[str, Any] = {"passed": 3, "failed": ["test_x"], "not_run": {"no lz4": 1}}
    assert compatibility.cell_text(cell) == "**1 failed**"
    assert compatibility.cell_text({**cell, "failed": []}) == "3, 1 not run"
    assert compatibility.cell_text({**cell, "failed": [], "passed": 0}) == "not run"
    assert compatibility.cell_text({"passed": 3, "failed": [], "not_run": {}}) == "3"
    assert compatibility.cell_text(None) == "-"


def test_without_results_the_page_is_only_what_is_not_asked_yet(tmp_path: Path) -> None:
    assert compatibility.load(tmp_path / "none.json")["clients"] == {}
    (tmp_path / "some.json").write_text(json.dumps({"features": [], "clients": {"a 1": {}}}))
    assert list(compatibility.load(tmp_path / "some.json")["clients"]) == ["a 1"]


def test_the_page_says_what_is_from_the_whole_run_and_what_is_not() -> None:
    suites = {
        "a": {"outcome": "passed", "seconds": 90},
        "b": {"outcome": "failed", "seconds": 30},
    }
    run = {"began": "10:00", "commit": "abc", "suites": suites}
    clients = {"a 1": {"run": "10:00"}, "b 2": {"run": ""}, "c 3": {}}
    assert list(compatibility.run_lines({"clients": clients, "run": run})) == [
        "The last whole run began at 10:00, tested `abc` and took 2 minutes. "
        "Of its 2 suites 1 passed.",
        "`b`: failed.",
        "\nRun by themselves, before or after it: b 2, c 3.",
    ]
    assert list(compatibility.run_lines({"clients": clients})) == []


def test_a_client_s_own_suite_stands_beside_what_it_says_of_apache_kafka() -> None:
    ours = {"date": "2026-11-19", "passed": 5, "failed": [], "skipped": ["c"]}
    kafka = {"date": "2026-11-19", "passed": 4, "failed": ["a", "b"], "skipped": []}
    suites = {"franz-go 1": {"Apache Kafka 4.3.1": kafka, "rockgate": ours}}
    assert list(compatibility.own_suite_lines({"own_suites": suites}))[-3:] == [
        "| franz-go 1 | rockgate | 2026-11-19 | 5 | 0 | 1 |",
        "| franz-go 1 | Apache Kafka 4.3.1 | 2026-11-19 | 4 | 2 | 0 |",
        "\nfranz-go 1 on Apache Kafka 4.3.1 failed: a, b.",
    ]
    assert list(compatibility.own_suite_lines({})) == []


def test_brokers_that_the_sdk_has_asked_stand_beside_each_other() -> None:
    cell = {"passed": 2, "failed": [], "not_run": {}}
    asked: dict[str, dict[str, Any]] = {
        "RocketMQ 4.9.7": {"pulls": cell},
        "RocketMQ 5.5.0": {"pulls": cell},
        "rockgate": {"pulls": cell, "x": cell},
    }
    clients = {
        f"rockgate-sdk with {broker}": {
            "version": f"with {broker}",
            "lists": {compatibility.SDK: cells},
        }
        for broker, cells in asked.items()
    }
    found = {"features": [], "clients": clients}
    assert list(compatibility.sdk_lines(found))[1:] == [
        "| what | rockgate | RocketMQ 5.5.0 | RocketMQ 4.9.7 |",
        "|---|:-:|:-:|:-:|",
        "| pulls | 2 | 2 | 2 |",
        "| x | 2 | - | - |",
    ]
    assert list(compatibility.own_lists(found)) == []
    assert list(compatibility.sdk_lines({"features": [], "clients": {}})) == []
