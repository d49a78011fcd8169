from pathlib import Path

import pytest
from bench.peers.answers import answers_api_versions
from bench.peers.errors import NotReady
from bench.peers.rockgate import RockgateServer


def test_our_server_runs_as_a_peer_does_and_tells_its_fsyncs_when_it_stops(tmp_path: Path) -> None:
    small = "store.segment_bytes=16777216"
    with RockgateServer(tmp_path / "server", settings=[small]) as server:
        assert answers_api_versions(server.address)
        assert server.ready_seconds > 0
        with pytest.raises(NotReady, match="did not say how often"):
            server.fsync_count()
        server.stop()
        assert server.fsync_count() > 0
        server.start()
        assert answers_api_versions(server.address)


def test_a_profiled_server_leaves_its_profile(tmp_path: Path) -> None:
    small = "store.segment_bytes=16777216"
    out = tmp_path / "profile"
    with RockgateServer(tmp_path / "server", settings=[small], profile=out):
        pass
    assert out.stat().st_size > 0
