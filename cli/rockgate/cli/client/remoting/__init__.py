"""Requests to rockgate over RocketMQ's wire: delays, half messages, dead letters."""
