"""`rockgate namesrv`: where it listens, where its settings come from, what its exit status says."""

import signal
import socket
import subprocess
from pathlib import Path

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import command, environment

from rockgate.gateway.compose.config import gather
from rockgate.gateway.net.address import Address
from rockgate.protocol.remoting.codes import ResponseCode


def refused(*arguments: str) -> tuple[int, str]:
    """The exit status and the errors of a name server that does not start."""
    done = subprocess.run(
        command("namesrv", *arguments),
        env={**environment(), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.row("N-02")
def test_it_listens_on_port_9876_unless_told_otherwise() -> None:
    assert gather().config.namesrv.listen == Address("127.0.0.1", 9876)


@pytest.mark.row("N-02")
def test_its_settings_come_from_a_file_and_a_stop_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "name-server.toml"
    file.write_text(f'[namesrv]\nlisten = "127.0.0.1:0"\n[server]\ndata_dir = "{tmp_path}/kept"\n')
    with subprocess.Popen(
        command("namesrv", "--config", str(file)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as alone:
        assert alone.stdout is not None
        host, _, port = alone.stdout.readline().removeprefix("ready namesrv=").rpartition(":")
        client = Client((host, int(port)))
        assert client.ask(105, {"topic": "nowhere"}).code == ResponseCode.TOPIC_NOT_EXIST
        assert client.ask(100, {"namespace": "n", "key": "k", "value": "v"}).code == 0
        client.socket.close()
        alone.send_signal(signal.SIGTERM)
        assert alone.wait(60) == 0
    assert (tmp_path / "kept" / "kvConfig.json").exists()


@pytest.mark.row("N-02")
def test_what_makes_no_sense_ends_with_2_and_what_cannot_start_with_1(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path))
    status, errors = refused(*data, "--no-such-flag")
    assert status == 2 and "--no-such-flag" in errors
    status, errors = refused(*data, "--config", str(tmp_path / "missing.toml"))
    assert status == 2 and "missing.toml" in errors
    file = tmp_path / "misspelt.toml"
    file.write_text('[namesrv]\nlissten = "127.0.0.1:0"\n')
    status, errors = refused(*data, "--config", str(file))
    assert status == 2 and "lissten" in errors
    status, errors = refused(*data, "--namesrv", "off")
    assert status == 1 and "requires a listener" in errors
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, errors = refused(*data, "--namesrv", address)
    assert status == 1 and address in errors
