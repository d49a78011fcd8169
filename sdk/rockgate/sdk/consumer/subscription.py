"""What a group reads of a topic: an expression over tags, or SQL over properties.

A broker filters tags by their codes, and two tags may share a code; so a client compares the tags
themselves once more. SQL is the broker's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rockgate.protocol.entry.tagcode import tag_code
from rockgate.protocol.remoting.bodies.clients import SubscriptionData
from rockgate.sdk.errors import InvalidMessage

ALL: Final = "*"
TAG: Final = "TAG"
SQL92: Final = "SQL92"
TAGS_MAX: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The messages of a topic that a group wants."""

    topic: str
    expression: str = ALL
    kind: str = TAG
    tags: tuple[str, ...] = ()
    """The tags as written; empty for all messages, and for SQL."""

    def wants(self, tag: str | None) -> bool:
        """Whether a message with this tag is wanted, as far as tags tell."""
        return not self.tags or tag in self.tags

    def data(self, version: int) -> SubscriptionData:
        """Its form in a heartbeat. Of two versions a broker uses the later one."""
        return SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            expression_type=self.kind,
            sub_version=version,
            tags_set=list(self.tags),
            code_set=[tag_code(tag.encode()) for tag in self.tags],
        )


def by_tags(topic: str, expression: str = ALL) -> Subscription:
    """`TagA || TagB`, or `*` for every message."""
    text = expression.strip()
    if text in ("", ALL):
        return Subscription(topic=topic)
    tags = tuple(dict.fromkeys(filter(None, map(str.strip, text.split("||")))))
    if not tags:
        raise InvalidMessage(f"Subscription of {topic}: {expression!r} names no tags.")
    if len(tags) > TAGS_MAX:
        raise InvalidMessage(
            f"Subscription of {topic} names {len(tags):,} tags; the maximum is {TAGS_MAX:,}."
        )
    return Subscription(topic=topic, expression=text, tags=tags)


def by_sql(topic: str, expression: str) -> Subscription:
    """An SQL92 condition over properties, such as `price > 10 AND region = 'eu'`."""
    text = expression.strip()
    if not text:
        raise InvalidMessage(f"Subscription of {topic}: the SQL expression is empty.")
    return Subscription(topic=topic, expression=text, kind=SQL92)


def wanted(topic: str, tags: str, sql: str | None) -> Subscription:
    """By SQL if there is some, else by tags."""
    return by_tags(topic, tags) if sql is None else by_sql(topic, sql)
