"""Bytes to values and back, for Kafka and for RocketMQ remoting: sans-IO, no clock, no logger."""
