"""franz-go's own tests of its client (kgo), out of the module that go.sum pins, against the server.

They are built from the module's sources and run once, all of them, with the broker that KGO_SEEDS
names. `own-suite.txt` has those that must pass and only grows; EXCLUDED has those that leave
themselves out, each with the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from behaviours import own_suite
from behaviours.bringing import CannotRun, entry, find, leave_out, pinned, run
from behaviours.features import SUITE
from bench.peers import KafkaPeer
from bench.peers.cached_directory import cached_directory
from tests.gateway.server import RunningServer

HERE = Path(__file__).resolve().parent
CLIENT = "franz-go " + pinned(HERE / "go.mod", r"twmb/franz-go v(\S+)")
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
SECONDS_MAX = 600
RECORDS = 20_000
"""Records of each of its tests of groups and transactions; half a million by default."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}

AUTHENTICATION = "it needs a listener with SCRAM, by variables of its own"
SHARE_GROUPS = "it needs ShareFetch v2 and ShareAcknowledge v2"
EXCLUDED = {
    "TestIssueProduceBrokerTooOldFailsRecords": "it is for brokers before Produce v3",
    "TestSCRAMAuth": AUTHENTICATION,
    "TestSCRAMAuthBadCredentials": AUTHENTICATION,
    "TestConsumeRegexShareSkipsInternal": SHARE_GROUPS,
    "TestShareGroup": SHARE_GROUPS,
    "TestShareGroupAckOnClose": SHARE_GROUPS,
    "TestShareGroupETL": SHARE_GROUPS,
    "TestShareGroupOffsetsAdmin": SHARE_GROUPS,
}
MUST_PASS = (HERE / "own-suite.txt").read_text(encoding="utf-8").split()
STATES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_OUTCOME = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+) ", re.MULTILINE)

pytestmark = pytest.mark.long


def built() -> tuple[Path, Path]:
    """The program of the package's tests, and the folder of its sources, which some read."""
    go = find("go", "install Go 1.26 or newer")
    sources_at = run([go, "list", "-f", "{{.Dir}}", PACKAGE], HERE, {"GOTOOLCHAIN": "local"})

    def fill(aside: Path) -> None:
        command = [go, "test", "-c", "-o", str(aside / "kgo.test"), PACKAGE]
        run(command, HERE, {"GOTOOLCHAIN": "local"})

    sources = [HERE / "go.mod", HERE / "go.sum"]
    made = cached_directory(entry("franz-go-suite", sources), fill)
    return made / "kgo.test", Path(sources_at.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if os.environ.get("ROCKGATE_COMPAT_PEER") == "kafka":
        with KafkaPeer(settings=SETTINGS) as peer:
            yield peer.bootstrap
        return
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with RunningServer(tmp_path_factory.mktemp("suite"), settings=settings) as server:
        yield server.bootstrap
        server.stop_cleanly()


@pytest.fixture(scope="module")
def outcomes(bootstrap: str) -> Mapping[str, str]:
    """How each test did."""
    try:
        program, folder = built()
    except CannotRun as reason:
        leave_out(reason)
    said = {"KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS)}
    done = subprocess.run(
        [str(program), "-test.v", "-test.parallel=4", f"-test.timeout={SECONDS_MAX}s"],
        cwd=folder,
        env={**os.environ, **said},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS_MAX + 60,
    )
    output = done.stdout.decode("utf-8", "replace")
    found = {name: outcome for outcome, name in _OUTCOME.findall(output)}
    own_suite.record(CLIENT, {name: STATES[outcome] for name, outcome in found.items()})
    return found


@pytest.mark.timeout(SECONDS_MAX + 120)
def test_every_test_of_the_suite_is_listed_once(outcomes: Mapping[str, str]) -> None:
    assert set(outcomes) == {*MUST_PASS, *EXCLUDED}
    assert len(MUST_PASS) == len(set(MUST_PASS) - EXCLUDED.keys())


@pytest.mark.feature("client tests (kgo)", SUITE)
@pytest.mark.parametrize("name", MUST_PASS)
def test_a_test_of_its_own_passes(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] == "PASS"


@pytest.mark.feature("client tests (kgo)", SUITE)
@pytest.mark.parametrize("name", EXCLUDED)
def test_an_excluded_test_does_not_fail(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] != "FAIL"
    if outcomes[name] == "SKIP":
        pytest.skip(EXCLUDED[name])
