from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer


def test_the_cluster_is_described(terminal: Terminal, server: RunningServer) -> None:
    told = terminal.json("cluster", "describe")
    host, port = server.address("kafka")
    assert told["brokers"] == [
        {"node_id": 1, "host": host, "port": port, "rack": None, "is_controller": True}
    ]
    assert f"cluster      {told['cluster_id']}\n" in terminal.run("cluster", "describe")


def test_apis_are_listed_with_what_is_served(terminal: Terminal) -> None:
    rows = {row["name"]: row for row in terminal.json("cluster", "apis")["apis"]}
    assert rows["Fetch"] == {"key": 1, "name": "Fetch", "min_version": 4, "max_version": 18}
    assert rows["PushTelemetry"]["max_version"] is None
    lines = [line.split() for line in terminal.run("cluster", "apis").splitlines()]
    assert ["1", "Fetch", "4-18"] in lines
    assert ["72", "PushTelemetry", "not", "supported"] in lines
