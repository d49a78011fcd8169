"""mqadmin with its own file of credentials, where signatures are demanded: here and at Apache's."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.mqadmin import MqAdmin
from behaviours.secured_brokers import ADMIN, ROCKGATE, SecuredBroker, secret_of, secured_broker
from bench.peers import PeerError, jars, rocketmq
from tests.cli.secured import Secured
from tests.waiting import wait_until

CLIENT = f"rocketmq-tools {jars.version(rocketmq.NAME)}"
TOPIC, OTHER, USER = "orders", "others", "operator-1"
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]


class Site:
    """A broker, and tools of one version with and without credentials."""

    def __init__(self, broker: SecuredBroker, line: str, folder: Path) -> None:
        self.broker = broker
        self.line = line
        self.address = "{}:{}".format(*broker.broker.address)
        self._folder = folder
        self._tools: list[MqAdmin] = []

    @property
    def is_old(self) -> bool:
        """Whether the tool is that of 4.9."""
        return self.line == rocketmq.OLD

    def tool(self, user: str | None, secret: str = "") -> MqAdmin:
        """The tool of a user, who is in its conf/tools.yml."""
        home = self._folder / f"home-{len(self._tools)}"
        (home / "conf").mkdir(parents=True)
        if user is not None:
            lines = f"accessKey: {user}\nsecretKey: {secret or secret_of(user)}\n"
            (home / "conf" / "tools.yml").write_text(lines)
        self._tools.append(MqAdmin(self.broker.namesrv, home, self.line))
        return self._tools[-1]

    def end(self) -> None:
        for each in self._tools:
            each.end()


@pytest.fixture(
    scope="module",
    params=[(kind, line) for line in (rocketmq.NAME, rocketmq.OLD) for kind in (ROCKGATE, line)],
    ids=lambda each: f"{each[0]}, tool of {each[1]}",
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    kind, line = request.param
    with secured_broker(kind, tmp_path_factory.mktemp("broker")) as broker:
        for topic in (TOPIC, OTHER):
            broker.make_topic(topic)
        found = Site(broker, line, tmp_path_factory.mktemp("tools"))
        yield found
        found.end()


@pytest.fixture(scope="module")
def admin(site: Site) -> MqAdmin:
    try:
        return site.tool(ADMIN)
    except (CannotRun, PeerError) as reason:
        leave_out(CannotRun(str(reason)))
        raise


def make_user(site: Site, admin: MqAdmin) -> None:
    """A user who may send to one topic, made by commands of the tool's version."""
    b = ("-b", site.address)
    if site.is_old:
        rights = ("-t", f"{TOPIC}=PUB|SUB", "-g", "readers=SUB", "-m", "false")
        defaults = ("-i", "DENY", "-u", "DENY")
        printed = admin(
            "updateAclConfig", *b, "-a", USER, "-s", secret_of(USER), *rights, *defaults
        )
        assert "success" in printed, printed
        return
    made = admin("createUser", *b, "-u", USER, "-p", secret_of(USER), "-t", "Normal")
    assert "success" in made, made
    wanted = ("-s", f"User:{USER}", "-r", f"Topic:{TOPIC}", "-a", "Pub,Get", "-d", "Allow")
    made = admin("createAcl", *b, *wanted)
    assert "success" in made, made


def revoke(site: Site, admin: MqAdmin) -> None:
    b = ("-b", site.address)
    if site.is_old:
        gone = admin("deleteAclConfig", *b, "-a", USER)
    else:
        gone = admin("deleteAcl", *b, "-s", f"User:{USER}", "-r", f"Topic:{TOPIC}")
    assert "success" in gone, gone


REFUSED = re.compile(r"CODE: 16 |CODE: 1 .*AclException|No route info of this topic")
"""RocketMQ 5 and the server, 4.9, and what a producer says whose route is refused."""


LATE = re.compile(
    r"Remoting(SendRequest|Timeout|Connect|TooMuchRequest)Exception|invokeSync call timeout"
)
"""What tools print whose request did not come through: it has three seconds, and a busy machine may
need them for the first."""


def told(tool: MqAdmin, *words: str) -> str:
    """What a command prints once its request came through; what it printed last, if none does."""
    printed = [""]

    def has_come_through() -> bool:
        printed.append(tool(*words))
        return LATE.search(printed[-1]) is None

    with contextlib.suppress(AssertionError):
        wait_until(has_come_through, "a request comes through", 60)
    return printed[-1]


