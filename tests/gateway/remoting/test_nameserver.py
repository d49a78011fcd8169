"""The name server over the wire, and its table of routes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.protocol.remoting.golden import requests
from tests.waiting import wait_until

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.processors import NameServerRequests
from rockgate.gateway.remoting.nameserver.processors import table as nameserver_table
from rockgate.gateway.remoting.nameserver.routes import Live, Routes
from rockgate.gateway.remoting.server.caller import Peer
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.topics.registration import EVERY_SECONDS
from rockgate.protocol.remoting.bodies.nameserver import QueueData, RegisterBody
from rockgate.protocol.remoting.bodies.registration import (
    decode_registration,
    encode_registration,
)
from rockgate.protocol.remoting.bodies.topics import TopicConfig, TopicConfigTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command, decode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.system_topics import AUTO_CREATE_TOPIC
from rockgate.store.clock import ManualClock


class Somebody:
    """A connection that is never written to."""

    peer: Peer
    is_open = True


def somebody() -> "Somebody":
    return Somebody()


def table(*topics: str) -> TopicConfigTable:
    return TopicConfigTable(
        topic_config_table={name: TopicConfig(topic_name=name, perm=6) for name in topics}
    )


def live(address: str = "10.0.0.1:10911", *, broker_id: int = 0, name: str = "broker-a") -> Live:
    return Live(
        name=name,
        cluster="cluster",
        address=address,
        broker_id=broker_id,
        caller=somebody(),  # type: ignore[arg-type]
        seen_ms=0,
        expiry_ms=0,
        ha_address="10.0.0.1:10912",
    )


CALLER = somebody()


def route(routes: Routes, topic: str) -> list[dict[int, str]]:
    found = routes.route(topic, CALLER)  # type: ignore[arg-type]
    return [] if found is None else [data.broker_addrs for data in found.broker_datas]


# The table


@pytest.mark.row("N-05")
def test_a_silent_broker_loses_its_routes_after_two_minutes() -> None:
    routes = Routes(None, expiry_ms=120_000)
    routes.register(live(), table("orders"), now_ms=1_000)
    assert routes.expire(121_000) == []
    assert route(routes, "orders") == [{0: "10.0.0.1:10911"}]
    assert routes.expire(121_001) == ["10.0.0.1:10911"]
    assert route(routes, "orders") == []
    assert routes.topics() == []


def test_a_broker_that_registers_again_stays() -> None:
    routes = Routes(None, expiry_ms=120_000)
    for now_ms in (0, 60_000, 120_000):
        routes.register(live(), table("orders"), now_ms)
    assert routes.expire(200_000) == []


def test_a_lost_connection_takes_its_broker_along() -> None:
    routes = Routes(None, expiry_ms=120_000)
    broker = live()
    routes.register(broker, table("orders"), 0)
    routes.lost(broker.caller)
    assert route(routes, "orders") == []


def test_a_slave_is_told_its_master_and_joins_the_route() -> None:
    routes = Routes(None, expiry_ms=120_000)
    assert routes.register(live(), table("orders"), 0) == ("", "")
    slave = live("10.0.0.2:10911", broker_id=1)
    assert routes.register(slave, table("ignored"), 0) == ("10.0.0.1:10911", "10.0.0.1:10912")
    assert route(routes, "orders") == [{0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}]
    routes.unregister("cluster", "10.0.0.1:10911")
    assert route(routes, "orders") == [{1: "10.0.0.2:10911"}]


def test_two_brokers_share_a_topic_and_one_may_be_wiped() -> None:
    routes = Routes(None, expiry_ms=120_000)
    routes.register(live(), table("orders", "paid"), 0)
    routes.register(live("10.0.0.9:10911", name="broker-b"), table("orders"), 0)
    assert len(route(routes, "orders")) == 2
    assert routes.set_write("broker-a", is_wiped=True) == 2
    found = routes.route("orders", CALLER)  # type: ignore[arg-type]
    assert found is not None
    assert {each.broker_name: each.perm for each in found.queue_datas} == {
        "broker-a": 4,
        "broker-b": 6,
    }
    assert routes.set_write("broker-a", is_wiped=False) == 2
    routes.delete_topic("orders", None)
    assert route(routes, "orders") == []
    assert routes.topics_of("cluster") == ["paid"]


class Own:
    """Our own broker, with one topic."""

    broker_name = "rockgate"
    cluster_name = "DefaultCluster"

    def address(self, caller: object) -> str:
        return "127.0.0.1:10911"

    def topic(self, name: str) -> TopicConfig | None:
        return TopicConfig(topic_name=name, write_queue_nums=2) if name == "orders" else None

    def topic_names(self) -> list[str]:
        return ["orders"]

    def system_topic_names(self) -> list[str]:
        return []

    def wipe_write(self, is_wiped: bool) -> int:
        return 1


def writers(routes: Routes, topic: str) -> dict[str, int]:
    found = routes.route(topic, CALLER)  # type: ignore[arg-type]
    return {} if found is None else {q.broker_name: q.write_queue_nums for q in found.queue_datas}


@pytest.mark.parametrize("shares_topics", [False, True])
def test_a_topic_of_our_own_broker_is_shared_only_if_that_is_set(shares_topics: bool) -> None:
    routes = Routes(Own(), 1000, shares_topics=shares_topics)
    routes.register(live(), table("orders", "theirs"), 0)
    theirs = {"broker-a": 16} if shares_topics else {}
    assert writers(routes, "orders") == {"rockgate": 2, **theirs}
    assert writers(routes, "theirs") == {"broker-a": 16}, "what we do not have is theirs"
    queue = QueueData(broker_name="broker-a", perm=6, read_queue_nums=9, write_queue_nums=9)
    routes.register_topic("orders", [queue])
    assert writers(routes, "orders").keys() == {"rockgate", *theirs}


def test_no_one_takes_our_own_broker_s_name() -> None:
    routes = Routes(Own(), 1000)
    with pytest.raises(ValueError, match=r"Broker name rockgate is used by the built-in broker\."):
        routes.register(live(name="rockgate"), table("orders"), 0)
    assert writers(routes, "orders") == {"rockgate": 2}
    assert routes.topics() == ["orders"]


GUARDED = {
    100: {"namespace": "n", "key": "k", "value": "v"},
    102: {"namespace": "n", "key": "k"},
    103: {
        "brokerName": "evil",
        "brokerAddr": "10.0.0.66:10911",
        "clusterName": "DefaultCluster",
        "haServerAddr": "",
        "brokerId": "0",
    },
    104: {
        "brokerName": "evil",
        "brokerAddr": "10.0.0.66:10911",
        "clusterName": "DefaultCluster",
        "brokerId": "0",
    },
    205: {"brokerName": "rockgate"},
    216: {"topic": "orders"},
    217: {"topic": "orders"},
    327: {"brokerName": "rockgate"},
}


def from_host(host: str) -> Somebody:
    caller = somebody()
    local, remote = Address("10.0.0.1", 9876), Address(host, 50_000)
    caller.peer = Peer(connection_id=1, local=local, remote=remote)
    return caller


@pytest.mark.parametrize("code", GUARDED)
@pytest.mark.parametrize("is_accepted", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "10.0.0.66"])
def test_what_changes_others_routes_or_values_comes_from_this_machine_unless_it_is_set(
    code: int, is_accepted: bool, host: str, tmp_path: Path
) -> None:
    async def ask() -> Command:
        answers = nameserver_table(
            NameServerRequests(
                routes=Routes(Own(), 1000),
                kv=KeyValues(tmp_path),
                clock=ManualClock(),
                accept_brokers=is_accepted,
                accept_values=is_accepted,
            )
        )
        command = Command(code, GUARDED[code])
        caller: Any = from_host(host)
        try:
            answer = answers[RequestCode(code)](command, caller)
            found = answer if isinstance(answer, Command) else await answer  # type: ignore[misc]
        except Refused as refused:
            return Command(refused.code, remark=refused.remark)
        assert isinstance(found, Command)
        return found

    answer = asyncio.run(ask())
    if is_accepted or host != "10.0.0.66":
        assert answer.code == 0, answer.remark
    else:
        assert answer.code == ResponseCode.NO_PERMISSION
        values = code in (100, 102, 318)
        setting = "namesrv.accept_values" if values else "namesrv.accept_brokers"
        assert f"accepted from this host only; set {setting} to true" in (answer.remark or "")


# Registrations


def test_a_compressed_registration_is_read_as_a_plain_one() -> None:
    body = RegisterBody(topic_config_serialize_wrapper=table("a", "b"))
    packed = encode_registration(body)
    assert decode_registration(packed, is_compressed=True) == body


@pytest.mark.parametrize("body", [b"", b"x", b"{}x", encode_registration(RegisterBody())[:-3]])
def test_a_registration_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="REGISTER_BROKER"):
        decode_registration(body, is_compressed=True)


def test_a_recorded_registration_has_the_checksum_it_says() -> None:
    for golden in requests(103):
        command = decode(golden.inner)
        checksum = int(command.fields["bodyCrc32"])
        found = decode_registration(command.body, is_compressed=False, checksum=checksum)
        assert found.topic_config_serialize_wrapper.topic_config_table
        with pytest.raises(MalformedRequest, match="checksum"):
            decode_registration(command.body, is_compressed=False, checksum=checksum + 1)


# Over the wire


def body(answer: Command) -> dict[str, object]:
    assert answer.code == 0, answer.remark
    found = json.loads(bytes(answer.body))
    assert isinstance(found, dict)
    return found


def test_our_own_broker_needs_no_registration(namesrv: Client, server: RunningServer) -> None:
    found = body(namesrv.ask(105, {"topic": "TBW102"}))
    host, port = server.address("remoting")
    assert found["brokerDatas"] == [
        {
            "brokerAddrs": {"0": f"{host}:{port}"},
            "brokerName": "rockgate",
            "cluster": "DefaultCluster",
            "enableActingMaster": False,
        }
    ]
    assert body(namesrv.ask(106))["clusterAddrTable"] == {"DefaultCluster": ["rockgate"]}


def test_a_real_broker_s_registration_makes_routes_until_it_is_gone(
    namesrv: Client, connect: Callable[..., Client]
) -> None:
    golden = requests(103)[0]
    broker = connect("namesrv")
    broker.connection.pending[decode(golden.inner).opaque] = 103
    broker.socket.sendall(golden.frame)
    assert broker.answer(decode(golden.inner).opaque).code == 0
    found = body(namesrv.ask(105, {"topic": "rs_sktt0_sync_send_auto"}))
    assert found["queueDatas"] == [
        {
            "brokerName": "broker-a",
            "perm": 6,
            "readQueueNums": 4,
            "topicSysFlag": 0,
            "writeQueueNums": 4,
        }
    ]
    names = body(namesrv.ask(206))["topicList"]
    assert isinstance(names, list) and "rs_sktt0_sync_send_auto" in names
    broker.socket.close()
    asked = {"topic": "rs_sktt0_sync_send_auto"}
    wait_until(lambda: namesrv.ask(105, asked).code == 17, "the route is gone with its broker")


def test_keys_and_values_are_kept(namesrv: Client) -> None:
    space = {"namespace": "ORDER", "key": "topic"}
    assert namesrv.ask(101, space).code == ResponseCode.QUERY_NOT_FOUND
    assert namesrv.ask(100, {**space, "value": "broker-a:4"}).code == 0
    assert namesrv.ask(101, space).fields == {"value": "broker-a:4"}
    assert body(namesrv.ask(219, {"namespace": "ORDER"})) == {"table": {"topic": "broker-a:4"}}
    assert namesrv.ask(102, space).code == 0
    assert namesrv.ask(101, space).code == ResponseCode.QUERY_NOT_FOUND


def test_a_wiped_broker_is_shown_without_writing(namesrv: Client, broker: Client) -> None:
    broker.publish("wiped")
    asked = {"brokerName": "rockgate"}
    assert int(namesrv.ask(205, asked).fields["wipeTopicCount"]) > 10
    queues = body(namesrv.ask(105, {"topic": "wiped"}))["queueDatas"]
    assert isinstance(queues, list) and queues[0]["perm"] == 4
    assert int(namesrv.ask(327, asked).fields["addTopicCount"]) > 10
    queues = body(namesrv.ask(105, {"topic": "wiped"}))["queueDatas"]
    assert isinstance(queues, list) and queues[0]["perm"] == 6


def test_lists_of_topics(namesrv: Client, broker: Client) -> None:
    broker.publish("listed")
    by_cluster = body(namesrv.ask(224, {"cluster": "DefaultCluster"}))["topicList"]
    assert isinstance(by_cluster, list) and {"listed", "TBW102"} <= set(by_cluster)
    system = body(namesrv.ask(304))["topicList"]
    assert isinstance(system, list) and {"rockgate", "DefaultCluster"} <= set(system)
    assert body(namesrv.ask(311)) == {"topicList": []}
    assert namesrv.ask(12345).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_a_data_version_that_is_not_known_is_changed(namesrv: Client) -> None:
    asked = {"brokerName": "x", "brokerAddr": "y:1", "clusterName": "c", "brokerId": 0}
    answer = namesrv.ask(322, asked, b'{"counter":1,"timestamp":1}')
    assert answer.fields == {"changed": "true"}


# Another name server


@pytest.mark.row("N-01")
def test_a_broker_registers_with_a_name_server_elsewhere(tmp_path: Path) -> None:
    import subprocess

    from tests.gateway.server import command, environment

    with subprocess.Popen(
        command("namesrv", "--namesrv", "127.0.0.1:0", "--data-dir", str(tmp_path / "alone")),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as alone:
        assert alone.stdout is not None
        address = alone.stdout.readline().strip().removeprefix("ready namesrv=")
        host, _, port = address.rpartition(":")
        settings = [f"remoting.name_servers={address}", "remoting.broker_name=elsewhere"]
        with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
            asker, broker = Client((host, int(port))), Client(server.address("remoting"))
            asked = {"topic": "TBW102"}
            wait_until(lambda: asker.ask(105, asked).code == 0, "the broker is known")
            broker.publish("far-away")
            asked = {"topic": "far-away"}
            # Half a minute later it would be sent in any case.
            wait_until(lambda: asker.ask(105, asked).code == 0, "a new topic is known at once", 20)
            found = body(asker.ask(106))["brokerAddrTable"]
            assert isinstance(found, dict) and list(found) == ["elsewhere"]
            own = Client(server.address("namesrv"))
            assert own.ask(105, asked).code == 0, "each name server answers everything"
            own.socket.close()
            broker.socket.close()
            assert server.stop() == 0
        wait_until(lambda: asker.ask(105, asked).code == 17, "it is gone when it stops")
        asker.socket.close()
        alone.terminate()
        assert alone.wait(60) == 0


@pytest.mark.row("U-18")
def test_a_broker_registers_every_half_minute_and_new_topics_are_made_after_tbw102() -> None:
    assert EVERY_SECONDS == 30
    assert AUTO_CREATE_TOPIC == "TBW102"


@pytest.mark.row("N-01")
def test_a_name_server_that_is_lost_is_not_noticed(tmp_path: Path) -> None:
    settings = ["remoting.name_servers=127.0.0.1:1"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        broker, own = Client(server.address("remoting")), Client(server.address("namesrv"))
        assert broker.publish("unnoticed").code == 0
        assert own.ask(105, {"topic": "unnoticed"}).code == 0
        for each in (broker, own):
            each.socket.close()
        server.stop_cleanly()


@pytest.mark.row("Q-02")
def test_name_servers_are_added_and_taken_away_while_a_broker_runs(tmp_path: Path) -> None:
    for folder in ("broker", "names"):
        (tmp_path / folder).mkdir()
    with (
        RunningServer(tmp_path / "broker", rocketmq=True) as server,
        RunningServer(
            tmp_path / "names", settings=["remoting.broker_name=other"], rocketmq=True
        ) as other,
    ):
        broker, added = Client(server.address("remoting")), Client(other.address("namesrv"))
        assert broker.publish("spread").code == 0

        def is_known(topic: str = "spread") -> bool:
            return added.ask(105, {"topic": topic}).code == 0

        assert not is_known()
        address = "{}:{}".format(*other.address("namesrv")).encode()
        assert broker.ask(25, {}, b"namesrvAddr=" + address).code == 0
        wait_until(is_known, "the added one knows what was there")
        assert broker.publish("spread-later").code == 0
        wait_until(lambda: is_known("spread-later"), "and what comes later")
        broker.socket.close()
        server.kill()
        wait_until(lambda: not is_known(), "the broker is gone")
        server.restart()
        wait_until(is_known, "it registers there again")
        broker = Client(server.address("remoting"))
        assert b"namesrvAddr=" + address in bytes(broker.ask(26).body)
        assert broker.ask(25, {}, b"namesrvAddr=\n").code == 0
        wait_until(lambda: not is_known(), "it has unregistered")
        assert broker.publish("spread").code == 0
        for each in (broker, added):
            each.socket.close()
        server.stop_cleanly()


def test_a_topic_is_registered_at_the_brokers_that_are_known() -> None:
    routes = Routes(None, 1000)
    routes.register(live(), table("first"), 0)
    queues = [
        QueueData(broker_name=name, perm=6, read_queue_nums=3, write_queue_nums=2)
        for name in ("broker-a", "nobody")
    ]
    routes.register_topic("second", queues)
    found = routes.route("second", CALLER)  # type: ignore[arg-type]
    assert found is not None
    assert [(each.broker_name, each.write_queue_nums) for each in found.queue_datas] == [
        ("broker-a", 2)
    ]
    routes.register_topic("third", queues[1:])
    assert routes.topics() == ["first", "second"]


def test_a_topic_without_a_known_broker_is_taken_without_an_error(namesrv: Client) -> None:
    body = b'{"brokerDatas":[],"queueDatas":[{"brokerName":"x","perm":6,"readQueueNums":1,'
    body += b'"writeQueueNums":1,"topicSysFlag":0}]}'
    assert namesrv.ask(217, {"topic": "elsewhere"}, body).code == 0
    assert namesrv.ask(217, {"topic": "elsewhere"}, b"{").code == ResponseCode.INVALID_PARAMETER
    assert namesrv.ask(105, {"topic": "elsewhere"}).code == ResponseCode.TOPIC_NOT_EXIST


def test_settings_without_an_effect_are_reported_and_not_changed(namesrv: Client) -> None:
    told = bytes(namesrv.ask(319).body)
    assert namesrv.ask(318, {}, told).code == 0
    answer = namesrv.ask(318, {}, b"serverWorkerThreads=9\n")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "serverWorkerThreads cannot be changed at run time" in (answer.remark or "")
