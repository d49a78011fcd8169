"""Tests use public interfaces; uses of private attributes are counted here."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.checkout import parse, python_files

MEMORY = "counts what is remembered: a bound, or that nothing is left, of which nobody is told"
FAULT = "puts in a fault, a delay or a substitute where nothing else takes one"
COUNTER = "sets a counter near its end, where no test could count to"
INNER = "compares a part that is only ever called by its module with a slower one"
FORMAT = "compares a table of the docs with the layout that the code has"
OTHERS = "another project's class, which has no public word for it"

# File -> how often it may, and why. Less is better: lower the number with the last use.
MAY_REACH: dict[str, tuple[int, str]] = {
    "tests/cli/client/consume/test_fetcher.py": (2, FAULT),
    "tests/cli/client/kafka/test_broker.py": (1, FAULT),
    "tests/gateway/compose/test_app.py": (1, FAULT),
    "tests/gateway/http/test_head.py": (1, MEMORY),
    "tests/gateway/kafka/embedded/test_catalog.py": (1, MEMORY),
    "tests/gateway/kafka/handlers/test_produce.py": (2, MEMORY),
    "tests/gateway/kafka/quotas/test_rates.py": (1, MEMORY),
    "tests/gateway/kafka/quotas/test_throttling.py": (4, MEMORY),
    "tests/gateway/kafka/request/test_chunked.py": (1, MEMORY),
    "tests/gateway/kafka/server/test_session.py": (4, FAULT),
    "tests/gateway/kafka/test_administering.py": (1, OTHERS),
    "tests/gateway/kafka/test_large_requests.py": (3, FAULT),
    "tests/gateway/kafka/test_serving.py": (2, OTHERS),
    "tests/gateway/kafka/topics/test_metadata_cache.py": (1, MEMORY),
    "tests/gateway/kafka/topics/test_partition_runs.py": (1, MEMORY),
    "tests/gateway/kafka/transactions/test_clock.py": (1, MEMORY),
    "tests/gateway/kafka/transactions/test_listing.py": (1, FAULT),
    "tests/gateway/net/test_receive_buffer.py": (5, FAULT),
    "tests/gateway/transcode/test_compressed_bodies.py": (1, FAULT),
    "tests/gateway/rocketmq/members/test_mutants.py": (2, FAULT),
    "tests/gateway/remoting/nameserver/test_kv.py": (1, FAULT),
    "tests/gateway/remoting/server/test_session.py": (1, FAULT),
    "tests/gateway/remoting/test_replying.py": (4, MEMORY),
    "tests/gateway/storage/test_long_poll.py": (1, MEMORY),
    "tests/gateway/test_upkeep.py": (1, FAULT),
    "tests/gateway/transcode/test_alike.py": (1, FAULT),
    "tests/hostile/test_sdk.py": (2, FAULT),
    "tests/protocol/kafka/kafka_python.py": (1, OTHERS),
    "tests/protocol/kafka/schema/test_writing.py": (1, MEMORY),
    "tests/protocol/remoting/test_connection.py": (2, COUNTER),
    "tests/protocol/test_frames.py": (3, MEMORY),
    "tests/sdk/admin/test_old_brokers.py": (1, FAULT),
    "tests/sdk/consumer/test_balancing.py": (4, FAULT),
    "tests/sdk/consumer/test_broker_calls.py": (1, MEMORY),
    "tests/sdk/consumer/test_server_requests.py": (1, FAULT),
    "tests/sdk/consumer/test_upkeep.py": (3, FAULT),
    "tests/sdk/test_blocking.py": (2, FAULT),
    "tests/sdk/client/test_client.py": (2, MEMORY),
    "tests/sdk/test_server.py": (1, FAULT),
    "tests/sdk/client/test_shared_clients.py": (2, MEMORY),
    "tests/spark.py": (1, OTHERS),
    "tests/store/check/test_inspect.py": (1, FAULT),
    "tests/store/delay/test_delivery.py": (2, FAULT),
    "tests/store/delay/test_early_delivery.py": (2, FAULT),
    "tests/store/delay/test_wheel.py": (2, MEMORY),
    "tests/store/keymodel.py": (1, MEMORY),
    "tests/store/log/test_commitlog.py": (1, MEMORY),
    "tests/store/log/test_flusher.py": (2, FAULT),
    "tests/store/log/test_segments.py": (3, FAULT),
    "tests/store/queues/test_consumequeue.py": (7, FAULT),
    "tests/store/queues/test_queuetable.py": (2, MEMORY),
    "tests/store/upkeep/test_relocation.py": (2, FAULT),
}

TUPLE_METHODS = {"_replace", "_make", "_asdict", "_fields"}
OWN = {"self", "cls"}


def reached(tree: ast.Module) -> Iterator[str]:
    """Every use of another object's private attribute."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr in TUPLE_METHODS:
            continue
        if not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in OWN:
            continue
        if isinstance(owner, ast.Call) and ast.unparse(owner.func) in {"super", "type"}:
            continue
        yield ast.unparse(node)


def test_no_test_reaches_for_what_is_private() -> None:
    counts = {str(path): len(list(reached(parse(path)))) for path in python_files("tests")}
    allowed = {name: count for name, (count, _) in MAY_REACH.items()}
    more = {name: count for name, count in counts.items() if count > allowed.get(name, 0)}
    assert more == {}, "ask through what is public, or say here why that cannot be"
    less = {name: counts.get(name, 0) for name in allowed if counts.get(name, 0) < allowed[name]}
    assert less == {}, "fewer than are allowed: lower the number"


def test_one_that_did_would_be_found() -> None:
    text = "def f(a, self):\n    a.b._c = self._d\n    a._replace(x=super()._e)\n"
    assert list(reached(ast.parse(text))) == ["a.b._c"]
    assert all(Path(name).parts[0] == "tests" for name in MAY_REACH)
