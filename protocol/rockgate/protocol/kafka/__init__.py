"""Kafka's protocol: messages, headers, record batches and sans-IO connections."""
