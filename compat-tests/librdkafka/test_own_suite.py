"""librdkafka's own tests in C and C++, out of its vendor's npm package, against the server.

They are built from the sources in the package. Each test that needs a broker is run in a process
of its own, so that one that aborts takes no other with it. `own-suite.txt` has those that must pass
and only grows; `excluded.txt` has those that cannot, each with its reason; `unsettled.txt` those
whose deadlines were missed on a busy machine: they may do either, and belong on one of the others.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import pytest
from behaviours import own_suite
from behaviours.bringing import CannotRun, leave_out
from behaviours.features import SUITE
from behaviours.librdkafka import VERSION, built, run_test
from bench.peers import KafkaPeer, PeerError
from bench.peers.kafka import tool_command
from tests.gateway.server import RunningServer

HERE = Path(__file__).resolve().parent
CLIENT = f"librdkafka {VERSION}"
AT_ONCE = 3
SUITE_SECONDS_MAX = 3_000
STATES = {"PASSED": "passed", "SKIPPED": "skipped"}
SCENARIOS = {"default": "true", "noautocreate": "false"}
"""The suite's scenarios, and whether topics are created by asking for them."""
SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # Some tests take something from all users, so that there has to be an authorizer.
    "allow.everyone.if.no.acl.found": "true",
}
OURS = {"security.authorization": "on"}
KAFKA_S = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
"""What the suite runs out of Kafka's distribution."""
_TEST = re.compile(r"\s*(\w+),\s*([\w| ]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test of the suite that needs a broker."""

    __test__ = False
    name: str
    scenario: str


def names(file: str) -> dict[str, str]:
    """The names in a list, each with what stands behind it."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" ") for line in lines if line]
    found = {name: reason.strip() for name, _, reason in pairs}
    assert len(found) == len(pairs), f"{file} has a name twice"
    return found


MUST_PASS = names("own-suite.txt")
EXCLUDED = names("excluded.txt")
UNSETTLED = names("unsettled.txt")
WHOLE = tuple((HERE / "whole.txt").read_text(encoding="utf-8").split())
"""The suite's quick mode leaves out all or most of these. The others are run in it."""

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(SUITE_SECONDS_MAX)]


def declared(folder: Path) -> list[Test]:
    """The tests that need a broker and no hand."""
    text = (folder / "test.c").read_text(encoding="utf-8")
    found = []
    for each in text[text.index("struct test tests[]") :].split(" _TEST(")[1:]:
        match = _TEST.match(each)
        assert match is not None, each
        name, flags = match.groups()
        if "LOCAL" in flags or "MANUAL" in flags:
            continue
        is_apart = 'scenario = "noautocreate"' in each
        found.append(Test(name=name, scenario="noautocreate" if is_apart else "default"))
    return found


def outcome_of(test: Test, folder: Path, bootstrap: str, aside: Path) -> str:
    """Run one test; return its state, or how its process ended."""
    return run_test(
        test.name,
        folder,
        aside,
        settings={"bootstrap.servers": bootstrap, "security.protocol": "plaintext"},
        variables={"KAFKA_PATH": aside, "BROKERS": bootstrap},
        scenario=test.scenario,
        is_quick=not test.name.startswith(WHOLE),
    )


def write_tools(aside: Path) -> None:
    """Put Kafka's tools where the suite looks for them."""
    (aside / "bin").mkdir()
    for name, tool in TOOLS.items():
        try:
            command = shlex.join(tool_command([tool]))
        except PeerError as error:
            leave_out(CannotRun(str(error)))
            raise
        script = aside / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)


@pytest.fixture(scope="module")
def tests_of_suite() -> tuple[Path, list[Test]]:
    try:
        folder = built()
    except CannotRun as reason:
        leave_out(reason)
        raise
    return folder, declared(folder)


@pytest.fixture(scope="module")
def outcomes(
    tests_of_suite: tuple[Path, list[Test]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """How each test did; what they printed is in the folder of the run."""
    folder, tests = tests_of_suite
    found: dict[str, str] = {}
    for scenario, creates in SCENARIOS.items():
        settings = {**SETTINGS, "auto.create.topics.enable": creates}
        aside = tmp_path_factory.mktemp(scenario)
        write_tools(aside)
        chosen = [test for test in tests if test.scenario == scenario]
        with serving(settings, tmp_path_factory) as bootstrap, ThreadPoolExecutor(AT_ONCE) as pool:
            states = pool.map(outcome_of, chosen, repeat(folder), repeat(bootstrap), repeat(aside))
            found.update(zip([test.name for test in chosen], states, strict=True))
    own_suite.record(CLIENT, {name: STATES.get(how, "failed") for name, how in found.items()})
    return found


@contextmanager
def serving(settings: dict[str, str], directories: pytest.TempPathFactory) -> Iterator[str]:
    """A server for one scenario."""
    if os.environ.get("ROCKGATE_COMPAT_PEER") == "kafka":
        with KafkaPeer(settings={**settings, **KAFKA_S}) as peer:
            yield peer.bootstrap
        return
    pairs = [f"{name}={value}" for name, value in {**settings, **OURS}.items()]
    with RunningServer(directories.mktemp("suite"), settings=pairs) as server:
        yield server.bootstrap
        server.stop_cleanly()


def test_every_test_of_the_suite_is_listed_once(outcomes: dict[str, str]) -> None:
    listed = [*MUST_PASS, *EXCLUDED, *UNSETTLED]
    assert sorted(outcomes) == sorted(listed)


@pytest.mark.feature("tests with a broker", SUITE)
@pytest.mark.parametrize("name", MUST_PASS)
def test_a_test_of_its_own_passes(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "PASSED"


@pytest.mark.feature("tests with a broker", SUITE)
@pytest.mark.parametrize("name", EXCLUDED)
def test_an_excluded_test_would_not_pass(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] != "PASSED", "take it off the list"
    pytest.skip(EXCLUDED[name])


@pytest.mark.feature("tests with a broker", SUITE)
@pytest.mark.parametrize("name", UNSETTLED)
def test_an_unsettled_test_ends(outcomes: dict[str, str], name: str) -> None:
    if outcomes[name] != "PASSED":
        pytest.skip(f"{UNSETTLED[name]}; this time: {outcomes[name]}")
