"""Delegation tokens as Kafka's requests have them."""
