"""DescribeConfigs: v1-4.

Behaviour
- A topic has every config of the table of topic configs, with its value, where that comes from, its
  type, and, if asked for, its documentation and synonyms: the topic's own, the server's setting,
  the default, the nearest first.
- This node, as a broker, has the server's settings, under our names and under Kafka's; those that
  cannot change while the server runs are read-only. Synonyms are what was set for this node, for
  all brokers, at the start, and the default. The broker without a name (what all brokers share) has
  what was set for all of them.
- A group has every config of the table of group configs, and a client metrics subscription those of
  its table, whether it exists or not. This node's loggers have their levels.
- Null or empty keys ask for all; keys that are not known are left out. A resource that is asked for
  twice is answered once, with the keys of both.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, another broker or type INVALID_REQUEST.

Versions
- v2: throttling before the answer.  v3: types and documentation.  v4: flexible.

Departs from Kafka
- A setting that is explicitly set to its default is described as the default.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple

from rockgate.gateway.kafka.configs import loggers
from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.client_metrics import (
    CLIENT_METRICS_CONFIGS,
    SubscriptionConfig,
)
from rockgate.gateway.kafka.configs.dynamic import Changeable, dynamic, is_changeable
from rockgate.gateway.kafka.configs.group import GROUP_CONFIGS
from rockgate.gateway.kafka.configs.resources import (
    KEY,
    ResourceType,
    SavedConfigs,
    check_broker,
    check_named,
    check_this_broker,
    unserved,
)
from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.gateway.kafka.configs.topic_defaults import (
    ConfigSource,
    Dynamic,
    TopicDefaults,
    source_of,
)
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, at_once, in_slices
from rockgate.gateway.kafka.request.dedup import once_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from rockgate.protocol.kafka.schema import Encoded, encode_part, join


class Form(NamedTuple):
    """The version, and how much is included besides the values."""

    version: int
    with_synonyms: bool
    with_documentation: bool


class AskedConfigs(NamedTuple):
    """A resource, and which of its configs; without keys, all of them."""

    type: int
    name: str
    keys: list[str]


class DescribeConfigs:
    """Describes the configs of topics, of groups and of this server."""

    def __init__(
        self,
        *,
        catalog: TopicCatalog,
        defaults: TopicDefaults,
        node_id: int,
        broker_configs: Mapping[str, BrokerConfig],
        configs: SavedConfigs,
        changeable: Changeable | None = None,
    ) -> None:
        """Without `changeable`, no setting of this node can be changed."""
        self._changeable = changeable
        self._catalog = catalog
        self._configs = configs
        self._node_id = node_id
        self._broker_configs = broker_configs
        self._topic_entries = TopicEntries(defaults)
        self._slicing = Slicing(DescribeConfigsResponse, DescribeConfigsResult)

    def handle(
        self, request: DescribeConfigsRequest, call: Call
    ) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
        """Describe each resource, in slices if there are many."""
        return in_slices(self._steps(request, call))

    def _steps(self, request: DescribeConfigsRequest, call: Call) -> Steps[DescribeConfigsResponse]:
        form = Form(call.version, request.include_synonyms, request.include_documentation)
        topics = (
            each.resource_name
            for each in request.resources
            if each.resource_type == ResourceType.TOPIC
        )
        if (learning := self._catalog.learn(topics)) is not None:
            yield learning
        asked_for = yield from _merged(request.resources)
        return self._slicing.work(
            asked_for,
            lambda: Each[AskedConfigs, DescribeConfigsResult](
                lambda asked: self._describe(asked, form)
            ),
            lambda results: DescribeConfigsResponse(results=results),
            call.version,
        )

    def refuse(self, request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
        """Reject every resource with the same error."""
        return DescribeConfigsResponse(
            results=[
                _result(asked, (), code, code.meaning)
                for asked in at_once(_merged(request.resources))
            ]
        )

    def _describe(self, asked: AskedConfigs, form: Form) -> DescribeConfigsResult:
        try:
            if asked.type == ResourceType.TOPIC:
                return _result(asked, self._topic(asked, form))
            if asked.type == ResourceType.BROKER:
                return _result(asked, self._broker(asked, form))
            if asked.type == ResourceType.GROUP:
                return _result(asked, self._group(asked, form))
            if asked.type == ResourceType.CLIENT_METRICS:
                return _result(asked, self._client_metrics(asked, form))
            if asked.type == ResourceType.BROKER_LOGGER:
                return _result(asked, self._loggers(asked))
            raise RequestError(ErrorCode.INVALID_REQUEST, unserved(asked.type))
        except RequestError as error:
            return _result(asked, (), error.code, error.reason)

    def _topic(self, asked: AskedConfigs, form: Form) -> list[Encoded]:
        topic = self._catalog.find(asked.name)
        if topic is None:
            if not names.is_legal(asked.name):
                raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid.")
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic does not exist.")
        return self._topic_entries.of(topic.config, asked.keys, form)

    def _broker(self, asked: AskedConfigs, form: Form) -> list[DescribeConfigsResourceResult]:
        check_broker(asked.name, self._node_id)
        wanted = asked.keys or self._broker_configs
        found = (self._broker_configs.get(name) for name in wanted)
        entries = (
            self._broker_entry(config, form, of_all=not asked.name)
            for config in found
            if config is not None
        )
        return [entry for entry in entries if entry is not None]

    def _broker_entry(
        self, config: BrokerConfig, form: Form, *, of_all: bool
    ) -> DescribeConfigsResourceResult | None:
        """A config of this node, or, if it is set there, of all brokers."""
        known, changes = self._changeable, False
        levels: Sequence[Dynamic] = ()
        if known is not None and is_changeable(known, config):
            changes, levels = True, dynamic(known, config.setting or "", of_all=of_all)
        if of_all and not levels:
            return None
        return _broker_entry(config, form, levels, is_read_only=not changes, of_all=of_all)

    def _group(self, asked: AskedConfigs, form: Form) -> list[DescribeConfigsResourceResult]:
        check_named(ResourceType.GROUP, asked.name)
        config = self._configs.of(ResourceType.GROUP, asked.name)
        wanted = (name for name in asked.keys or GROUP_CONFIGS if name in GROUP_CONFIGS)
        return [_group_entry(name, config, form) for name in wanted]

    def _client_metrics(
        self, asked: AskedConfigs, form: Form
    ) -> list[DescribeConfigsResourceResult]:
        check_named(ResourceType.CLIENT_METRICS, asked.name)
        config, known = (
            self._configs.of(ResourceType.CLIENT_METRICS, asked.name),
            CLIENT_METRICS_CONFIGS,
        )
        wanted = (name for name in asked.keys or known if name in known)
        return [_client_metrics_entry(known[name], config, form) for name in wanted]

    def _loggers(self, asked: AskedConfigs) -> list[DescribeConfigsResourceResult]:
        check_this_broker(asked.name, self._node_id)
        known = loggers.names()
        return [
            DescribeConfigsResourceResult(
                name=name, value=loggers.level_of(name), config_source=ConfigSource.LOGGER
            )
            for name in (asked.keys or known)
            if name in known
        ]


class TopicEntries:
    """Topics' configs as they are described; a config that no topic sets is encoded once."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults
        self._unset: dict[Form, Mapping[str, Encoded]] = {}
        self._all: dict[Form, Encoded] = {}
        defaults.on_changed.append(self._unset.clear)
        defaults.on_changed.append(self._all.clear)

    def of(self, config: Mapping[str, str], keys: Sequence[str], form: Form) -> list[Encoded]:
        """Those of a topic with this config: all of them, or only some keys."""
        unset = self._unset.get(form)
        if unset is None:
            unset = self._unset[form] = {
                name: self._encode(name, {}, form) for name in TOPIC_CONFIGS
            }
            self._all[form] = join(DescribeConfigsResourceResult, form.version, unset.values())
        if not keys and not config:
            return [self._all[form]]
        return [
            self._encode(name, config, form) if name in config else unset[name]
            for name in keys or TOPIC_CONFIGS
            if name in TOPIC_CONFIGS
        ]

    def _encode(self, name: str, config: Mapping[str, str], form: Form) -> Encoded:
        described = TOPIC_CONFIGS[name]
        entry = DescribeConfigsResourceResult(
            name=name,
            value=self._defaults.text(config, name),
            config_source=source_of(name, config, self._defaults),
            synonyms=self._synonyms(name, config) if form.with_synonyms else [],
            config_type=described.type.kind,
            documentation=described.documentation if form.with_documentation else None,
        )
        return encode_part(DescribeConfigsResponse, entry, form.version)

    def _synonyms(self, name: str, config: Mapping[str, str]) -> list[DescribeConfigsSynonym]:
        described, defaults = TOPIC_CONFIGS[name], self._defaults
        found = []
        if name in config:
            found.append(_synonym(name, config[name], ConfigSource.TOPIC))
        if described.broker is not None:
            found += [_synonym(described.broker, *each) for each in defaults.dynamic(name)]
            if name in defaults.set_by_server:
                found.append(_synonym(described.broker, defaults.given(name), ConfigSource.SERVER))
            found.append(_synonym(described.broker, described.default, ConfigSource.DEFAULT))
        return found


