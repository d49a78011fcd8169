from pathlib import Path

import pytest
from bench.peers import rocketmq
from bench.peers.answers import CLUSTER_INFO, ask_remoting
from bench.peers.rocketmq import RocketMQPeer
from tests.bench.peers.brought import brought


def test_name_server_and_broker_keep_to_loopback_and_their_directory(tmp_path: Path) -> None:
    namesrv = rocketmq.namesrv_settings(tmp_path, 19876)
    broker = rocketmq.broker_settings(tmp_path, 20911, 19876, {})
    assert namesrv["bindAddress"] == broker["bindAddress"] == "127.0.0.1"
    assert namesrv["listenPort"] == "19876"
    assert broker["namesrvAddr"] == "127.0.0.1:19876"
    assert (broker["listenPort"], broker["haListenPort"]) == ("20911", "20912")
    assert broker["storePathRootDir"] == str(tmp_path / "data")


def test_a_setting_of_the_caller_wins(tmp_path: Path) -> None:
    found = rocketmq.broker_settings(tmp_path, 1, 2, {"flushDiskType": "SYNC_FLUSH"})
    assert found["flushDiskType"] == "SYNC_FLUSH"


@pytest.mark.java
@pytest.mark.long
def test_a_real_rocketmq_starts_answers_and_stops(tmp_path: Path) -> None:
    with brought("rocketmq"), RocketMQPeer(tmp_path / "rocketmq") as peer:
        cluster = ask_remoting(peer.namesrv, CLUSTER_INFO)
        assert cluster is not None
        assert b"broker-a" in cluster
    assert peer.broker_daemon.pid is None
    assert peer.namesrv_daemon.pid is None
