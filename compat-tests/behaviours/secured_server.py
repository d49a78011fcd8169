"""A server as `rockgate secure init` sets it up, beside it a listener for certificates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from behaviours.login import Login, SecuredAddress
from tests.cli.secured import Secured
from tests.gateway.security.tls.certificates import Authority
from tests.gateway.server import RunningServer

from rockgate.cli.commands.secure import folder

LIFETIME_MS = 12_000
"""Clients log in again before that (KIP-368); kafkajs ten seconds before."""
READ = ("--operation", "Read")
_numbers = itertools.count()


class SecuredServer:
    """The running server, and its administrator."""

    def __init__(self, files: Secured, running: RunningServer, authority: Authority) -> None:
        self.running = running
        self.files = files
        self._authority = authority
        self._admin = files.administrator(running)
        self.ca = str(files.folder / folder.AUTHORITY)

    # Users and grants

    def new_user(self, what: str) -> Login:
        """A user of its own, who may do nothing yet."""
        name = f"{what}-{next(_numbers)}"
        login = Login(ca=self.ca, mechanism="SCRAM-SHA-512", user=name, password=f"of,{name}=1")
        file = self.files.directory / f"{name}.password"
        file.write_text(login.password)
        self._admin.run("users", "create", name, "--password-file", str(file))
        return login

    def new_certificate(self, what: str) -> Login:
        """A certificate of a name of its own, which may do nothing yet."""
        name = f"{what}-{next(_numbers)}"
        certificate, key = self._authority.issue(name)
        return Login(ca=self.ca, user=name, certificate=str(certificate), key=str(key))

    def allow(self, login: Login, topic: str, *groups: str) -> None:
        """Let a user write and read a topic, alone and in groups; the topic is created."""
        self._admin.run("topics", "create", topic, "--partitions", "1")
        who = ("--allow-principal", f"User:{login.user}")
        self._admin.run("acls", "add", *who, "--producer", "--topic", topic)
        # librdkafka asks for its group's coordinator even where it reads alone.
        for group in ("none", *groups):
            self._admin.run("acls", "add", *who, "--consumer", "--topic", topic, "--group", group)
        # kafkajs reads in groups only, whose names begin so.
        self.allow_groups(login, "alone-")

    def allow_groups(self, login: Login, prefix: str) -> None:
        """Let a user read in all groups whose names begin so."""
        who = ("--allow-principal", f"User:{login.user}")
        self._admin.run("acls", "add", *who, *READ, "--group", prefix, "--prefixed")

    def revoke(self, login: Login) -> None:
        """Take away all grants of a user."""
        self._admin.run("acls", "remove", "--principal", f"User:{login.user}", "--yes")

    # What clients dial

    def address(self, login: Login) -> SecuredAddress:
        """Where a login is taken."""
        listener = "kafka" if login.mechanism else "kafka.CERTS"
        return SecuredAddress("{}:{}".format(*self.running.address(listener)), login)

    def administrator(self) -> Login:
        """The login that `rockgate secure init` made."""
        return Login(
            ca=self.ca, mechanism="SCRAM-SHA-512", user="admin", password=self.files.password()
        )

    def distrusting(self, login: Login) -> Login:
        """The same login of a client that trusts another authority."""
        return replace(login, ca=str(self._authority.file))

    def login_count(self, login: Login) -> int:
        """How often a user was authenticated."""
        lines = self.running.log.splitlines()
        return sum(1 for line in lines if "authenticated" in line and f"User:{login.user} " in line)


@contextmanager
def secured_server(directory: Path) -> Iterator[SecuredServer]:
    """One with sessions of a few seconds."""
    files = Secured(directory)
    files.init()
    authority = Authority(directory, "clients")
    settings = (
        "kafka.listeners=CERTS://127.0.0.1:0",
        "kafka.listener_security=CERTS:SSL",
        f"tls.client_ca_file={authority.file}",
        "tls.client_auth=requested",
        "tls.principal_rules=RULE:^CN=(.*?),.*$/$1/L",
        f"security.reauthentication_ms_max={LIFETIME_MS}",
        "security.delegation_tokens=true",
        "group.initial.rebalance.delay.ms=100",
    )
    with files.running(*settings) as running:
        yield SecuredServer(files, running, authority)
