"""Translation between the protocols: Kafka record batches as RocketMQ messages and back.

docs/internals/mapping.md specifies it and has the dictionary as a table. Each side reads its own
kind as it is stored; only what the other side wrote is translated here, at read time.
"""
