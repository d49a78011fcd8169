"""franz-go's own tests of its client (kgo), out of the module that go.sum pins, against the server.

They are built from the module's sources and run twice, all of them: in clear, and over TLS. Both
times a listener beside that one takes logins by SCRAM. `own-suite.txt` has those that must pass and
only grows; EXCLUDED has those that leave themselves out, each with the reason.

With Apache Kafka in the server's place there are only the listener in clear, and no logins.
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
from tests.cli.secured import Secured

from rockgate.cli.commands.secure import folder

HERE = Path(__file__).resolve().parent
CLIENT = "franz-go " + pinned(HERE / "go.mod", r"twmb/franz-go v(\S+)")
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
SECONDS_MAX = 600
RECORDS = 20_000
"""Records of each of its tests of groups and transactions; half a million by default."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}

SHARE_GROUPS = "it needs ShareFetch v2 and ShareAcknowledge v2"
EXCLUDED = {
    "TestIssueProduceBrokerTooOldFailsRecords": "it is for brokers before Produce v3",
    "TestConsumeRegexShareSkipsInternal": SHARE_GROUPS,
    "TestShareGroup": SHARE_GROUPS,
    "TestShareGroupAckOnClose": SHARE_GROUPS,
    "TestShareGroupETL": SHARE_GROUPS,
    "TestShareGroupOffsetsAdmin": SHARE_GROUPS,
}
IS_KAFKA = os.environ.get("ROCKGATE_COMPAT_PEER") == "kafka"
WAYS = ["in clear"] if IS_KAFKA else ["in clear", "over TLS"]
LOGGING_IN = ("TestSCRAMAuth", "TestSCRAMAuthBadCredentials")
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
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, str]]]:
    """The environment of the suite, which says where the broker is, by how it connects."""
    if IS_KAFKA:
        with KafkaPeer(settings=SETTINGS) as peer:
            yield {"in clear": {"KGO_SEEDS": peer.bootstrap}}
        return
    files = Secured(tmp_path_factory.mktemp("suite"))
    files.init()
    settings = (
        "kafka.listeners=CLEAR://127.0.0.1:0,TLS://127.0.0.1:0,LOGIN://127.0.0.1:0",
        "kafka.listener_security=CLEAR:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT",
        # What the suite does without a login it may do.
        "security.super_users=User:admin;User:ANONYMOUS",
        *(f"{name}={value}" for name, value in SETTINGS.items()),
    )
    with files.running(*settings) as server:

        def seeds(listener: str) -> str:
            return "{}:{}".format(*server.address(f"kafka.{listener}"))

        login = {
            "KGO_TEST_SCRAM_SEEDS": seeds("LOGIN"),
            "KGO_TEST_SCRAM": f"admin:{files.password()}:512",
        }
        authority = f"ca:{files.folder / folder.AUTHORITY}"
        yield {
            "in clear": {"KGO_SEEDS": seeds("CLEAR"), **login},
            "over TLS": {"KGO_SEEDS": seeds("TLS"), "KGO_TEST_TLS": authority, **login},
        }


@pytest.fixture(scope="module", params=WAYS)
def outcomes(
    request: pytest.FixtureRequest, variables: dict[str, dict[str, str]]
) -> Mapping[str, str]:
    """How each test did."""
    try:
        program, sources = built()
    except CannotRun as reason:
        leave_out(reason)
    told = {"KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS), **variables[request.param]}
    done = subprocess.run(
        [str(program), "-test.v", "-test.parallel=4", f"-test.timeout={SECONDS_MAX}s"],
        cwd=sources,
        env={**os.environ, **told},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS_MAX + 60,
    )
    output = done.stdout.decode("utf-8", "replace")
    found = {name: outcome for outcome, name in _OUTCOME.findall(output)}
    if request.param == WAYS[0]:
        own_suite.record(CLIENT, {name: STATES[outcome] for name, outcome in found.items()})
    return found


@pytest.mark.timeout(SECONDS_MAX + 120)
def test_every_test_of_the_suite_is_listed_once(outcomes: Mapping[str, str]) -> None:
    assert set(outcomes) == {*MUST_PASS, *EXCLUDED}
    assert len(MUST_PASS) == len(set(MUST_PASS) - EXCLUDED.keys())


@pytest.mark.feature("client tests (kgo)", SUITE)
@pytest.mark.parametrize("name", MUST_PASS)
def test_a_test_of_its_own_passes(outcomes: Mapping[str, str], name: str) -> None:
    if IS_KAFKA and name in LOGGING_IN:
        pytest.skip("Apache Kafka has no listener with logins here")
    assert outcomes[name] == "PASS"


@pytest.mark.feature("client tests (kgo)", SUITE)
@pytest.mark.parametrize("name", EXCLUDED)
def test_an_excluded_test_does_not_fail(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] != "FAIL"
    if outcomes[name] == "SKIP":
        pytest.skip(EXCLUDED[name])
