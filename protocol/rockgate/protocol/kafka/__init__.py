"""Kafka's wire: messages, headers, record batches and sans-IO connections."""
