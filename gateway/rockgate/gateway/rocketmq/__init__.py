"""Kafka's wire over an Apache RocketMQ cluster: no store, only other servers."""
