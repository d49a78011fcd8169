"""Admin calls from a process without a JVM: a client of Spark Connect.

Source and sink run at the Connect server and take the options of Kafka's own client. The same
options are translated here, so that a user gives each once. What has no translation (a truststore
in Java's format, Kerberos) is refused by name: asking without it would fail less clearly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rockgate.pipeline.errors import BadOption, JobFailed, NotInstalled, NotReachable
from rockgate.pipeline.spark.kafka import ADMIN_DEFAULTS, Cluster, Offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
EARLIEST, LATEST = -2, -1
_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.key.password": "ssl_password",
}
_PEM_ONLY = ("ssl.truststore.type", "ssl.keystore.type")
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
_LOGIN_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# The rest of what decides who we are has no counterpart; everything else an admin client ignores.
_SECRET = re.compile(r"^(ssl|sasl)\.")
_IGNORED = ("ssl.endpoint.identification.algorithm", "ssl.protocol", "ssl.enabled.protocols")


def translated(cluster: Cluster) -> dict[str, Any]:
    """The options of Kafka's own client as this one's; BadOption names what has no counterpart."""
    given = {**ADMIN_DEFAULTS, **cluster.options}
    found: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap.split(",")}
    for name, value in given.items():
        if name in _NAMES:
            found[_NAMES[name]] = value
        elif name == "ssl.keystore.location":
            # In PEM the key and its certificates are one file.
            found["ssl_certfile"] = found["ssl_keyfile"] = value
        elif name == "sasl.jaas.config":
            found.update(_login(value))
        elif name in _PEM_ONLY:
            if value.upper() != "PEM":
                raise _untranslated(name, value)
        elif _SECRET.match(name) and name not in _IGNORED:
            raise _untranslated(name, "…")
    for flag in ("truststore", "keystore"):
        if f"ssl.{flag}.location" in given and f"ssl.{flag}.type" not in given:
            raise _untranslated(f"ssl.{flag}.type", "JKS")
    mechanism = given.get("sasl.mechanism", "PLAIN")
    if mechanism not in _LOGIN_MECHANISMS:
        raise _untranslated("sasl.mechanism", mechanism)
    if given.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl_check_hostname"] = False
    found["request_timeout_ms"] = int(given["request.timeout.ms"])
    found["bootstrap_timeout_ms"] = int(given["default.api.timeout.ms"])
    return found


def _login(text: str) -> dict[str, str]:
    found = {
        match[1]: re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        for match in _LOGIN.finditer(text)
    }
    if set(found) != {"username", "password"}:
        raise BadOption('sasl.jaas.config must contain username="…" and password="…".')
    return {"sasl_plain_username": found["username"], "sasl_plain_password": found["password"]}


def _untranslated(name: str, value: str) -> BadOption:
    return BadOption(
        f"{name}={value} is not supported over Spark Connect, where this process looks topics up "
        "without a JVM. Use PEM files (ssl.truststore.type=PEM) and PLAIN or SCRAM logins, or a "
        "Spark master or spark-submit."
    )


class KafkaPythonClient:
    """kafka-python's admin client."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        try:
            from kafka import KafkaAdminClient
        except ImportError:
            raise NotInstalled(
                "kafka-python is not installed; it is needed to look topics up without a JVM. "
                "Install it with: pip install 'rockgate[pipeline-connect]'"
            ) from None
        self._spark = spark
        self._cluster = cluster
        chosen = translated(cluster)
        self._client: Any = self._call(lambda: KafkaAdminClient(**chosen))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    # Topics

    def check(self) -> None:
        """Check that a Kafka server responds; NotReachable otherwise."""
        self._call(self._client.describe_cluster)

    def topic_names(self) -> set[str]:
        """Every topic that is not internal."""
        return set(self._call(self._client.list_topics)) - set(INTERNAL_TOPICS)

    def matching(self, pattern: str) -> list[str]:
        """The topics whose whole name matches; asked of Spark, which reads patterns like Java."""
        names = [(name,) for name in sorted(self.topic_names())]
        table = self._spark.createDataFrame(names, "name string")
        found = table.where(table["name"].rlike(f"^(?:{pattern})$")).collect()
        return [row["name"] for row in found]

    def partition_counts(self, names: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each of these topics, which exist."""
        described = self._call(lambda: self._client.describe_topics(list(names)))
        return {each["name"]: len(each["partitions"]) for each in described}

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """A topic with that many partitions, and the server's defaults for the rest."""
        wanted = {name: {"num_partitions": partitions, "configs": dict(configs)}}
        self._call(lambda: self._client.create_topics(wanted))

    def grow_topic(self, name: str, partitions: int) -> None:
        """More partitions for a topic."""
        self._call(lambda: self._client.create_partitions({name: partitions}))

    def topic_configs(self, names: Iterable[str], config: str) -> dict[str, str | None]:
        """One config of each of these topics; None from a server that does not know it."""
        from kafka.admin import ConfigResource, ConfigResourceType

        wanted = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        found = self._call(lambda: self._client.describe_configs(wanted, config_filter="all"))
        [topics] = found.values()
        return {name: configs.get(config, {}).get("value") for name, configs in topics.items()}

    # Offsets

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset behind the last record of each partition."""
        return self._offsets(places, LATEST)

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset of the first record of each partition."""
        return self._offsets(places, EARLIEST)

    def _offsets(self, places: Iterable[tuple[str, int]], which: int) -> Offsets:
        from kafka import TopicPartition

        wanted = {TopicPartition(*place): which for place in places}
        found = self._call(lambda: self._client.list_partition_offsets(wanted)) if wanted else {}
        return {(at.topic, at.partition): each.offset for at, each in found.items()}

    def groups(self) -> set[str]:
        """Every group that has committed something or has members."""
        return {each["group_id"] for each in self._call(self._client.list_groups)}

    def group_offsets(self, group: str) -> Offsets:
        """The committed offsets of a group; empty if there are none."""
        found = self._call(lambda: self._client.list_group_offsets(group)).get(group, {})
        return {
            (at.topic, at.partition): each.offset for at, each in found.items() if each.offset >= 0
        }

    def _call(self, call: Callable[[], T]) -> T:
        from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

        at = self._cluster.bootstrap
        try:
            return call()
        except (KafkaTimeoutError, KafkaConnectionError, OSError) as error:
            raise NotReachable(f"No Kafka server responds at {at}: {error}.") from None
        except KafkaError as error:
            raise JobFailed(
                f"{at} rejected the request: {type(error).__name__}: {error}."
            ) from None
