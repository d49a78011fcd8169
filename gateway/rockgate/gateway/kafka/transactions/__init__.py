"""Kafka's transactions: their coordinator, state, pending offsets and timeouts."""
