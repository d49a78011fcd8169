"""Kafka's internal topics: committed offsets and transactional ids as records that tools read."""
