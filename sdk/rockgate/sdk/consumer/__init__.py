"""Consuming: allocation of queues to members, pulling, caching, delivery and progress."""
