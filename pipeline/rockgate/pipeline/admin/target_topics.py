"""Topics that a job writes to: what they are called, and that they have the partitions it needs."""

from __future__ import annotations

from collections.abc import Mapping

from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.report.progress import Reporter


def named(pattern: str, topic: str) -> str:
    """The name of the topic that gets another one's records; `{topic}` is the other's name."""
    return pattern.replace("{topic}", topic)


def ensure_topics(
    admin: Admin,
    counts: Mapping[str, int],
    reporter: Reporter,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create the topics that are missing, with these configs, and grow those that are too small.

    More partitions than asked for are left alone: the records' own partitions are all there.
    """
    existing = admin.topic_names()
    for name in sorted(set(counts) - existing):
        admin.create_topic(name, counts[name], configs)
        reporter.say(f"created topic {name} with {counts[name]} partitions")
    present = sorted(set(counts) & existing)
    for name, count in admin.partition_counts(present).items() if present else ():
        if count < counts[name]:
            admin.grow_topic(name, counts[name])
            reporter.say(f"grew topic {name} from {count} to {counts[name]} partitions")
