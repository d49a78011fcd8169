"""Topics in full: partitions, offsets, sizes on disk, and the configs set on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rockgate.cli.client.admin import configs, offsets
from rockgate.cli.client.admin import topics as wire
from rockgate.cli.client.admin.configs import Config
from rockgate.cli.client.admin.offsets import Bounds
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.cli.client.kafka.view import Place, Topic
from rockgate.protocol.kafka.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The full descriptions of some topics."""

    topics: list[Topic]
    bounds: dict[Place, Bounds]
    sizes: dict[Place, int]
    configs: dict[str, list[Config]]
    errors: list[ClientError]


async def described(cluster: Cluster, names: Sequence[str] = ()) -> Described:
    """The topics that names and patterns mean, or all but internal ones."""
    topics, errors = await _chosen(cluster, names)
    places = [(topic.name, index) for topic in topics for index in topic.partitions]
    bounds: dict[Place, Bounds] = {}
    for place, found in (await offsets.bounds(cluster, places)).items():
        if isinstance(found, Refused):
            errors.append(found.at(place))
        else:
            bounds[place] = found
    leaders = {
        (topic.name, each.index): each.leader
        for topic in topics
        for each in topic.partitions.values()
    }
    directories = await wire.log_dirs(cluster, places) if places else None
    resources = [configs.Resource(configs.ResourceType.TOPIC, topic.name) for topic in topics]
    own: dict[str, list[Config]] = {}
    described = await configs.describe(cluster, resources) if resources else {}
    for resource, settings in described.items():
        if isinstance(settings, Refused):
            errors.append(settings)
        else:
            own[resource.name] = [each for each in settings if each.source == "topic"]
    return Described(
        topics=topics,
        bounds=bounds,
        sizes=wire.sizes_of(directories or (), leaders),
        configs=own,
        errors=errors,
    )


async def _chosen(cluster: Cluster, names: Sequence[str]) -> tuple[list[Topic], list[ClientError]]:
    """The topics that match the names and patterns; a plain name without a topic is an error."""
    errors: list[ClientError] = []
    is_plain = bool(names) and not any(set("*?[") & set(name) for name in names)
    view = await cluster.metadata(names if is_plain else None)
    chosen: dict[str, Topic] = {}
    for name in names:
        matching = [t for t in view.topics.values() if fnmatchcase(t.name, name)]
        good = {t.name: t for t in matching if not t.error_code}
        chosen |= good
        if not good:
            code = next((t.error_code for t in matching), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            errors.append(Refused(code, what=f"topic {name}"))
    if not names:
        chosen = {t.name: t for t in view.topics.values() if not t.is_internal}
    return list(chosen.values()), errors
