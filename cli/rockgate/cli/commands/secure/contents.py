"""What the settings and the files for clients say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rockgate.cli.commands.secure import folder
from rockgate.gateway.net.address import Address
from rockgate.sdk.properties import written_property

MECHANISM = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a secured server listens, and what its clients dial."""

    folder: Path
    data_dir: Path
    host: str
    kafka: Address
    remoting: Address
    namesrv: Address
    http: Address

    def dialled(self, address: Address) -> str:
        """A listener as its clients write it."""
        return str(Address(self.host, address.port))


def settings(layout: Layout) -> str:
    """The settings of the server."""
    lines = [
        "# Written by `rockgate secure init`; yours to change.",
        "",
        "[server]",
        f"data_dir = {_quoted(layout.data_dir)}",
        "",
        "[tls]",
        f"certificate_file = {_quoted(layout.folder / folder.CERTIFICATE)}",
        f"key_file = {_quoted(layout.folder / folder.KEY)}",
        "",
        "[kafka]",
        *_listener(layout, layout.kafka),
        'security_protocol = "SASL_SSL"',
        "",
        "[remoting]",
        *_listener(layout, layout.remoting),
        'tls = "enforcing"',
        'authentication = "signature"',
        "",
        "[namesrv]",
        f"listen = {_quoted(layout.namesrv)}",
        'tls = "enforcing"',
        'authentication = "signature"',
        "",
        "[http]",
        "# On this machine only: set tls = true before you open it to others.",
        f"listen = {_quoted(layout.http)}",
    ]
    return "\n".join(lines) + "\n"


def client_files(layout: Layout, user: str, password: str) -> dict[str, str]:
    """The files for an administrator's clients, by name."""
    return {
        folder.CLIENT: _properties(layout, user, password),
        folder.LIBRDKAFKA: _librdkafka(layout, user, password),
        folder.ROCKETMQ_TOOLS: f"accessKey: {user}\nsecretKey: {password}\n",
    }


def tls_of_rocketmq(layout: Layout) -> str:
    """What RocketMQ's Java clients take with -Dtls.config.file."""
    return (
        "tls.test.mode.enable=false\n"
        "tls.client.authServer=true\n"
        f"tls.client.trustCertPath={layout.folder / folder.AUTHORITY}\n"
    )


def _properties(layout: Layout, user: str, password: str) -> str:
    """For Kafka's Java tools, Spark, rockgate's command line and its SDK."""
    jaas = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="{user}" password="{password}";'
    )
    values = {
        "bootstrap.servers": layout.dialled(layout.kafka),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": jaas,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(layout.folder / folder.AUTHORITY),
        "rocketmq.broker.addr": layout.dialled(layout.remoting),
        "rocketmq.namesrv.addr": layout.dialled(layout.namesrv),
    }
    return "".join(written_property(name, value) for name, value in values.items())


def _librdkafka(layout: Layout, user: str, password: str) -> str:
    """For kcat, and all that is built on librdkafka."""
    return (
        f"bootstrap.servers={layout.dialled(layout.kafka)}\n"
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={MECHANISM}\n"
        f"sasl.username={user}\n"
        f"sasl.password={password}\n"
        f"ssl.ca.location={layout.folder / folder.AUTHORITY}\n"
    )


def _listener(layout: Layout, address: Address) -> list[str]:
    lines = [f"listen = {_quoted(address)}"]
    if address.is_wildcard or address.host != layout.host:
        lines.append(f"advertise = {_quoted(layout.dialled(address))}")
    return lines


def _quoted(value: object) -> str:
    """A string of TOML: those of JSON are."""
    return json.dumps(str(value), ensure_ascii=False)
