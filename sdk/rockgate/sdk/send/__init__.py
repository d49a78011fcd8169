"""Sending: messages made ready, brokers chosen, answers read."""
