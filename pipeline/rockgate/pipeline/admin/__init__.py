"""Asking a Kafka server about topics and groups."""