def brief(printed: str) -> str:
    """What was printed, without the lines of stack traces."""
    return "\n".join(each for each in printed.splitlines() if not each.startswith("\t"))[-2_000:]


def must_be_refused(printed: str) -> None:
    assert REFUSED.search(printed), brief(printed)
    assert "SEND_OK" not in printed and "success" not in printed, brief(printed)


@pytest.mark.feature("credentials of conf/tools.yml", "mqadmin")
def test_who_has_no_credentials_or_wrong_ones_is_refused(site: Site, admin: MqAdmin) -> None:
    printed = told(admin, "brokerStatus", "-b", site.address)
    assert "bootTimestamp" in printed, brief(printed)
    for tool in (site.tool(None), site.tool(ADMIN, "another-secret")):
        must_be_refused(told(tool, "topicStatus", "-t", TOPIC))
        must_be_refused(told(tool, "sendMessage", "-t", TOPIC, "-p", "hello"))


@pytest.mark.feature("users and rights by mqadmin, with an effect at once", "mqadmin")
def test_a_user_is_made_and_given_rights_that_are_taken_back(site: Site, admin: MqAdmin) -> None:
    make_user(site, admin)
    operator = site.tool(USER)
    printed = [""]

    def is_sent() -> bool:
        printed.append(operator("sendMessage", "-t", TOPIC, "-p", "hello"))
        return "SEND_OK" in printed[-1]

    # A send has three seconds, which a busy machine may need for the first.
    with contextlib.suppress(AssertionError):
        wait_until(is_sent, "it is sent", 60)
    assert "SEND_OK" in printed[-1], brief(printed[-1])
    must_be_refused(told(operator, "sendMessage", "-t", OTHER, "-p", "hello"))
    revoke(site, admin)
    wait_until(lambda: not is_sent(), "the rights are gone", 60)
    must_be_refused(told(operator, "sendMessage", "-t", TOPIC, "-p", "hello"))


@pytest.mark.feature("administration needs the administrator", "mqadmin")
def test_a_user_without_rights_on_the_cluster_administers_nothing(
    site: Site, admin: MqAdmin
) -> None:
    site.broker.make_user("visitor-1", {f"Topic:{TOPIC}": ("Pub", "Sub")})
    visitor = site.tool("visitor-1")
    b = ("-b", site.address)
    must_be_refused(told(visitor, "updateTopic", *b, "-t", "stolen", "-r", "1", "-w", "1"))
    change = told(visitor, "updateBrokerConfig", *b, "-k", "transactionCheckMax", "-v", "9")
    if site.broker.kind == rocketmq.NAME:
        # 5.5.0 lets everyone who is authenticated change it.
        assert "success" in change, brief(change)
    else:
        must_be_refused(change)


@pytest.mark.feature("the files of `rockgate secure init`", "mqadmin")
@pytest.mark.parametrize("line", [rocketmq.NAME, rocketmq.OLD])
def test_the_files_of_secure_init_let_the_administrator_in(tmp_path: Path, line: str) -> None:
    """tools.yml and rocketmq-tls.properties: TLS to name server and broker, and signatures."""
    secured = Secured(tmp_path)
    secured.init()
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    shutil.copy(secured.folder / "tools.yml", home / "conf")
    tls = f"-Dtls.config.file={secured.folder / 'rocketmq-tls.properties'}"
    with secured.running() as server:
        namesrv, broker = ("{}:{}".format(*server.address(of)) for of in ("namesrv", "remoting"))
        tools = []
        for flags in (("-Dtls.enable=true", tls), ()):
            try:
                tools.append(MqAdmin(namesrv, home, line, *flags))
            except (CannotRun, PeerError) as reason:
                leave_out(CannotRun(str(reason)))
        admin, plain = tools
        printed = [""]

        def is_listed() -> bool:
            printed.append(admin("clusterList"))
            return broker in printed[-1]

        with contextlib.suppress(AssertionError):
            wait_until(is_listed, "the cluster is listed", 60)
        assert is_listed(), brief(printed[-1])
        assert broker not in plain("clusterList")
        for each in tools:
            each.end()
