"""Assembles a gateway to a RocketMQ cluster, which has no store."""
