"""Producers: messages packed, brokers chosen, sends retried, transactions."""
