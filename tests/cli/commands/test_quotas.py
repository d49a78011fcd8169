from tests.cli.terminal import Terminal


def test_quotas_are_set_shown_and_removed(terminal: Terminal, name: str) -> None:
    said = terminal.run(
        *("quotas", "alter", "--client-id", name),
        *("--set", "producer_byte_rate=1048576", "--set", "request_percentage=12.5"),
    )
    assert said == f"Altered quotas of client-id {name}.\n"
    assert terminal.rows("quotas", "describe", "--client-id", name) == [
        ["client-id", name, "producer_byte_rate", "1048576"],
        ["client-id", name, "request_percentage", "12.5"],
    ]
    terminal.run("quotas", "alter", "--client-id", name, "--unset", "request_percentage")
    assert terminal.json("quotas", "describe", "--client-id", name)["quotas"] == [
        {"entity": {"client-id": name}, "quotas": {"producer_byte_rate": 1048576.0}}
    ]
    terminal.run("quotas", "alter", "--client-id", name, "--unset", "producer_byte_rate")
    assert terminal.run("quotas", "describe", "--client-id", name) == ""


def test_defaults_and_pairs_are_entities_of_their_own(terminal: Terminal, name: str) -> None:
    pair = ("--user", name, "--client-id-default")
    terminal.run("quotas", "alter", *pair, "--set", "consumer_byte_rate=5e6")
    assert terminal.json("quotas", "describe", "--user", name)["quotas"] == [
        {"entity": {"client-id": None, "user": name}, "quotas": {"consumer_byte_rate": 5e6}}
    ]
    assert terminal.json("quotas", "describe", "--user", name, "--strict")["quotas"] == []
    terminal.run("quotas", "alter", *pair, "--unset", "consumer_byte_rate")


def test_a_dry_run_changes_nothing(terminal: Terminal, name: str) -> None:
    change = ("--user", name, "--set", "producer_byte_rate=1000")
    assert (
        terminal.run("quotas", "alter", *change, "--dry-run")
        == f"Dry run: would alter quotas of user {name}.\n"
    )
    assert terminal.json("quotas", "describe", "--user", name)["quotas"] == []


def test_the_server_may_refuse(terminal: Terminal, name: str) -> None:
    told = terminal.json("quotas", "alter", "--user", name, "--set", "nonsense=1", status=1)
    (error,) = told["errors"]
    assert error["error"] == "INVALID_REQUEST"
    assert not told["quotas"][0]["is_altered"]


def test_what_makes_no_sense_is_status_2(terminal: Terminal) -> None:
    for arguments, problem in (
        (("--set", "a=1"), "Give an entity: "),
        (("--user", "u"), "Nothing to alter"),
        (
            ("--user", "u", "--user-default", "--set", "a=1"),
            "Give --user or --user-default, not both.",
        ),
        (("--user", "u", "--set", "a=much"), "Invalid --set: expected a number for a, got 'much'"),
    ):
        said = terminal.run("quotas", "alter", *arguments, status=2)
        assert said.startswith(f"rockgate: {problem}")
