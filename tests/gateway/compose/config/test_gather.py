import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rockgate.gateway.compose.config import SETTINGS, gather
from rockgate.gateway.compose.config.gather import VARIABLES
from rockgate.gateway.compose.config.kafka_names import KAFKA_NAMES
from rockgate.gateway.compose.config.renamed import RENAMED, warn_of_renamed
from rockgate.gateway.compose.config.sources import (
    Given,
    from_environment,
    from_file,
    from_flags,
    from_pairs,
)
from rockgate.gateway.net.address import CLOSED, Address
from rockgate.gateway.runtime.errors import ConfigError

TomlFile = Callable[[str], Sequence[Given]]


@pytest.fixture
def toml(tmp_path: Path) -> TomlFile:
    def written(text: str) -> Sequence[Given]:
        path = tmp_path / "rockgate.toml"
        path.write_text(text, "utf-8")
        return from_file(path)

    return written


def environment(**variables: str) -> Sequence[Given]:
    return from_environment(variables, VARIABLES)


def problems(*sources: Sequence[Given]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        gather(*sources)
    return caught.value.problems


def test_with_nothing_given_every_setting_has_its_default() -> None:
    gathered = gather()
    assert set(gathered.origins.values()) == {"default"}
    assert gathered.config.kafka.listen == Address("127.0.0.1", 9092)
    assert gathered.config.remoting.listen == Address("127.0.0.1", 10911)
    assert gathered.config.namesrv.listen == Address("127.0.0.1", 9876)
    assert gathered.config.http.listen == Address("127.0.0.1", 8080)
    assert gathered.config.server.data_dir == Path("data")
    assert gathered.config.topics.partitions == 4


def test_the_environment_wins_over_the_file_and_flags_over_both(toml: TomlFile) -> None:
    gathered = gather(
        toml("[topics]\npartitions = 1\nauto_create = false\nmessage_bytes_max = 5\n"),
        environment(ROCKGATE_TOPICS_PARTITIONS="2", ROCKGATE_TOPICS_MESSAGE_BYTES_MAX="6"),
        [*from_pairs(["topics.partitions=3"]), *from_flags({"--http": ("http.listen", "off")})],
    )
    topics = gathered.config.topics
    assert (topics.partitions, topics.message_bytes_max, topics.auto_create) == (3, 6, False)
    assert gathered.config.http.listen is CLOSED
    assert gathered.origins["topics.partitions"] == "--set"
    variable = "ROCKGATE_TOPICS_MESSAGE_BYTES_MAX"
    assert gathered.origins["topics.message_bytes_max"] == f"environment {variable}"
    assert gathered.origins["topics.auto_create"].startswith("file ")
    assert gathered.origins["http.listen"] == "--http"
    assert gathered.origins["kafka.listen"] == "default"


@pytest.mark.parametrize(
    ("pair", "section", "field", "value"),
    [
        ("num.partitions=8", "topics", "partitions", 8),
        ("auto.create.topics.enable=false", "topics", "auto_create", False),
        ("message.max.bytes=2000000", "topics", "message_bytes_max", 2_000_000),
        ("log.retention.ms=1000", "store", "retention_ms", 1000),
        ("log.retention.minutes=3", "store", "retention_ms", 180_000),
        ("log.retention.hours=168", "store", "retention_ms", 604_800_000),
        ("log.retention.hours=-1", "store", "retention_ms", -1),
        ("connections.max.idle.ms=1", "kafka", "idle_ms_max", 1),
        ("socket.request.max.bytes=2048", "kafka", "frame_bytes_max", 2048),
        ("node.id=7", "server", "node_id", 7),
    ],
)
def test_kafkas_own_names_are_understood(
    pair: str, section: str, field: str, value: object
) -> None:
    gathered = gather(from_pairs([pair]))
    assert getattr(getattr(gathered.config, section), field) == value
    name = pair.partition("=")[0]
    assert gathered.origins[f"{section}.{field}"] == f"--set {name}"


def test_kafkas_names_work_in_a_file_and_in_the_environment(toml: TomlFile) -> None:
    gathered = gather(
        toml("num.partitions = 8\n[log]\nretention.ms = 9\n"),
        environment(ROCKGATE_MESSAGE_MAX_BYTES="7"),
    )
    topics = gathered.config.topics
    assert (topics.partitions, topics.message_bytes_max) == (8, 7)
    assert gathered.config.store.retention_ms == 9


def test_every_kafka_name_stands_for_a_setting_there_is() -> None:
    assert {alias.setting for alias in KAFKA_NAMES.values()} <= set(SETTINGS)
    assert len(VARIABLES) == len(SETTINGS) + len(KAFKA_NAMES) + len(RENAMED)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("kafka.frame_bytes_max=64MiB", 64 * 2**20),
        ("kafka.frame_bytes_max= 1 GiB ", 2**30),
        ("kafka.frame_bytes_max=100_000", 100_000),
    ],
)
def test_sizes_may_carry_a_unit(pair: str, value: int) -> None:
    assert gather(from_pairs([pair])).config.kafka.frame_bytes_max == value