def _group_entry(name: str, config: Mapping[str, str], form: Form) -> DescribeConfigsResourceResult:
    described, synonyms = GROUP_CONFIGS[name], []
    if form.with_synonyms:
        if name in config:
            synonyms.append(_synonym(name, config[name], ConfigSource.GROUP))
        synonyms.append(_synonym(described.broker, described.default, ConfigSource.DEFAULT))
    return DescribeConfigsResourceResult(
        name=name,
        value=config.get(name, described.default),
        config_source=ConfigSource.GROUP if name in config else ConfigSource.DEFAULT,
        synonyms=synonyms,
        config_type=described.type.kind,
        documentation=described.documentation if form.with_documentation else None,
    )


def _client_metrics_entry(
    described: SubscriptionConfig, config: Mapping[str, str], form: Form
) -> DescribeConfigsResourceResult:
    value, source = config.get(described.name), ConfigSource.CLIENT_METRICS
    is_set = value is not None
    return DescribeConfigsResourceResult(
        name=described.name,
        value=value if is_set else described.default or None,
        config_source=source if is_set else ConfigSource.DEFAULT,
        synonyms=[_synonym(described.name, value, source)] if is_set and form.with_synonyms else [],
        config_type=described.type.kind,
        documentation=described.documentation if form.with_documentation else None,
    )


