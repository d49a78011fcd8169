import json
import re
import signal
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.waiting import wait_until


def read(terminal: Terminal, topic: str) -> list[dict[str, object]]:
    lines = terminal.pipe("consume", topic, "--exit-at-end", "--json").splitlines()
    return [json.loads(line) for line in lines]


def values(terminal: Terminal, topic: str) -> list[object]:
    return [record["value"] for record in read(terminal, topic)]


def test_values_of_the_command_line_with_key_headers_partition_and_time(
    terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name, "-p", "3")
    said = terminal.pipe(
        *("produce", name, "one", "two", "--key", "k", "-H", "a=1", "-H", "a=2=3", "-H", "b="),
        *("--partition", "2", "--timestamp", "2026-01-01T00:00:00Z", "--json"),
    )
    assert json.loads(said) == {
        "topic": name,
        "records": 2,
        "partitions": [{"partition": 2, "records": 2, "first_offset": 0, "last_offset": 1}],
        "errors": [],
    }
    first, second = read(terminal, name)
    assert first == {
        "topic": name,
        "partition": 2,
        "offset": 0,
        "timestamp_ms": 1_767_225_600_000,
        "timestamp_type": "create",
        "key": "k",
        "value": "one",
        "headers": [
            {"key": "a", "value": "1"},
            {"key": "a", "value": "2=3"},
            {"key": "b", "value": ""},
        ],
    }
    assert second["value"] == "two"


