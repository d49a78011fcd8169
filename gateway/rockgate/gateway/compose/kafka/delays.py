"""Creates the delay of records, and what brings held batches back."""

from __future__ import annotations

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.delay.headers import Terms
from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.kafka.produce.delay import RecordDelays
from rockgate.gateway.kafka.produce.delay_schedule import HeldScheduling
from rockgate.gateway.kafka.produce.redelivery import Redelivering
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.store.store import Store


def record_delays(
    config: Config,
    store: Store,
    folds: KafkaFolds,
    settings: SettingsCache,
    threads: BatchThreads,
) -> tuple[RecordDelays, HeldScheduling]:
    """Create the delay of records and attach it to deliveries; held batches are resumed."""
    held, remoting = folds.held, config.remoting
    terms = Terms(read_levels(remoting.delay_levels), remoting.delay_ms_max)
    store.attach(
        records=Redelivering(
            topics=store.topics,
            queues=store.queues,
            epochs=store.epochs,
            clock=store.clock,
            settings=settings,
        )
    )
    store.retention.keep(held)
    delays = RecordDelays(
        appender=store.appender,
        deliveries=store.deliveries,
        lookup=store.lookup,
        held=held,
        terms=terms,
        threads=threads,
    )
    scheduling = HeldScheduling(
        appender=store.appender,
        deliveries=store.deliveries,
        queues=store.queues,
        reader=store.reader,
        residency=store.residency,
        commit_log=store.log,
        clock=store.clock,
        held=held,
        terms=terms,
    )
    return delays, scheduling