def _broker_entry(
    config: BrokerConfig,
    form: Form,
    levels: Sequence[Dynamic],
    *,
    is_read_only: bool,
    of_all: bool,
) -> DescribeConfigsResourceResult:
    synonyms = []
    if form.with_synonyms:
        synonyms = [_synonym(config.name, each.value, each.source) for each in levels]
        if config.is_set and not of_all:
            synonyms.append(_synonym(config.name, config.value, ConfigSource.SERVER))
        if config.default is not None and not of_all:
            synonyms.append(_synonym(config.name, config.default, ConfigSource.DEFAULT))
    given = ConfigSource.SERVER if config.is_set else ConfigSource.DEFAULT
    value, source = levels[0] if levels else (config.value, given)
    return DescribeConfigsResourceResult(
        name=config.name,
        value=value,
        read_only=is_read_only,
        config_source=source,
        synonyms=synonyms,
        config_type=config.kind,
        documentation=config.documentation if form.with_documentation else None,
    )


def _synonym(name: str, value: str | None, source: ConfigSource) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)


def _merged(
    resources: Sequence[DescribeConfigsResource],
) -> Generator[None, None, Iterable[AskedConfigs]]:
    """Each resource once: a request that names one a million times gets a single answer."""
    each_once, repeated = yield from once_in_steps(resources, KEY)
    if not repeated:
        return (
            AskedConfigs(each.resource_type, each.resource_name, _distinct(each.configuration_keys))
            for each in each_once
        )
    merged: dict[tuple[int, str], list[str] | None] = {}
    for each in resources:
        keys = merged.setdefault(KEY(each), [])
        if keys is None or not each.configuration_keys:
            merged[KEY(each)] = None
        else:
            keys += each.configuration_keys
        yield
    return (AskedConfigs(type_, name, _distinct(keys)) for (type_, name), keys in merged.items())


def _distinct(keys: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(keys or ()))


def _result(
    asked: AskedConfigs,
    configs: Iterable[DescribeConfigsResourceResult | Encoded],
    code: ErrorCode = ErrorCode.NONE,
    reason: str = "",
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=reason,
        resource_type=asked.type,
        resource_name=asked.name,
        configs=list(configs),
    )
