"""Delay by a record's header: what rockgate accepts, and which topics allow it.

A record with the header `TIMER_DELAY_MS` appears that long after it was written, on topics whose
config `message.type` is DELAY or MIXED. On others, and with other servers, it is a header like any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.records import header, with_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

DELAY_MS: Final = "TIMER_DELAY_MS"
DELAYING: Final = (
    "DELAY",
    "TIMER_DELAY_SEC",
    DELAY_MS,
    "TIMER_DELIVER_MS",
    "__STARTDELIVERTIME",
)
"""Every header that delays; some of them count before the one that is set here."""
TOPIC_CONFIG: Final = "message.type"
LETTING: Final = ("DELAY", "MIXED")


def delayed(headers: Column, delay_ms: int) -> Column:
    """A record's headers with this delay, and with none that it had before."""
    others = F.filter(headers, lambda each: ~each["key"].isin(*DELAYING))
    return with_headers(others, header(DELAY_MS, F.lit(delay_ms)))


def check_topics(types: Mapping[str, str | None]) -> None:
    """Refuse topics whose records would not wait; given each one's `message.type`."""
    for topic, kind in sorted(types.items()):
        if kind is None:
            raise BadOption(
                f"The server of {topic} has no topic config {TOPIC_CONFIG}: only rockgate delays "
                "records by a header. Omit --delay."
            )
        if kind not in LETTING:
            raise BadOption(
                f"Topic {topic} has {TOPIC_CONFIG}={kind}, which does not delay records. Enable "
                f"it with: rockgate topics alter {topic} --config {TOPIC_CONFIG}=MIXED"
            )
