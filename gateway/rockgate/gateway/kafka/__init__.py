"""Kafka's door: connections, dispatch and one handler per API."""
