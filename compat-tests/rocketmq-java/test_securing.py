"""Java's clients that sign what they ask, at brokers that demand it: rockgate, and Apache's own.

The same users with the same rights; the two lines of the client by turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.rocketmq_brokers import APACHE_IMMUNE
from behaviours.running import Answering
from behaviours.secured_brokers import (
    ROCKGATE,
    SecuredBroker,
    secret_of,
    secured_broker,
)
from bench.peers import rocketmq
from bench.peers.jars import pinned_version
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
LONG = pytest.mark.long
BOTH = ("Pub", "Sub")


def plain(said: str) -> str:
    """A refusal without what 4.9 says of its own classes."""
    return re.sub(r"org\.apache\.\S+: |, org\.apache\.rocketmq\.acl\..*", "", said)


def wait_for(say: Callable[[], str], is_it: Callable[[str], bool]) -> str:
    """What is said once it is this: a broker of 4.9 reads its file when it notices the change."""
    said: list[str] = []

    def is_there() -> bool:
        said.append(say())
        return is_it(said[-1])

    wait_until(is_there, "the change has an effect")
    return said[-1]


class Java(Answering):
    """The Java process."""

    def __init__(self, version: str, folder: Path, *flags: str) -> None:
        java, *rest = java_program(HERE, version, "Program")
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
        brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
        super().__init__([java, *quiet, brisk, *flags, *rest], folder / "java.log")
        self.version = version

    def run(self, *words: object) -> str:
        _, said = self.ask(" ".join(map(str, words)))
        if said.startswith("FAIL"):
            raise AssertionError(said[5:].replace(" | ", "\n"))
        return said.removeprefix("ok").strip()

    def become(self, user: str | None, secret: str = "") -> None:
        """Clients that are made from now on are this user's."""
        self.run("as", *(() if user is None else (user, secret or secret_of(user))))


@pytest.fixture(scope="module", params=["v5", pytest.param("v4", marks=LONG)])
def java(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Java]:
    try:
        running = Java(request.param, tmp_path_factory.mktemp("java"))
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield running
    running.run("close-all")
    running.end()


