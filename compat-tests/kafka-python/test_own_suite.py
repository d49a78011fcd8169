"""kafka-python's own integration tests, out of its source distribution, against the server.

They are run once, all of them, with the broker that KAFKA_URI names. `own-suite.txt` has those that
must pass and only grows; EXCLUDED has the others, each with its reason, and a test that is excluded
fails here once it would pass.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from behaviours import own_suite
from behaviours.bringing import CannotRun, cache_directory, leave_out, run
from behaviours.features import SUITE
from bench.peers import KafkaPeer
from bench.peers.cached_directory import cached_directory
from tests.gateway.server import ROOT, RunningServer

HERE = Path(__file__).resolve().parent
VERSION = version("kafka-python")
CLIENT = f"kafka-python {VERSION}"
SPEAKS_AS = "4.3.1"
SECONDS_MAX = 280

# What the suite's own broker is set to: node 0, short sessions, and no wait for more members.
SETTINGS = {
    "node.id": "0",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
# The source distribution leaves these out.
LEFT_OUT = {
    "test/__init__.py": "",
    "test/service.py": (
        "class ExternalService:\n"
        "    def __init__(self, host, port): self.host, self.port = host, port\n"
        "class SpawnedService:\n"
        "    def __init__(self, *_): raise RuntimeError('only the broker of KAFKA_URI is there')\n"
    ),
}

OTHER_BROKER = "the suite starts a broker of its own for it, by files that its package leaves out"
EXTERNAL = "the suite itself leaves it out where the broker is not its own"
EXCLUDED = {
    "test_consumer_integration.test_kafka_consumer_offsets_for_time_old": (
        "the suite runs it with brokers before 0.10.1 only"
    ),
    "test_ssl_integration.TestSSLConnection.test_ssl_handshake": OTHER_BROKER,
    "test_ssl_integration.TestSSLConnection.test_legacy_kafka_client_ssl": OTHER_BROKER,
    **{
        f"test_sasl_integration.{name}[{mechanism}]": EXTERNAL
        for name in ("test_admin", "test_produce_and_consume", "test_client")
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    },
}
MUST_PASS = (HERE / "own-suite.txt").read_text(encoding="utf-8").split()

pytestmark = pytest.mark.long


def brought() -> Path:
    """The unpacked source distribution, whose hash is the lock's."""
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    pin = lock[lock.index(f"kafka-python=={VERSION}") :].split("\n")
    lines = [pin[0]]
    while lines[-1].endswith("\\"):
        lines.append(pin[len(lines)])

    def fill(aside: Path) -> None:
        wanted = aside / "wanted.txt"
        wanted.write_text("\n".join(lines) + "\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        run([*pip, "--no-binary", ":all:", "--require-hashes", "-r", str(wanted)], aside)
        (archive,) = aside.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(aside, filter="data")
        (folder,) = aside.glob("*/test")
        for name, text in LEFT_OUT.items():
            (folder.parent / name).write_text(text, encoding="utf-8")
        # The tests are run with the installed package, as the other tests are.
        shutil.rmtree(folder.parent / "kafka")
        folder.parent.rename(aside / "suite")

    return cached_directory(cache_directory() / f"kafka-python-{VERSION}-suite", fill) / "suite"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if os.environ.get("ROCKGATE_COMPAT_PEER") == "kafka":
        with KafkaPeer(settings={**SETTINGS, "num.partitions": "4"}) as peer:
            yield peer.bootstrap
        return
    # Grants are there to be made, and its client may do everything.
    acls = {"security.authorization": "on", "security.super_users": "User:ANONYMOUS"}
    settings = [f"{name}={value}" for name, value in {**SETTINGS, **acls}.items()]
    with RunningServer(tmp_path_factory.mktemp("suite"), settings=settings) as server:
        yield server.bootstrap
        server.stop_cleanly()


@pytest.fixture(scope="module")
def outcomes(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """How each test of the suite did: passed, or what it said."""
    try:
        suite = brought()
    except CannotRun as reason:
        leave_out(reason)
    report = tmp_path_factory.mktemp("report") / "report.xml"
    kept_out = {"KAFKA_URI": f"kafka://{bootstrap}", "KAFKA_VERSION": SPEAKS_AS}
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60"),
            *(f"--junitxml={report}", "test/integration"),
        ],
        cwd=suite,
        # The suite looks for a Kafka to start even where it is to start none.
        env={**os.environ, **kept_out, "KAFKA_ROOT": str(suite), "PYTHONPATH": str(suite)},
        capture_output=True,
        timeout=SECONDS_MAX,
    )
    found, states = {}, {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('test.integration.')}.{case.get('name')}"
        said = [each.get("message") or each.tag for each in case]
        found[name] = said[0] if said else "passed"
        is_skipped = any(each.tag == "skipped" for each in case)
        states[name] = "skipped" if is_skipped else "failed" if said else "passed"
    own_suite.record(CLIENT, states)
    return found


def test_every_test_of_the_suite_is_listed_once(outcomes: Mapping[str, str]) -> None:
    assert set(outcomes) == {*MUST_PASS, *EXCLUDED}
    assert len(MUST_PASS) == len(set(MUST_PASS) - EXCLUDED.keys())


@pytest.mark.feature("integration suite", SUITE)
@pytest.mark.parametrize("name", MUST_PASS)
def test_a_test_of_its_own_passes(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] == "passed"


@pytest.mark.feature("integration suite", SUITE)
@pytest.mark.parametrize("name", EXCLUDED)
def test_an_excluded_test_would_not_pass(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] != "passed", "take it off the list"
    pytest.skip(EXCLUDED[name])
