import contextlib
import re
import resource
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer, command, environment
from tests.waiting import wait_until

from rockgate.gateway.compose.app import OWN_FILES, fitted
from rockgate.gateway.compose.config.gather import gather
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey


def http_status(server: RunningServer, path: str) -> int:
    with socket.create_connection(server.address("http"), timeout=60) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return int(client.makefile("rb").readline().split()[1])


ANONYMOUS = ("--set", "security.allow_anonymous=true")


def refused(directory: Path, *flags: str) -> tuple[int, str]:
    """Run a server that cannot start: its status, and the last line it says."""
    result = subprocess.run(
        command(
            *("serve", "--data-dir", str(directory)),
            *("--remoting", "off", "--namesrv", "off"),
            *flags,
        ),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr.splitlines()[-1]


def test_the_ready_line_names_every_listener_in_order(tmp_path: Path) -> None:
    address = r"127\.0\.0\.1:\d+"
    with RunningServer(tmp_path, rocketmq=True) as server:
        assert re.fullmatch(
            rf"ready kafka={address} remoting={address} namesrv={address} http={address}",
            server.ready_line,
        )
        assert http_status(server, "/health") == 200
        assert http_status(server, "/ready") == 200
        assert server.stop() == 0


def test_off_closes_a_listener(tmp_path: Path) -> None:
    with RunningServer(tmp_path, flags=["--kafka", "off", "--http", "off"]) as server:
        assert server.ready_line == "ready kafka=off remoting=off namesrv=off http=off"
        assert server.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with RunningServer(tmp_path) as server:
        assert server.stop(number) == 0
        assert f"stopping signal={number.name}" in server.log
        assert server.log.rstrip().endswith("stopped")


def test_identity_survives_a_stop_and_a_kill(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        server.stop()
        server.restart()
        server.kill()
        server.restart()
        assert server.stop() == 0
        identities = re.findall(r"node_id=\d+ cluster_id=\S+", server.log)
    assert len(identities) == 3 and len(set(identities)) == 1


def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        status, line = refused(server.data_dir, "--kafka", "127.0.0.1:0", "--http", "off")
        assert status == 1
        assert str(server.data_dir) in line and f"process {server.pid}" in line
        assert http_status(server, "/ready") == 200


@pytest.mark.parametrize("listener", ["kafka", "http"])
def test_a_port_in_use_is_one_clear_line_and_status_1(tmp_path: Path, listener: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        other = "http" if listener == "kafka" else "kafka"
        status, line = refused(tmp_path / "data", f"--{listener}", address, f"--{other}", "off")
    assert status == 1
    assert f"Cannot listen on {address} for {listener}: address already in use" in line
    assert f"--{listener} HOST:PORT" in line


def test_an_address_that_is_not_ours_is_one_clear_line(tmp_path: Path) -> None:
    status, line = refused(tmp_path, "--kafka", "192.0.2.1:9092", "--http", "off", *ANONYMOUS)
    assert status == 1
    assert "Cannot listen on 192.0.2.1:9092 for kafka" in line


def test_a_failed_start_leaves_the_directory_free(tmp_path: Path) -> None:
    refused(tmp_path / "data", "--kafka", "192.0.2.1:9092", "--http", "off", *ANONYMOUS)
    with RunningServer(tmp_path) as server:
        assert server.stop() == 0


def test_a_bad_setting_is_status_2(tmp_path: Path) -> None:
    status, line = refused(tmp_path, "--set", "kafka.idle_ms=1")
    assert status == 2
    assert "Did you mean 'kafka.idle_ms_max'?" in line


@pytest.mark.row("S-05")
@pytest.mark.parametrize("level", ["5x", "s", "-1s"])
def test_a_bad_delay_level_fails_the_start_by_name(tmp_path: Path, level: str) -> None:
    status, line = refused(tmp_path, "--set", f"remoting.delay_levels=1s {level}")
    assert status == 2
    assert "remoting" in line and f"delay level '{level}'" in line


def test_connections_leave_descriptors_for_the_servers_own_files(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=["max.connections=1000000"]) as server:
        (limit,) = re.findall(r"open file limit max=(\d+) configured=1\d{6}\b", server.log)
        assert 0 < int(limit) < 1_000_000


def stuck_client(server: RunningServer) -> socket.socket:
    """A client whose answers do not fit any buffer, because it reads none of them."""
    client = ClientConnection(client_id="stuck")
    for _ in range(1000):
        client.send(ApiKey.API_VERSIONS, 0, [])
    requests = b"".join(client.data_to_send())
    stuck = socket.socket()
    # A small window, or the system's buffers would take some hundred thousand answers.
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.settimeout(0.5)
    stuck.connect(server.address("kafka"))
    with contextlib.suppress(TimeoutError):
        while True:
            stuck.sendall(requests)
    return stuck


def test_a_client_that_does_not_read_is_cut_off_when_the_stop_takes_too_long(
    tmp_path: Path,
) -> None:
    settings = ["server.drain_ms_max=50", "kafka.unread_bytes_max=1KiB"]
    with RunningServer(tmp_path, settings=settings) as server, stuck_client(server):
        assert server.stop() == 0
        assert "closing connections that did not drain in time count=1" in server.log


def test_a_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    settings = ["server.drain_ms_max=10m", "kafka.unread_bytes_max=1KiB"]
    with RunningServer(tmp_path, settings=settings) as server, stuck_client(server):
        server.signal(signal.SIGINT)
        wait_until(lambda: "stopping signal=SIGINT" in server.log, "it stops")
        assert server.stop(signal.SIGINT) == 130
        server.restart()
        assert server.stop() == 0


def test_settings_come_from_the_environment_too(tmp_path: Path) -> None:
    variables = {"ROCKGATE_KAFKA_LISTEN": "off"}
    server = RunningServer(tmp_path, variables=variables, flags=["--http", "127.0.0.1:0"])
    server._bound.pop("kafka")
    with server:
        assert "kafka=off" in server.ready_line


def test_connections_of_all_listeners_fit_the_open_files_of_the_system() -> None:
    config = gather().config
    assert fitted(config, 1_000_000) is config
    assert fitted(config, resource.RLIM_INFINITY) is config
    small = fitted(config, 1_024)
    counts = [
        section.connections_max
        for section in (small.kafka, small.remoting, small.remoting, small.http)
    ]
    assert sum(counts) <= 1_024 - OWN_FILES and min(counts) >= 1
    assert small.kafka.connections_max == small.remoting.connections_max > 100


def test_connections_in_a_handshake_have_their_descriptors_too() -> None:
    config = gather().config
    secured = replace(config, kafka=replace(config.kafka, security_protocol="SSL"))
    plain = fitted(config, 2_048).kafka.connections_max
    assert fitted(secured, 2_048).kafka.connections_max < plain - 100


def test_a_listener_that_wants_few_connections_has_them_whatever_others_want() -> None:
    config = gather().config
    modest = replace(config, kafka=replace(config.kafka, connections_max=5))
    assert fitted(modest, 1_024).kafka.connections_max == 5
