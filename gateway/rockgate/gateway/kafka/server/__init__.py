"""Kafka's listener: connections, sessions, dispatch, throttling and request metrics."""