def test_lines_of_standard_input_go_to_a_topic_that_the_server_creates(
    terminal: Terminal, name: str
) -> None:
    with terminal.start("produce", name, "-K", ":", "-z", "zstd", "--null-value") as process:
        out, errors = process.communicate(b"a:1\nb:\r\na:x:y", timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert errors.startswith(f"rockgate: The server created topic {name} with".encode())
    found = sorted((str(r["key"]), r["value"]) for r in read(terminal, name))
    assert found == [("a", "1"), ("a", "x:y"), ("b", None)]


def test_files_are_read_by_line_or_whole(terminal: Terminal, name: str, tmp_path: Path) -> None:
    terminal.run("topics", "create", name, "-p", "1")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3")
    files = ("-f", str(first), "-f", str(second))
    terminal.pipe("produce", name, *files, "--compression", "lz4", "--acks", "1")
    terminal.pipe("produce", name, *files, "--whole", "--no-idempotent")
    terminal.pipe("produce", name, "--whole", "-f", "-", "--acks", "0", data=b"4\n")
    assert values(terminal, name) == ["1", "2", "3", "1\n2\n", "3", "4\n"]


def test_a_tombstone_needs_no_input(terminal: Terminal, name: str) -> None:
    terminal.pipe("produce", name, "--key", "7", "--null-value")
    assert [(r["key"], r["value"]) for r in read(terminal, name)] == [("7", None)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_copy_by_json_lines_loses_no_byte(terminal: Terminal, name: str, codec: str) -> None:
    terminal.run("topics", "create", name, f"{name}-copy", "-p", "2")
    lines = [
        {"key_base64": "/w==", "value": "é\n\u2028\u0000", "headers": [], "timestamp_ms": 5},
        {"key": "", "value_base64": "gICA", "headers": [{"key": "h", "value_base64": "/w=="}]},
        {"key": None, "value": None, "headers": [{"key": "", "value": None}]},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    terminal.pipe("produce", name, "--jsonl", "-z", codec, data=data)
    first = terminal.pipe("consume", name, "-e", "--json")
    terminal.pipe("produce", f"{name}-copy", "--jsonl", "--keep-partitions", data=first)
    second = terminal.pipe("consume", f"{name}-copy", "-e", "--json")
    assert sorted(second.replace(b"-copy", b"").splitlines()) == sorted(first.splitlines())


def test_many_lines_arrive_in_order_of_their_key(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-p", "3")
    lines = b"".join(b"k%d:%d\n" % (n % 5, n) for n in range(30_000))
    said = json.loads(terminal.pipe("produce", name, "-K", ":", "--json", data=lines))
    assert said["records"] == sum(part["records"] for part in said["partitions"]) == 30_000
    by_key: dict[bytes, list[int]] = {}
    for line in terminal.pipe("consume", name, "-e", "--keys").splitlines():
        key, _, value = line.partition(b"\t")
        by_key.setdefault(key, []).append(int(value))
    assert {key: found == sorted(found) for key, found in by_key.items()} == {
        b"k%d" % n: True for n in range(5)
    }
    assert sum(map(len, by_key.values())) == 30_000


def test_what_came_before_a_bad_line_is_sent(terminal: Terminal, name: str) -> None:
    said = terminal.pipe("produce", name, "--jsonl", data=b'{"value":"a"}\n{"val', status=1)
    assert b"rockgate: Record 2 is not a JSON record" in said
    assert values(terminal, name) == ["a"]


def test_a_record_that_is_too_large_is_the_servers_no(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "-p", "1", "-c", "max.message.bytes=1000")
    terminal.pipe("produce", name, data=b"x" * 300 + b"\n" + b"y" * 300 + b"\n" + b"z" * 300)
    assert len(values(terminal, name)) == 3
    said = terminal.pipe("produce", name, "x" * 2000, status=1)
    assert b"MESSAGE_TOO_LARGE" in said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", "-f", "x"), "Give values or --file, not both."),
        (("-f", "nowhere"), "File not found: nowhere"),
        (("a", "--whole"), "--whole requires files"),
        (("-K", ":", "-k", "x"), "Give --key or --key-separator, not both."),
        (("--jsonl", "-k", "x"), "With --jsonl, key, headers, delay, partition and timestamp"),
        (("--keep-partitions",), "--keep-partitions requires --jsonl."),
        (("x", "-H", "nothing"), "Invalid --header: expected NAME=VALUE, got 'nothing'"),
        (("x", "--timestamp", "noon"), "Invalid --timestamp: expected a time"),
    ],
)
def test_what_makes_no_sense_is_status_2(
    terminal: Terminal, arguments: tuple[str, ...], problem: str
) -> None:
    said = terminal.run("produce", "t", *arguments, status=2)
    assert said.startswith(f"rockgate: {problem}")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_breaks_off_is_told_what_was_sent(
    terminal: Terminal, name: str, number: signal.Signals, status: int
) -> None:
    terminal.run("topics", "create", name, "-p", "1")

    def end() -> object:
        (told,) = terminal.json("topics", "describe", name)["topics"]
        return told["partitions"][0]["end_offset"]

    with terminal.start("produce", name) as process:
        assert process.stdin is not None
        process.stdin.write(b"a\nb\nc\n")
        process.stdin.flush()
        wait_until(lambda: end() == 3, "three records")
        # What the server has stored is acknowledged before the next is.
        process.stdin.write(b"d\n")
        process.stdin.flush()
        wait_until(lambda: end() == 4, "one more")
        process.send_signal(number)
        process.wait(60)
        assert process.stdout is not None and process.stderr is not None
        said = process.stderr.read().decode()
        assert (process.returncode, process.stdout.read()) == (status, b"")
    assert re.fullmatch(
        rf"rockgate: Interrupted: sent (4 records to {name}"
        rf"|3 records to {name}; 1 more may have been written)\.\n",
        said,
    )


def test_a_delay_is_a_header_that_the_topic_must_know(terminal: Terminal, name: str) -> None:
    terminal.run("topics", "create", name, "--config", "message.type=DELAY")
    terminal.pipe("produce", name, "later", "--delay", "1h30m")
    terminal.pipe("produce", name, "soon", "--deliver-at", "2026-01-01T00:00:00Z")
    wait_until(lambda: values(terminal, name) == ["soon"], "the record that is due")


def test_a_delay_is_refused_where_records_would_come_at_once(terminal: Terminal, name: str) -> None:
    said = terminal.pipe("produce", name, "later", "--delay", "1h", status=1).decode()
    assert f"rockgate topics create {name} --config message.type=DELAY" in said
    terminal.run("topics", "create", name)
    said = terminal.pipe("produce", name, "later", "--delay", "1h", status=1).decode()
    assert f"`rockgate configs set topic {name} message.type=MIXED`" in said
    assert values(terminal, name) == []


def test_headers_of_a_delay_that_delay_nothing_are_worth_one_warning(
    terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    with terminal.start("produce", name, "-H", "TIMER_DELAY_MS=1000") as process:
        _, said = process.communicate(b"one\ntwo\n", timeout=60)
    assert process.returncode == 0
    assert said.decode().count("Warning: Topic") == 1
    assert values(terminal, name) == ["one", "two"]
    line = b'{"value": "three", "headers": [{"key": "DELAY", "value": "3"}]}\n'
    with terminal.start("produce", name, "--jsonl") as process:
        _, said = process.communicate(line, timeout=60)
    assert b"Warning: Topic" in said
