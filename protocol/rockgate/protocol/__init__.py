"""Bytes to values and back, for Kafka and for RocketMQ remoting: no sockets, no clock, no logger."""
