"""docs/reference/protocol.md: the APIs of Kafka's that are served, and what each config does.

The APIs come from the table of handlers, their departures from the handlers' own docstrings, and
the configs from their tables. Nothing of the page is written by hand.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.configs.client_metrics import (
    CLIENT_METRICS_CONFIGS,
    SubscriptionConfig,
)
from rockgate.gateway.kafka.configs.group import GROUP_CONFIGS, GroupConfig
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS, TopicConfig
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.keys import ApiKey

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/protocol.md"
FOLDER = "gateway/rockgate/gateway/kafka/handlers"
SECTION = "Departs from Kafka"

INTRODUCTION = """\
<!-- Written by `make docs` from the table of handlers and the tables of configs. -->
# Kafka's protocol

The Kafka APIs that this server supports, as reported by ApiVersions. The reference is Apache Kafka
4.3; departures from it are listed below. An API that is not in the table is not advertised, and a
request for it closes the connection.
"""

CONFIGS = """\
## Topic configs

Every topic config of Kafka 4.3 is accepted: it is validated as in Kafka, stored with the topic and
described with its type, default, source, synonyms and documentation. Unknown ones are rejected with
INVALID_CONFIG and the closest known name. A default that corresponds to a server setting can be
changed there ([operations.md](operations.md) lists Kafka's names for settings).
"""

GROUP_SECTION = """\

## Group configs

Every group config of Kafka 4.3 is accepted, validated with the default bounds of a Kafka broker,
stored by group name and described, whether the group exists or not.
"""

CLIENT_METRICS_SECTION = """\

## Client metrics configs

The configs of client metrics subscriptions, which take effect with `client_metrics.enabled`.
"""


def render() -> str:
    """The whole page."""
    lines = [
        INTRODUCTION,
        *api_lines(),
        "",
        "## Departures from Kafka",
        "",
        *departure_lines(),
        "",
        CONFIGS,
        *config_lines(),
        GROUP_SECTION,
        *table(GROUP_CONFIGS.values()),
        CLIENT_METRICS_SECTION,
        *table(CLIENT_METRICS_CONFIGS.values()),
    ]
    return "\n".join(lines) + "\n"


def api_lines() -> Iterator[str]:
    """A table of the APIs in key order."""
    yield "| key | API | served | advertised | flexible |"
    yield "|--:|---|---|---|---|"
    for row in HANDLERS:
        api = APIS[row.key]
        link = f"[{api.name}](../../{FOLDER}/{file_name(row.key)})"
        cells = (row.versions, row.advertised, api.flexible)
        yield f"| {int(row.key)} | {link} | {' | '.join(f'{each}' for each in cells)} |"


def departure_lines() -> Iterator[str]:
    """For each API what its handler says of itself."""
    for row in HANDLERS:
        said = list(departures((ROOT / FOLDER / file_name(row.key)).read_text(encoding="utf-8")))
        if said:
            yield f"- **{APIS[row.key].name}**"
            yield from (f"  - {each}" for each in said)


def departures(source: str) -> Iterator[str]:
    """The points of a handler's section on departures, each on one line; none without one."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    section = docstring.partition(f"\n{SECTION}\n")[2].split("\n\n")[0]
    for point in re.split(r"^- ", section, flags=re.M)[1:]:
        yield " ".join(point.split())


def file_name(key: ApiKey) -> str:
    """The module that serves an API has its name."""
    return f"{key.name.lower()}.py"


def config_lines() -> Iterator[str]:
    """The configs that do something, ours, and those that do not."""
    configs = TOPIC_CONFIGS.values()
    yield from ("### With an effect", "")
    yield from table(config for config in configs if config.has_effect and not config.is_ours)
    yield from ("", "### Our own", "")
    yield from table(config for config in configs if config.is_ours)
    yield from ("", "### Without an effect here", "")
    yield from table(config for config in configs if not config.has_effect and not config.is_ours)


def table(configs: Iterable[TopicConfig | GroupConfig | SubscriptionConfig]) -> Iterator[str]:
    """One line for each config."""
    yield "| config | default | values | broker setting | description |"
    yield "|---|---|---|---|---|"
    for config in configs:
        default = f"`{config.default}`" if config.default else "empty"
        name = None if isinstance(config, SubscriptionConfig) else config.broker
        broker = f"`{name}`" if name else "-"
        cells = (f"`{config.name}`", default, config.type.accepts, broker, config.documentation)
        yield f"| {' | '.join(cells)} |"
