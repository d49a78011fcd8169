"""Metrics that were renamed: the old name of each, exported beside the new one for one version."""

from collections.abc import Mapping

RENAMED: Mapping[str, str] = {
    "rockgate_event_loop_delay_seconds": "rockgate_loop_lateness_seconds",
    "rockgate_kafka_response_bytes_total": "rockgate_kafka_answer_bytes_total",
    "rockgate_kafka_request_bytes_in_flight": "rockgate_kafka_held_bytes",
    "rockgate_remoting_response_bytes_total": "rockgate_remoting_answer_bytes_total",
    "rockgate_remoting_request_bytes_in_flight": "rockgate_remoting_held_bytes",
    "rockgate_batch_cache_bytes": "rockgate_mapped_bytes",
    "rockgate_batch_cache_hits_total": "rockgate_mapped_hits_total",
    "rockgate_batch_cache_misses_total": "rockgate_mapped_misses_total",
    "rockgate_batches_unreadable_total": "rockgate_mapped_unreadable_total",
    "rockgate_segments_unaccounted": "rockgate_segments_unweighed",
    "rockgate_delay_retries_total": "rockgate_delay_put_off_total",
    "rockgate_topics_without_series": "rockgate_topics_not_shown",
    "rockgate_idempotent_producers": "rockgate_producers_remembered",
    "rockgate_group_lags_without_series": "rockgate_group_lags_not_shown",
}
"""The name of each metric in 0.1, by its current name."""
