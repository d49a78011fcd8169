"""docs/internals/delay.md says of Kafka's listener what the code does."""

from tests.house.checkout import ROOT

from rockgate.gateway.delay import headers, visible_batch
from rockgate.gateway.kafka.produce import delay_schedule, redelivery, topic_checks
from rockgate.protocol.kafka.records.bounds import LIGHT
from rockgate.store.delay import delivery

PAGE = (ROOT / "docs/internals/delay.md").read_text()
LISTENER = PAGE[PAGE.index("## Kafka's listener") : PAGE.index("## Snapshots")]


def test_every_header_is_in_the_table() -> None:
    table = LISTENER.split("\n\n| header")[1].split("\n\n")[0]
    assert all(f"`{name}`" in table for name in headers.NAMES)


def test_the_numbers_are_those_of_the_code() -> None:
    assert topic_checks.WAITS_MAX == delay_schedule.STEP_RECORDS == 500
    assert "up to 500 delayed records" in LISTENER and "scheduled 500 at a time" in LISTENER
    assert (LIGHT.records_max, LIGHT.inflated_bytes_max) == (1_000, 1 << 20)
    assert LIGHT.compressed_bytes_max == 32 << 10
    assert "more than 1,000 records, of 1 MiB, or of 32 KiB compressed" in LISTENER
    assert visible_batch.CACHE_BYTES == 32 << 20 and "within 32 MiB" in LISTENER
    assert (delivery.COUNT_MAX, redelivery.BATCH_BYTES) == (64, 64 << 10)
    assert "up to 64 of them and 64 KiB of uncompressed records" in LISTENER
