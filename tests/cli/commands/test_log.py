"""`rockgate log`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.world import World
from typer.testing import CliRunner, Result

from rockgate.cli.commands import app
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

CONFIG = StoreConfig(segment_bytes=1 << 16, populate_ahead_bytes=4096, key_index=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with six messages and two batches of three in it."""
    store = open_store(tmp_path)
    queue = store.queues.of(store.topics.create(NewTopic(name="orders", queue_count=1)).id)[0]
    for number in range(8):
        body = b"%d" % number * 50
        if number % 4 == 3:
            records = [Record(index, number, None, body) for index in range(3)]
            batch = build_batch(records, base_offset=0)
            store.appender.batch(queue, batch, count=3, record_ms=number)
        else:
            draft = Draft(b"", 0, 0, body, b"KEYS\x01k%d\x02" % number, born_ms=number)
            store.appender.message(queue, draft)
    store.close()
    return tmp_path / "data"


def open_store(tmp_path: Path) -> Store:
    return World(CONFIG, path=tmp_path / "data").store


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(app, ["log", *map(str, arguments)])


def positions(data: Path) -> list[int]:
    lines = run("dump", "--data-dir", data, "--json", "--topic", "orders").stdout.splitlines()
    return [json.loads(line)["position"] for line in lines]


def damage(data: Path, position: int) -> None:
    file = data / "commitlog" / f"{0:020d}"
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