@pytest.mark.parametrize(("text", "value"), [("90s", 90_000), ("10m", 600_000), ("1d", 86_400_000)])
def test_times_may_carry_a_unit(text: str, value: int) -> None:
    assert gather(from_pairs([f"kafka.idle_ms_max={text}"])).config.kafka.idle_ms_max == value


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (
            "kafka.idel_ms_max=1",
            "Unknown setting 'kafka.idel_ms_max' (--set). Did you mean 'kafka.idle_ms_max'?",
        ),
        (
            "num.partition=1",
            "Unknown setting 'num.partition' (--set). Did you mean 'num.partitions'?",
        ),
        (
            "listen=off",
            "Unknown setting 'listen' (--set). Did you mean 'listeners'?",
        ),
        ("hooks=off", "Unknown setting 'hooks' (--set). Did you mean 'remoting.hooks'?"),
        ("zzz=1", "Unknown setting 'zzz' (--set). Run `rockgate config` for a list."),
        ("topics.partitions=many", "topics.partitions (--set) must be an integer, not 'many'"),
        ("topics.partitions=1.5", "topics.partitions (--set) must be an integer, not '1.5'"),
        ("topics.partitions=4MiB", "topics.partitions (--set) must be an integer, not '4MiB'"),
        ("topics.partitions=0", "topics.partitions (--set) must be at least 1, not 0"),
        (
            "topics.partitions=200000",
            "topics.partitions (--set) must be at most 100000, not 200000",
        ),
        (
            "topics.auto_create=maybe",
            "topics.auto_create (--set) must be true or false, not 'maybe'",
        ),
        ("server.log_level=loud", "must be one of error, warning, info, debug, not 'loud'"),
        ("kafka.listen=9092", "kafka.listen (--set) must be HOST:PORT or 'off', not '9092'"),
        (
            "kafka.advertise=off",
            "Invalid settings in kafka (--set): advertise must be a HOST:PORT",
        ),
        (
            "kafka.advertise=host:0",
            "Invalid settings in kafka (--set): advertise must be a HOST:PORT",
        ),
        ("log.retention.hours=5h", "log.retention.hours (--set) must be an integer, not '5h'"),
        ("server.data_dir=", "server.data_dir (--set) must be a path, not ''"),
        ("server.data_dir=" + "x" * 5000, "must not exceed 4,096 characters"),
        ("topics.partitions=" + "9" * 4000, "must be an integer"),
    ],
)
def test_a_wrong_setting_is_reported_with_where_it_came_from(pair: str, problem: str) -> None:
    (told,) = problems(from_pairs([pair]))
    assert problem in told


def test_every_problem_is_reported_at_once(toml: TomlFile) -> None:
    told = problems(
        toml("[kafka]\nlisen = 'off'\nin_flight_max = 'x'\n"),
        environment(ROCKGATE_HTPP_LISTEN="off"),
        from_pairs(["topics.partitions=0"]),
    )
    assert len(told) == 4
    assert "'kafka.lisen' (file " in told[0]
    assert "ROCKGATE_HTTP_LISTEN" in told[2]


def test_a_setting_given_twice_in_one_source_is_refused() -> None:
    (told,) = problems(from_pairs(["num.partitions=8", "topics.partitions=9"]))
    assert told == "Setting topics.partitions (--set) duplicates num.partitions (--set)."


