"""What every client may expect of logins and grants, over TLS."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import pytest
from behaviours.driver import SECONDS_MAX, Driver, Message, Refused, Sending
from behaviours.features import GRANTS, LOGINS
from behaviours.login import Login
from behaviours.program import Broken
from behaviours.secured_server import SecuredServer
from behaviours.steps import new_topic, read_all, read_until, send_all
from tests.waiting import wait_until

TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Securing:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    def _is_served(self, secured: SecuredServer, login: Login) -> None:
        topic = new_topic("secured")
        secured.allow(login, topic, f"group-of-{topic}")
        bootstrap = secured.address(login)
        messages = [Message(value=b"%d" % number, partition=0) for number in range(20)]
        send_all(self.driver, bootstrap, topic, messages, Sending())
        found = [each.value for each in read_all(self.driver, bootstrap, topic)]
        assert found == [each.value for each in messages]
        member = self.driver.member(bootstrap, f"group-of-{topic}", topic)
        read_until(member, lambda got: len(got) >= len(messages), f"{topic} is read")  # type: ignore[arg-type] # polls alike
        member.commit()
        assert member.committed(topic, 0) == len(messages)
        member.close()

    @pytest.mark.feature(LOGINS)
    @pytest.mark.parametrize("mechanism", MECHANISMS)
    def test_a_password_is_a_login_by_each_mechanism(
        self, secured: SecuredServer, mechanism: str
    ) -> None:
        self._is_served(secured, replace(secured.new_user("alice"), mechanism=mechanism))

    @pytest.mark.feature(LOGINS)
    def test_a_certificate_is_a_login(self, secured: SecuredServer) -> None:
        self._is_served(secured, secured.new_certificate("carol"))

    @pytest.fixture(autouse=True)
    def left_behind(self) -> Iterator[None]:
        """What clients leave open after a failure is collected here, and not in another test."""
        yield
        gc.collect()

    @pytest.mark.feature(LOGINS)
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("wrong", ["password", "user", "authority"])
    def test_a_wrong_login_gets_nothing(self, secured: SecuredServer, wrong: str) -> None:
        login, topic = secured.new_user("alice"), new_topic("guessed")
        secured.allow(login, topic)
        given = {
            "password": replace(login, password="guess"),
            "user": replace(login, user="nobody-here"),
            "authority": secured.distrusting(login),
        }[wrong]
        with pytest.raises((Refused, Broken)):
            self.driver.admin(secured.address(given)).topics()
        if wrong == "password":
            wait_until(
                lambda: any(
                    "rejected" in line and f"User:{login.user} " in line
                    for line in secured.running.log.splitlines()
                ),
                "the audit has the attempt",
            )

    @pytest.mark.feature(GRANTS)
    def test_what_was_not_granted_is_refused_and_not_listed(self, secured: SecuredServer) -> None:
        login, topic, other = secured.new_user("dora"), new_topic("own"), new_topic("others")
        secured.allow(login, topic)
        secured.allow(secured.new_user("emil"), other)
        bootstrap = secured.address(login)
        assert self._sent(secured, login, other) == TOPIC_AUTHORIZATION_FAILED
        assert self._sent(secured, login, topic) == 0
        admin = self.driver.admin(bootstrap)
        assert admin.topics() == {topic}
        with pytest.raises(Refused) as refused:
            admin.delete(topic)
        assert refused.value.code == TOPIC_AUTHORIZATION_FAILED
        admin.close()

    @pytest.mark.feature(GRANTS)
    def test_a_revoked_grant_is_refused_on_the_open_connection(
        self, secured: SecuredServer
    ) -> None:
        login, topic = secured.new_user("fred"), new_topic("revoked")
        secured.allow(login, topic)
        producer = self.driver.producer(secured.address(login), Sending())
        producer.send(topic, Message(partition=0)).result()
        secured.revoke(login)
        with pytest.raises(Refused) as refused:
            producer.send(topic, Message(partition=0)).result()
        assert refused.value.code == TOPIC_AUTHORIZATION_FAILED
        producer.close()

    @pytest.mark.feature(LOGINS)
    def test_who_has_to_log_in_again_goes_on(self, secured: SecuredServer) -> None:
        login, topic = secured.new_user("gina"), new_topic("again")
        secured.allow(login, topic)
        producer = self.driver.producer(secured.address(login), Sending())
        first = producer.send(topic, Message(partition=0)).result().offset
        began, offsets = secured.login_count(login), [first]

        def has_logged_in_again() -> bool:
            offsets.append(producer.send(topic, Message(partition=0)).result().offset)
            return secured.login_count(login) >= began + 1

        wait_until(has_logged_in_again, "a session has ended", SECONDS_MAX)
        producer.close()
        assert offsets == list(range(len(offsets)))

    def _sent(self, secured: SecuredServer, login: Login, topic: str) -> int:
        producer = self.driver.producer(secured.address(login), Sending())
        try:
            producer.send(topic, Message(partition=0)).result()
        except Refused as refused:
            return refused.code
        finally:
            producer.close()
        return 0
