"""Kafka's listener: connections, dispatch and one handler per API."""