def test_a_flag_repeated_takes_its_last_value() -> None:
    assert (
        gather(from_pairs(["num.partitions=8", "num.partitions=9"])).config.topics.partitions == 9
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[kafka]\nlisten = 9092\n", "must be a string, not 9092"),
        ("[topics]\npartitions = true\n", "must be an integer, not True"),
        ("[topics]\npartitions = [1]\n", "must be an integer, not [1]"),
        ("[topics]\nauto_create = 1\n", "must be true or false, not 1"),
        ("kafka = 1\n", "This is a section; set a key in it, such as kafka.listen."),
        ("[kafka]\n[kafka.listen]\nhost = 'x'\n", "Unknown setting 'kafka.listen.host'"),
        ("[[kafka]]\nlisten = 'off'\n", "Unknown setting 'kafka'"),
    ],
)
def test_a_wrong_kind_in_a_file_is_reported(toml: TomlFile, text: str, problem: str) -> None:
    (told,) = problems(toml(text))
    assert problem in told


def test_what_is_not_toml_is_reported_with_its_place(toml: TomlFile, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not valid TOML: .*line 1"):
        toml("[kafka\n")
    with pytest.raises(ConfigError, match=r"Cannot read .*: No such file"):
        from_file(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match=r"Cannot read .*: Is a directory"):
        from_file(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        from_file(tmp_path / "binary")
    (tmp_path / "huge").write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="exceeds 1,048,576 bytes"):
        from_file(tmp_path / "huge")


@pytest.mark.parametrize("pair", ["topics.partitions", "=1", " = "])
def test_a_pair_without_a_key_or_an_equals_sign_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="Invalid --set: expected KEY=VALUE"):
        from_pairs([pair])


def test_variables_that_containers_get_beside_a_service_named_rockgate_are_left_alone() -> None:
    gather(
        environment(
            ROCKGATE_BOOTSTRAP_SERVER="10.0.0.1:9092",
            ROCKGATE_PORT="tcp://10.0.0.1:9092",
            ROCKGATE_PORT_9092_TCP_ADDR="10.0.0.1",
            ROCKGATE_SERVICE_HOST="10.0.0.1",
            ROCKGATE_SERVICE_PORT_KAFKA="9092",
            ROCKGATE_CONFIG="x.toml",
            OTHER="1",
        )
    )


OLD, NEW = "remoting.mapped_bytes_max", "remoting.batch_cache_bytes_max"


def test_old_names_are_of_settings_that_there_are_and_of_no_other() -> None:
    assert set(RENAMED.values()) <= set(SETTINGS)
    assert not RENAMED.keys() & SETTINGS.keys()


def test_a_renamed_setting_is_accepted_under_its_old_name_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gathered = gather(environment(ROCKGATE_REMOTING_MAPPED_BYTES_MAX="2MiB"))
    assert gathered.config.remoting.batch_cache_bytes_max == 2 << 20
    assert gathered.origins[NEW] == "environment ROCKGATE_REMOTING_MAPPED_BYTES_MAX"
    warn_of_renamed(gathered.deprecated, logging.getLogger("test"))
    assert caplog.messages == [
        f"{OLD} (environment ROCKGATE_REMOTING_MAPPED_BYTES_MAX) is deprecated; use {NEW}"
    ]
    caplog.clear()
    warn_of_renamed(gather(from_pairs([f"{NEW}=2MiB"])).deprecated, logging.getLogger("test"))
    assert caplog.messages == []


def test_a_renamed_setting_given_under_both_names_is_an_error(toml: TomlFile) -> None:
    (problem,) = problems(from_pairs([f"{OLD}=2MiB", f"{NEW}=2MiB"]))
    assert problem == (
        f"Settings {OLD} (--set) and {NEW} (--set) are the same. Remove {OLD}, which is deprecated."
    )
    (problem,) = problems(
        toml(f'{OLD} = "2MiB"\n'), environment(ROCKGATE_REMOTING_BATCH_CACHE_BYTES_MAX="2MiB")
    )
    assert f"Remove {OLD}, which is deprecated" in problem
