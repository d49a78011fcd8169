"""`rockgate secure`, and every client command against the server that it sets up."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.secured import Secured
from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.cli.commands.secure import folder
from rockgate.gateway.security.tls import authority
from rockgate.gateway.security.tls.authority import Authority


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    found = Secured(tmp_path_factory.mktemp("secured"))
    found.init()
    return found


@pytest.fixture(scope="module")
def server(secured: Secured) -> Iterator[RunningServer]:
    settings = ("group.initial.rebalance.delay.ms=50", "http.exchange_ms_max=300")
    with secured.running(*settings) as running:
        yield running


@pytest.fixture
def admin(secured: Secured, server: RunningServer) -> Terminal:
    return secured.administrator(server)


@pytest.fixture
def bare(tmp_path: Path) -> Secured:
    """A folder of its own, which no server uses."""
    return Secured(tmp_path)


# The files


def test_secrets_can_be_read_by_their_owner_only(secured: Secured) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in secured.folder.iterdir()}
    public = {name for name, mode in modes.items() if mode != 0o600}
    assert public == folder.PUBLIC
    assert {modes[name] for name in public} == {0o644}
    assert secured.folder.stat().st_mode & 0o777 == 0o700


def test_a_second_run_changes_nothing_and_says_so(bare: Secured) -> None:
    assert "Created super user admin; the password is in client.properties." in bare.init()
    before = bare.contents()
    said = bare.init()
    assert bare.contents() == before
    assert said.startswith("Not changed: ")
    assert "Wrote" not in said and "Created" not in said


def test_a_file_that_is_missing_is_made_again_for_the_same_administrator(bare: Secured) -> None:
    bare.init()
    before = bare.contents()
    for name in (folder.LIBRDKAFKA, folder.ROCKETMQ_TOOLS):
        (bare.folder / name).unlink()
    assert bare.init().startswith("Wrote librdkafka.conf, tools.yml to ")
    assert bare.contents() == before


def test_a_run_that_was_broken_off_is_completed_by_the_next(bare: Secured) -> None:
    bare.init()
    password = bare.password()
    for path in sorted(bare.data_dir.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert "Created super user admin" in bare.init()
    with bare.running() as running:
        assert bare.administrator(running).rows("topics", "list") == []
    assert bare.password() == password


def test_force_replaces_everything_and_the_new_password_works(bare: Secured) -> None:
    bare.init()
    before = bare.contents()
    assert "Created super user admin" in bare.init("--force")
    after = bare.contents()
    assert before.keys() == after.keys()
    same = {name for name in before if before[name] == after[name]}
    assert same == {folder.SETTINGS, folder.ROCKETMQ_TLS}
    with bare.running() as running:
        bare.administrator(running).run("topics", "list")
        said = bare.init("--force", status=1)
        assert f"in use by process {running.pid}" in said and "Nothing was changed." in said
        assert bare.contents() == after


def test_half_an_authority_is_not_replaced(bare: Secured) -> None:
    bare.init()
    (bare.folder / folder.AUTHORITY_KEY).unlink()
    assert "replace everything with --force" in bare.init(status=1)
    other = Authority.new("other", authority.now_utc()).pem
    (bare.folder / folder.AUTHORITY_KEY).write_bytes(other.key)
    assert "its key belongs to another certificate" in bare.init(status=1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--host", "0.0.0.0"), "clients cannot connect to 0.0.0.0"),
        (("--host", "a b"), "expected a host name"),
        (("--admin", 'a"b'), "expected letters"),
        (("--kafka", "127.0.0.1:0"), "--kafka needs the port that clients connect to"),
    ],
)
def test_what_makes_no_sense_is_status_2(
    bare: Secured, arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in bare.init(*arguments, status=2)
    assert not bare.folder.exists()


def test_a_folder_that_cannot_be_written_is_said(bare: Secured) -> None:
    bare.folder.write_text("a file")
    assert "Choose another folder with --dir." in bare.init(status=1)


# The certificate


def test_the_certificate_is_for_the_hosts_and_this_machine(bare: Secured) -> None:
    bare.init("--host", "kafka.example", "--host", "10.0.0.7")
    pem = bare.read(folder.CERTIFICATE)
    assert set(authority.hosts_of(pem)) == {
        *("kafka.example", "10.0.0.7", "localhost", "127.0.0.1", "::1")
    }
    assert b'listen = "0.0.0.0:9092"\nadvertise = "kafka.example:9092"' in bare.read(
        folder.SETTINGS
    )
    assert b"bootstrap.servers=kafka.example:9092" in bare.read(folder.CLIENT)
    made = Authority.read(bare.read(folder.AUTHORITY), bare.read(folder.AUTHORITY_KEY))
    assert made.has_issued(pem)


def test_it_is_valid_for_strict_clients(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.folder / folder.AUTHORITY))
    context.verify_flags |= getattr(ssl, "VERIFY_X509_STRICT", 0)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(secured.folder / folder.CERTIFICATE, secured.folder / folder.KEY)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = context.wrap_bio(back, there, server_hostname="localhost")
    server_side = server.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client_side.version() == "TLSv1.3"


def test_another_name_is_added_and_nothing_else_changes(bare: Secured) -> None:
    bare.init()
    bare.init("--host", "new.example")  # says that it takes a renewal
    said = bare.terminal.run(
        *("secure", "renew", "--dir", str(bare.folder), "--host", "new.example", "--days", "10")
    )
    assert said.endswith("for localhost, 127.0.0.1, ::1, new.example.\n")
    left = authority.expiry_of(bare.read(folder.CERTIFICATE)) - authority.now_utc()
    assert timedelta(days=9) < left < timedelta(days=11)
    assert "certificate is not for" not in bare.init("--host", "new.example")
    told = bare.terminal.json("secure", "renew", "--dir", str(bare.folder))["certificates"]
    assert told[0]["hosts"] == ["localhost", "new.example", "127.0.0.1", "::1"]


def test_without_an_authority_nothing_is_renewed(bare: Secured) -> None:
    said = bare.terminal.run("secure", "renew", "--dir", str(bare.folder), status=1)
    assert "Make one with `rockgate secure init`." in said


def test_an_expired_certificate_is_refused_and_one_that_is_renewed_is_taken(bare: Secured) -> None:
    bare.init()
    made = Authority.read(bare.read(folder.AUTHORITY), bare.read(folder.AUTHORITY_KEY))
    old = made.issue(["127.0.0.1"], authority.now_utc() - timedelta(days=20), days=10)
    (bare.folder / folder.CERTIFICATE).write_bytes(old.certificate)
    (bare.folder / folder.KEY).write_bytes(old.key)
    with bare.running() as running:
        admin = bare.administrator(running)
        for command in (("topics", "list"), ("delay", "list")):
            said = admin.run(*command, status=3)
            assert "certificate has expired. Renew the server's certificate." in said
            assert "Is a server running" not in said
        bare.terminal.run("secure", "renew", "--dir", str(bare.folder))
        wait_until(lambda: "certificates renewed" in running.log, "the server has the new one")
        admin.run("topics", "list")


# The command line as a client


def test_every_kind_of_command_works_with_the_client_file(admin: Terminal, name: str) -> None:
    admin.run("topics", "create", name, "--partitions", "1")
    admin.pipe("produce", name, "one espresso")
    assert admin.pipe("consume", name, "--exit-at-end") == b"one espresso\n"
    assert admin.pipe("consume", name, "--group", f"g-{name}", "--from-beginning", *ONE) == (
        b"one espresso\n"
    )
    for command in (
        ("topics", "describe", name),
        ("groups", "describe", f"g-{name}"),
        ("groups", "lag"),
        ("configs", "describe", "topic", name),
        ("quotas", "describe"),
        ("transactions", "list"),
        ("cluster", "log-dirs"),
        ("delay", "list"),
        ("dlq", "list"),
        ("users", "list"),
        ("acls", "list"),
    ):
        admin.run(*command)


ONE = ("--max-messages", "1")


def test_a_user_may_do_what_is_granted_and_no_more(
    admin: Terminal, secured: Secured, name: str, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("hunter2")
    admin.run("topics", "create", f"{name}-a", f"{name}-b")
    admin.run("users", "create", name, "--rocketmq", "--password-file", str(password))
    user = Terminal("")
    user.variables.update(admin.variables)
    user.variables["ROCKGATE_CLIENT_SASL_USERNAME"] = name
    user.variables["ROCKGATE_CLIENT_SASL_PASSWORD"] = "hunter2"
    assert user.rows("topics", "list") == []
    admin.run(
        *("acls", "add", "--allow-principal", f"User:{name}", "--producer", "--topic", f"{name}-a")
    )
    assert user.rows("topics", "list") == [[f"{name}-a", "4", "1"]]
    user.pipe("produce", f"{name}-a", "x")
    denied = user.run("topics", "delete", f"{name}-a", "--yes", status=1)
    assert "TOPIC_AUTHORIZATION_FAILED" in denied
    assert "An administrator can grant it with `rockgate acls add`." in denied
    denied = user.run("delay", "list", status=1)
    assert "has no permission" in denied and "rockgate acls add" in denied
    admin.run("users", "disable", name)
    assert user.run("topics", "list", status=1).startswith("rockgate: Login of ")


def test_nothing_tells_a_wrong_user_from_a_wrong_password(admin: Terminal) -> None:
    admin.variables["ROCKGATE_CLIENT_SASL_PASSWORD"] = "wrong"
    wrong = admin.run("topics", "list", status=1)
    assert "by SCRAM-SHA-512: Authentication failed." in wrong
    admin.variables["ROCKGATE_CLIENT_SASL_USERNAME"] = "nemo"
    unknown = admin.run("topics", "list", status=1)
    assert unknown == wrong.replace("Login of admin", "Login of nemo")
    assert "Check the user name and the password." in admin.run("delay", "list", status=1)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_each_mechanism_logs_in(admin: Terminal, mechanism: str) -> None:
    admin.variables["ROCKGATE_CLIENT_SASL_MECHANISM"] = mechanism
    admin.run("cluster", "apis")


def test_librdkafka_s_file_does_as_well(admin: Terminal, secured: Secured) -> None:
    admin.run("topics", "list", "--client-config", str(secured.folder / folder.LIBRDKAFKA))


def test_without_tls_or_login_it_says_what_is_missing(
    server: RunningServer, secured: Secured
) -> None:
    host, port = server.address("remoting")
    plain = Terminal(server.bootstrap, f"{host}:{port}")
    assert "if it requires TLS, set security.protocol" in plain.run("topics", "list", status=3)
    assert "if it requires TLS, set rocketmq.tls" in plain.run("delay", "list", status=3)
    plain.variables["ROCKGATE_CLIENT_SECURITY_PROTOCOL"] = "SSL"
    said = plain.run("topics", "list", status=3)
    assert "Set ssl.truststore.location in the file of --client-config." in said
    plain.variables["ROCKGATE_CLIENT_SSL_CA_LOCATION"] = str(secured.folder / folder.AUTHORITY)
    assert "give --username, or a file with --client-config" in plain.run(
        "topics", "list", status=3
    )
    assert "The listener demands a login" in plain.run("delay", "list", status=1)


def test_a_listener_without_tls_is_said(admin: Terminal, server: RunningServer) -> None:
    host, port = server.address("http")
    said = admin.run("topics", "list", "-b", f"{host}:{port}", status=3)
    assert "it closed the connection during the TLS handshake, and may not speak TLS" in said


def test_a_password_that_is_missing_is_asked_for_on_a_terminal_only(admin: Terminal) -> None:
    said = admin.run("topics", "list", "--username", "nemo", status=2)
    assert said.startswith("rockgate: There is no password for nemo, and no terminal to ask")


def test_a_user_name_without_a_login_is_said(server: RunningServer) -> None:
    terminal = Terminal(server.bootstrap)
    terminal.variables["ROCKGATE_CLIENT_SECURITY_PROTOCOL"] = "SSL"
    said = terminal.run("topics", "list", "--username", "nemo", status=2)
    assert "security.protocol is SSL, which has no login. Set it to SASL_SSL." in said


def test_a_file_that_others_can_read_is_warned_of(
    admin: Terminal, secured: Secured, tmp_path: Path
) -> None:
    copied = tmp_path / "client.properties"
    copied.write_bytes(secured.read(folder.CLIENT))
    copied.chmod(0o644)
    with admin.start("topics", "list", "--client-config", str(copied)) as process:
        _, errors = process.communicate(timeout=60)
    assert f"chmod 600 {copied}" in errors.decode()
    assert process.returncode == 0
