"""kcat with TLS and a login: what is granted works, and it says why the rest does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from behaviours.bringing import CannotRun, debian_program, leave_out
from behaviours.features import GRANTS, LOGINS
from behaviours.kcat import Failed, Kcat
from behaviours.login import Login, librdkafka_options
from behaviours.secured_server import SecuredServer
from behaviours.securing import MECHANISMS
from behaviours.steps import new_topic

PACKAGES = ("kcat", "librdkafka1", "libyajl2")
CLIENT = "kcat 1.7.1"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def command() -> list[str]:
    try:
        return debian_program("kcat", *PACKAGES)
    except CannotRun as reason:
        leave_out(reason)
        raise


def logged_in(command: list[str], secured: SecuredServer, login: Login) -> Kcat:
    """A kcat with the options of a login."""
    address = secured.address(login)
    given = [
        part for pair in librdkafka_options(address).items() for part in ("-X", "=".join(pair))
    ]
    return Kcat([*command, *given], address)


@pytest.mark.feature(LOGINS)
@pytest.mark.parametrize("mechanism", [*MECHANISMS, None])
def test_it_logs_in_by_each_mechanism_and_by_a_certificate(
    command: list[str], secured: SecuredServer, mechanism: str | None
) -> None:
    login = secured.new_user("kate") if mechanism else secured.new_certificate("kate")
    login, topic = replace(login, mechanism=mechanism), new_topic("kcat-secured")
    secured.allow(login, topic)
    kcat = logged_in(command, secured, login)
    kcat.run("-P", "-t", topic, typed=b"one\ntwo\n")
    assert [each["payload"] for each in kcat.read(topic)] == ["one", "two"]


@pytest.mark.feature(LOGINS)
def test_the_file_of_secure_init_is_all_that_it_needs(
    command: list[str], secured: SecuredServer
) -> None:
    address = secured.address(secured.administrator())
    # The address of the file is the one that the server has without this test.
    kcat = Kcat([*command, "-F", str(secured.files.folder / "librdkafka.conf")], address)
    topic = new_topic("kcat-file")
    kcat.run("-P", "-t", topic, typed=b"one\n")
    assert [each["payload"] for each in kcat.read(topic)] == ["one"]


@pytest.mark.feature(LOGINS)
@pytest.mark.parametrize(
    ("wrong", "text"),
    [("password", "Authentication failed"), ("authority", "certificate verify failed")],
)
def test_a_wrong_login_is_said(
    command: list[str], secured: SecuredServer, wrong: str, text: str
) -> None:
    login = secured.new_user("kate")
    wrong_password = replace(login, password="guess")
    given = wrong_password if wrong == "password" else secured.distrusting(login)
    with pytest.raises(Failed, match=text):
        logged_in(command, secured, given).run("-L", "-m", "10")


@pytest.mark.feature(GRANTS)
def test_what_was_not_granted_is_said(command: list[str], secured: SecuredServer) -> None:
    login, topic = secured.new_user("kate"), new_topic("kcat-others")
    secured.allow(secured.new_user("emil"), topic)
    kcat = logged_in(command, secured, login)
    with pytest.raises(Failed, match="Topic authorization failed"):
        kcat.run("-P", "-t", topic, typed=b"one\n")
    assert topic not in kcat.run("-L").decode()
