"""Every request by every kind of user, to the server and to Apache RocketMQ 5.5.0: who is refused.

The broker's answers are recorded in tests/golden, and tests/gateway/remoting/authorization compares
them with the tables; here both are asked, over the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.rocketmq_brokers import apache_broker
from behaviours.secured_brokers import secured_rockgate
from bench.peers import jars, rocketmq
from capture.record_access import GOLDEN, SETTINGS, recorded
from tests.gateway.remoting.authorization.samples import ADMIN, CASES, SECRET
from tests.gateway.remoting.authorization.test_matrix import ANYONE, OPEN_THERE, is_refused

CLIENT = f"apache-rocketmq {jars.version(rocketmq.NAME)}"
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]
Refusals = dict[str, list[str]]


def refusals(answers: dict[str, dict[str, dict[str, object]]]) -> Refusals:
    """The cases of each request that are refused."""
    return {
        code: sorted(case for case, answer in cases.items() if is_refused(answer))
        for code, cases in answers.items()
    }


@pytest.fixture(scope="module")
def known() -> Refusals:
    """What the broker refused when it was recorded."""
    return refusals(json.loads(GOLDEN.read_text())["answers"])


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusals]:
    folder: Path = tmp_path_factory.mktemp("apache")
    settings = {**SETTINGS, "authConfigPath": str(folder / "auth")}
    with apache_broker(rocketmq.NAME, **settings) as broker:
        yield refusals(recorded(broker.address)["answers"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusals]:
    folder = tmp_path_factory.mktemp("server")
    with secured_rockgate(folder, admin=ADMIN, secret=SECRET) as broker:
        yield refusals(recorded(broker.address)["answers"])


def test_the_broker_refuses_what_it_did_when_it_was_recorded(
    apache: Refusals, known: Refusals
) -> None:
    assert apache == known


def test_the_server_refuses_the_same_and_what_the_broker_leaves_open(
    ours: Refusals, known: Refusals
) -> None:
    everyone_else = sorted(case for case in CASES if case != "grant")
    expected = {
        code: everyone_else if code in OPEN_THERE and code not in ANYONE else refused
        for code, refused in known.items()
    }
    assert ours == expected