@pytest.fixture(
    scope="module",
    params=[
        ROCKGATE,
        pytest.param(rocketmq.NAME, marks=LONG),
        pytest.param(rocketmq.OLD, marks=LONG),
    ],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    with secured_broker(request.param, tmp_path_factory.mktemp("broker")) as found:
        yield found


def named(java: Java, name: str) -> str:
    """A name that no other client's tests use."""
    return f"{name}-{java.version}"


def test_who_has_the_right_key_and_rights_sends_and_reads(
    java: Java, broker: SecuredBroker
) -> None:
    topic, user = named(java, "orders"), named(java, "alexandra")
    broker.make_topic(topic)
    broker.make_user(user, {f"Topic:{topic}": BOTH, f"Group:{topic}-g": ("Sub",)})
    java.become(user)
    assert java.run("produce", broker.namesrv, topic, 0, 20) == "20"
    found = java.run("consume", broker.namesrv, topic, f"{topic}-g", 20)
    assert sorted(found.split(",")) == sorted(f"m{n}" for n in range(20))


WRONG = {
    ROCKGATE: "MQClientException check signature failed.",
    rocketmq.NAME: "16 check signature failed.",
    rocketmq.OLD: "1 Check signature failed for accessKey={user}",
}
"""What a client with a wrong secret reads; our name server demands signatures too."""
UNKNOWN = WRONG | {
    rocketmq.NAME: "16 User:nobody-here is not found.",
    rocketmq.OLD: "1 No acl config for nobody-here",
}
UNSIGNED = {
    ROCKGATE: "MQClientException username cannot be null.",
    rocketmq.NAME: "16 username cannot be null.",
    rocketmq.OLD: "1 No accessKey is configured",
}
NO_ROUTE = "MQClientException No route info of this topic: {topic}"


@pytest.mark.parametrize(
    ("who", "secret", "text"),
    [
        ("", "another-secret", WRONG),
        ("nobody-here", "", UNKNOWN),
        (None, "", UNSIGNED),
    ],
    ids=["a wrong key", "an unknown user", "no key"],
)
def test_who_proves_nobody_is_refused_with_the_reason(
    java: Java, broker: SecuredBroker, who: str | None, secret: str, text: dict[str, str]
) -> None:
    topic, user = named(java, "refused"), named(java, "barbara")
    broker.make_topic(topic)
    if user not in broker.users:
        broker.make_user(user, {f"Topic:{topic}": BOTH, f"Group:{topic}-g": ("Sub",)})
    java.become(user if who == "" else who, secret)
    java.run("open-producer", "refused", broker.namesrv)
    java.run("open-reader", "refused", broker.namesrv, f"{topic}-g")
    expected = text[broker.kind].format(user=user)
    assert plain(java.run("try-read", "refused", topic)) == expected
    if broker.kind == ROCKGATE:
        expected = NO_ROUTE.format(topic=topic)
    assert plain(java.run("try-send", "refused", topic)) == expected


NOT_GRANTED = {
    ROCKGATE: "16 User:{user} has no permission from 127.0.0.1 to access {what}; it needs {need}.",
    rocketmq.NAME: (
        "16 User:{user} has no permission to access {what} from 127.0.0.1, no matched policies."
    ),
    rocketmq.OLD: "1 No default permission for {old}",
}


def test_what_was_not_granted_is_refused_with_its_name(java: Java, broker: SecuredBroker) -> None:
    topic, other, user = named(java, "mine"), named(java, "others"), named(java, "carlotta")
    for each in (topic, other):
        broker.make_topic(each)
    # Where the name server demands signatures too, a route has to be granted.
    rights = {f"Topic:{topic}": BOTH, f"Topic:{other}": ("Get",), f"Group:{topic}-g": ("Sub",)}
    if broker.kind == rocketmq.OLD:
        del rights[f"Topic:{other}"]
    broker.make_user(user, rights)
    java.become(user)
    text = NOT_GRANTED[broker.kind]
    java.run("open-producer", "limited", broker.namesrv)
    said = plain(java.run("try-send", "limited", other))
    assert said == text.format(user=user, what=f"Topic:{other}", need="WRITE", old=f"topic:{other}")
    java.run("open-reader", "limited", broker.namesrv, f"{topic}-g")
    said = plain(java.run("try-read", "limited", other))
    assert said == text.format(user=user, what=f"Topic:{other}", need="READ", old=f"topic:{other}")
    java.run("open-reader", "limited", broker.namesrv, "others-g")
    said = plain(java.run("try-read", "limited", topic))
    assert said == text.format(user=user, what="Group:others-g", need="READ", old="group:others-g")


def test_retries_and_dead_letters_follow_their_group(java: Java, broker: SecuredBroker) -> None:
    topic, user = named(java, "failing"), named(java, "carolina")
    group, looking = f"{topic}-g", f"dead-{topic}-g"
    broker.make_topic(topic)
    rights = {f"Topic:{topic}": BOTH, f"Group:{group}": ("Sub",), f"Group:{looking}": ("Sub",)}
    if broker.kind != ROCKGATE:
        # To Apache's brokers the topic of dead letters is one like others.
        rights[f"Topic:%DLQ%{group}"] = ("Sub",)
    if broker.kind == rocketmq.OLD:
        # And to 4.9 one that can only be written to.
        broker.make_topic(f"%DLQ%{group}", 1)
    broker.make_user(user, rights)
    java.become(user)
    assert java.run("produce", broker.namesrv, topic, 0, 8) == "8"
    words = ("fail-one", broker.namesrv, topic, group, 8, "m3")
    if broker.kind == rocketmq.OLD:
        # All is retried and buried by then. Clients sign a field of queries by unique key that this
        # broker leaves out when it checks, so it refuses them, which clients take for "not found".
        with pytest.raises(AssertionError, match="CODE: 208"):
            java.run(*words)
        return
    assert java.run(*words) == f"key-3 {topic} red"


def test_a_producer_is_asked_about_half_messages_that_it_may_write(
    java: Java, broker: SecuredBroker
) -> None:
    topic, user = named(java, "decided"), named(java, "dominica")
    broker.make_topic(topic)
    broker.make_user(user, {f"Topic:{topic}": BOTH, f"Group:decided-{topic}": ("Sub",)})
    java.become(user)
    if broker.kind == rocketmq.OLD:
        # Everything is decided by then; that broker leaves the property REAL_TOPIC.
        with pytest.raises(AssertionError, match="nothing of the half is left"):
            java.run("transaction", broker.namesrv, topic, APACHE_IMMUNE)
        return
    immune = 1 if broker.kind == ROCKGATE else APACHE_IMMUNE
    assert java.run("transaction", broker.namesrv, topic, immune) == "10"


def test_queues_are_locked_and_read_in_order(java: Java, broker: SecuredBroker) -> None:
    topic, user = named(java, "queues"), named(java, "ernestina")
    broker.make_topic(topic)
    broker.make_user(user, {f"Topic:{topic}": BOTH, f"Group:ordered-{topic}": ("Sub",)})
    java.become(user)
    assert java.run("ordered", broker.namesrv, topic) == "4"


REVOKED = {
    ROCKGATE: "has no permission from 127.0.0.1 to access Topic:{topic};",
    rocketmq.NAME: "has no permission to access Topic:{topic} from 127.0.0.1,",
    rocketmq.OLD: "No default permission for topic:{topic}",
}


def test_what_is_revoked_is_refused_on_connections_that_are_open(
    java: Java, broker: SecuredBroker
) -> None:
    topic, user = named(java, "revoked"), named(java, "frederica")
    broker.make_topic(topic)
    broker.make_user(user, {f"Topic:{topic}": BOTH, f"Group:{topic}-g": ("Sub",)})
    java.become(user)
    java.run("open-producer", user, broker.namesrv)
    java.run("open-reader", user, broker.namesrv, f"{topic}-g")
    assert java.run("try-send", user, topic) == "sent"
    assert java.run("try-read", user, topic) == "read 1"
    broker.revoke(user, f"Topic:{topic}")
    sent = wait_for(lambda: java.run("try-send", user, topic), lambda said: said != "sent")
    refused = REVOKED[broker.kind].format(topic=topic)
    assert refused in sent or f"No route info of this topic: {topic}" in sent
    assert refused in java.run("try-read", user, topic)
    broker.grant(user, {f"Topic:{topic}": BOTH})
    wait_for(lambda: java.run("try-send", user, topic), lambda said: said == "sent")