@pytest.mark.row("MODEL-4")
def test_queues_are_looked_at_with_dump_and_have_no_folders(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in ("orders", "returns"):
        topic = store.topics.create(NewTopic(name=name, queue_count=2))
        for number in range(4):
            store.appender.message(store.queue(topic, number % 2), Draft(b"", 0, 0, b"x"))
    store.close()
    data = tmp_path / "data"
    paths = [path.relative_to(data).as_posix() for path in data.rglob("*")]
    assert [path for path in paths if "orders" in path or "returns" in path] == []
    assert {path.count("/") for path in paths if path.startswith("queueindex/")} == {1}
    for name in ("orders", "returns"):
        lines = run("dump", "--data-dir", data, "--json", "--topic", name).stdout.splitlines()
        found = [(line["queue_id"], line["offset"]) for line in map(json.loads, lines)]
        assert found == [(0, 0), (1, 0), (0, 1), (1, 1)]


# check


def test_a_clean_log_ends_with_0(data: Path) -> None:
    result = run("check", "--data-dir", data)
    assert result.exit_code == 0
    assert result.stdout.startswith("Clean: positions 0 to ")
    assert "(2 batches)" in result.stdout


def test_a_damaged_log_ends_with_1_and_names_file_position_and_reason(data: Path) -> None:
    place = positions(data)[2]
    damage(data, place + 95)
    result = run("check", "--data-dir", data)
    assert result.exit_code == 1
    first, *_, last = result.stdout.splitlines()
    assert first.startswith(
        f"{data}/commitlog/{0:020d} is damaged at position {place}: body checksum"
    )
    assert last == f"To repair it, run: rockgate log repair --truncate-at {place}"


def test_check_as_json_has_every_finding(data: Path) -> None:
    place = positions(data)[2]
    damage(data, place + 95)
    result = run("check", "--data-dir", data, "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    [finding] = report["damage"]
    assert finding["position"] == place
    assert not finding["is_repairable"]
    assert not report["is_clean"]
    assert (report["log_start"], report["batch_count"]) == (0, 2)


@pytest.mark.parametrize("command", ["check", "dump", "repair --truncate-at 0"])
def test_a_directory_that_is_not_there_ends_with_2_and_is_not_made(
    command: str, tmp_path: Path
) -> None:
    result = run(*command.split(), "--data-dir", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "Data directory not found: " in result.stderr
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_that_cannot_be_written_can_be_checked(data: Path) -> None:
    for path in [*data.rglob("*"), data]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert run("check", "--data-dir", data).exit_code == 0
    finally:
        for path in [data, *data.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)


def test_a_clean_check_says_that_a_server_starts(data: Path) -> None:
    last = run("check", "--data-dir", data).stdout.splitlines()[-1]
    assert last == "A server would start with store.segment_bytes=65536."
    report = json.loads(run("check", "--data-dir", data, "--json").stdout)
    assert report["starts"] is True
    assert report["refusal"] is None


def test_a_check_beside_a_running_server_tries_no_start(data: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    result = run("check", "--data-dir", data)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].endswith("is using the directory; no start was tried.")
    store.close()


def test_damage_that_a_start_does_not_meet_is_reported_and_no_refusal_is_claimed(
    data: Path,
) -> None:
    for name in ("checkpoint",):
        content = bytearray((data / name).read_bytes())
        newest = max((0, 4096), key=lambda at: content[at + 8 : at + 16])
        content[newest + 20] ^= 1
        (data / name).write_bytes(content)
    result = run("check", "--data-dir", data)
    assert result.exit_code == 1
    assert "checkpoint is damaged at byte" in result.stdout
    assert "refuse" not in result.stdout
    assert result.stdout.splitlines()[-1].endswith(" despite the damage.")


def test_what_check_names_at_its_end_is_what_repair_takes(data: Path, tmp_path: Path) -> None:
    (data / "checkpoint").write_bytes(bytes(8192))
    *_, refused, after = run("check", "--data-dir", data).stdout.splitlines()
    assert refused.startswith("A server would refuse to start: ")
    assert after.startswith("To repair it, run: rockgate log repair --truncate-at ")
    position = after.rpartition(" ")[2]
    assert run("repair", "--data-dir", data, "--truncate-at", position).exit_code == 0
    assert run("check", "--data-dir", data).exit_code == 0
    store = open_store(tmp_path)
    assert store.queues.of(store.topics.get("orders").id)[0].next_offset == 12
    store.close()


def test_a_segment_size_that_was_set_otherwise_is_no_damage(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKGATE_STORE_SEGMENT_BYTES", "8MiB")
    result = run("check", "--data-dir", data)
    assert result.exit_code == 1
    assert result.stdout.startswith("Clean: ")
    last = result.stdout.splitlines()[-1]
    assert "created with segment_bytes=65536, but the setting is 8388608" in last
    assert "set store.segment_bytes to 65536" in last
    result = run("repair", "--data-dir", data, "--truncate-at", 0, "--force")
    assert result.exit_code == 1
    assert "set store.segment_bytes to 65536" in result.stderr


# dump


def test_a_dump_of_a_worked_example(data: Path) -> None:
    result = run("dump", "--data-dir", data, "--topic", "orders")
    assert result.exit_code == 0
    heading, *lines = result.stdout.splitlines()
    assert heading.split()[:3] == ["position", "size", "kind"]
    assert len(lines) == 8
    time = "2023-11-14T22:13:20.000"
    assert lines[0].split()[2:] == ["message", time, "0", "0", "1", "orders", "KEYS=k0"]
    assert lines[3].split()[2:] == ["batch", time, "0", "3", "3", "orders", "[inner-batch]"]
    assert lines[4].split()[5] == "6"


def test_a_dump_shows_state_and_damage_in_their_places(data: Path) -> None:
    place = positions(data)[2]
    damage(data, place + 95)
    lines = run("dump", "--data-dir", data).stdout.splitlines()[1:]
    assert lines[0].split()[2] == "state"
    assert lines[0].split()[-1] == "rmq_sys_rockgate_epoch"
    [damaged] = [line for line in lines if " damaged " in line]
    assert damaged.split()[0] == str(place)
    assert "body checksum mismatch" in damaged


def test_a_dump_takes_what_lies_in_a_range_up_to_a_limit(data: Path) -> None:
    places = positions(data)
    arguments = ("dump", "--data-dir", data, "--json", "--from", places[2], "--to", places[6])
    rows = [json.loads(line) for line in run(*arguments).stdout.splitlines()]
    assert [row["position"] for row in rows] == places[2:6]
    rows = [json.loads(line) for line in run(*arguments, "--limit", 2).stdout.splitlines()]
    assert [row["position"] for row in rows] == places[2:4]
    assert rows[0]["properties"] == {"KEYS": "k2"}
    assert run(*arguments, "--queue", 7).stdout == ""


# repair


def test_a_repair_ends_the_log_where_it_was_told_to(data: Path, tmp_path: Path) -> None:
    place = positions(data)[5]
    damage(data, place + 95)
    result = run("repair", "--data-dir", data, "--truncate-at", place)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"The log now ends at {place}, with ")
    assert f" bytes to {data}/lost" in result.stdout
    assert run("check", "--data-dir", data).exit_code == 0
    store = open_store(tmp_path)
    queue = store.queues.of(store.topics.get("orders").id)[0]
    assert queue.next_offset == 7
    store.close()


def test_a_repair_that_is_not_possible_ends_with_1_and_says_why(data: Path) -> None:
    place = positions(data)[5]
    result = run("repair", "--data-dir", data, "--truncate-at", place + 1)
    assert result.exit_code == 1
    assert f"The entry at {place} ends at" in result.stderr


def test_a_repair_beside_a_running_server_is_refused(data: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    result = run("repair", "--data-dir", data, "--truncate-at", 0)
    assert result.exit_code == 1
    assert "is in use by process" in result.stderr
    assert result.stderr.endswith("--data-dir.\n")
    store.close()


def test_a_repair_needs_a_position(data: Path) -> None:
    assert run("repair", "--data-dir", data).exit_code == 2
    assert run("repair", "--data-dir", data, "--truncate-at", "-5").exit_code == 2
    assert run("repair", "--data-dir", data, "--truncate-at", "soon").exit_code == 2


def test_a_repair_as_json_is_for_programs(data: Path) -> None:
    place = positions(data)[5]
    result = run("repair", "--data-dir", data, "--truncate-at", place, "--json")
    done = json.loads(result.stdout)
    assert done["end"] == place
    assert done["lost_bytes"] > 0


# help


@pytest.mark.parametrize("command", ["check", "dump", "repair"])
def test_every_command_shows_examples(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"rockgate log {command}" in result.stdout


def test_a_check_that_is_broken_off_says_that_the_rest_is_not_known(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rockgate.store.check.inspect.inspect", broken_off)
    result = CliRunner().invoke(app, ["log", "check", "--data-dir", str(data)])
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "rockgate: Interrupted: the part not read yet may be damaged.\n"
